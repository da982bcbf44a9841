//! Elevation models of more points than the memory of a device, or of the host, holds.
//!
//! The points are stored in blocks. A window of cells is computed from the points of the blocks around it. A cell whose height depends on
//! points beyond them is noticed, because the search that found its height had to look at a place outside; the CPU computes it from a
//! [`Forest`] of all points. So a height never depends on windows.
//!
//! The corners of the convex hull are added to the points of each window: then a cell is outside of the triangulation of the window only if it is
//! outside of all.

mod forest;
mod hull;
mod store;

use super::backend::{Backend, CellMethod};
use super::cpu::{CpuPoints, write_values};
use super::frame::TerrainFrame;
use super::gpu::GpuPoints;
use crate::device::{Buffer, Device, Stream, Workspace, gpu_of};
use crate::error::Result;
use crate::memory;
use crate::primitives::cpu::bounds::bounds;
use forest::Forest;
use kauri_kernels::terrain::cells::{Cells, UNRESOLVED};
use kauri_kernels::terrain::known::{Known, Rectangle};
use store::StoredPoints;

pub(super) use store::{AllPoints, PointStore};

/// Bytes of a point in the memory of the device that computes a window, at most: 12 of the input, 24 of sorted codes and values, 13 of the sort,
/// 8 of distinct codes, 28 of runs of equal codes, and about 15 of the tree.
const BYTES_PER_POINT: u64 = 100;
/// The margin around a window in average distances of points, for methods without a radius.
const MARGIN: f64 = 32.0;
/// Cells that are computed from a forest before its memory is compared with the limit.
const FOREST_CELLS: usize = 1 << 16;
/// Cells of the smallest window.
const MIN_CELLS: usize = 1 << 12;

/// Points in blocks, and the device that computes windows.
pub(super) struct TiledPoints {
    device: Device,
    frame: TerrainFrame,
    points: StoredPoints,
    /// Most points of a window.
    max_points: usize,
}

impl TiledPoints {
    /// Creates the backend of points, of which the device takes up to `max_points` at a time.
    pub(super) fn new(device: &Device, frame: TerrainFrame, points: StoredPoints, max_points: usize) -> Self {
        Self { device: device.clone(), frame, points, max_points }
    }

    /// Returns the number of points that a device can take at a time in `device_bytes` bytes.
    pub(super) fn max_points(device_bytes: u64) -> usize {
        usize::try_from(device_bytes / BYTES_PER_POINT).unwrap_or(usize::MAX).max(1)
    }

    /// Returns the least and the greatest x and y of the points; `None` without points.
    pub(super) fn corners(&self) -> Option<[[i32; 2]; 2]> {
        let corners: Vec<_> = self.points.hull.iter().map(|&[x, y, _]| [x, y]).collect();
        (!corners.is_empty()).then(|| bounds(&corners))
    }

    /// Returns the bounding box of the points, of which there is at least one, in positions.
    fn bounding_box(&self) -> Rectangle {
        let corners = self.corners().unwrap_or_default();
        Rectangle::new(corners.map(|corner| self.frame.of_points().position(corner).map(f64::from)))
    }

    /// Returns the number of points.
    pub(super) fn num_points(&self) -> usize {
        self.points.num_points
    }

    /// Returns the distance around a cell, in steps of positions, in which the method most often looks for points.
    fn margin(&self, method: &CellMethod) -> f64 {
        let areas = self.points.blocks.len() as f64 * (self.points.side as f64).powi(2);
        let spacing = (areas / self.points.num_points as f64).sqrt();
        let near = MARGIN * spacing * f64::from(self.frame.of_points().steps);
        match *method {
            CellMethod::Statistic { radius2, .. } | CellMethod::WeightedDisk { radius2, .. } => {
                (radius2 as f64).sqrt() + 2.0
            }
            CellMethod::WeightedNearest { radius2, .. } => near.min((radius2 as f64).sqrt() + 2.0),
            CellMethod::Tin { .. } | CellMethod::NaturalNeighbor => near,
            // The leaves around a leaf may be of any size; more points follow if these are not enough.
            CellMethod::Spline { .. } => 0.5 * near,
        }
    }

    /// Writes the values of a window of `cells`, whose first value is at `values[0]`; rows are `stride` values apart. The points up to `margin`
    /// steps of positions around it are read first.
    fn fill(
        &self,
        cells: &Cells,
        method: &CellMethod,
        margin: f64,
        (values, stride): (&mut [f32], usize),
    ) -> Result<()> {
        // The corners in positions, then in steps of the lattice, both outward.
        let [west, north] = cells.center_of([0, 0]);
        let [east, south] = cells.center_of([cells.columns - 1, cells.rows - 1]);
        let distance = margin.min(f64::from(i32::MAX)) as i64;
        let low = [west, south].map(|position| i64::from(position) - distance);
        let high = [east, north].map(|position| i64::from(position) + distance);
        let ([low, high], part) = self.frame.outward([low, high], self.points.side);
        let (blocks, num_points) = self.points.blocks_between([low, high]);
        let known = if blocks.len() == self.points.blocks.len() {
            Known::ALL
        } else {
            Known { part, cloud: self.bounding_box() }
        };
        if num_points > self.max_points && cells.len() > MIN_CELLS {
            let [first, second] = halves(cells);
            let at = (second.first_row - cells.first_row) as usize * stride
                + (second.first_column - cells.first_column) as usize;
            self.fill(&first, method, margin, (values, stride))?;
            return self.fill(&second, method, margin, (&mut values[at..], stride));
        }
        let mut points = self.points.read(&blocks)?;
        if method.is_of_triangles() {
            points.extend_from_slice(&self.points.hull);
        }
        let mut window = self.window(&points, known, cells, method)?;
        drop(points);
        let unresolved: Vec<usize> =
            (0..window.len()).filter(|&i| window[i].to_bits() == UNRESOLVED).collect();
        if matches!(method, CellMethod::Spline { .. }) && !unresolved.is_empty() {
            drop(window);
            return self.fill(cells, method, 4.0 * margin, (values, stride));
        }
        if !unresolved.is_empty() {
            self.resolve(cells, method, &unresolved, &mut window)?;
        }
        let columns = cells.columns as usize;
        for (from, to) in window.chunks(columns).zip(values.chunks_mut(stride)) {
            to[..columns].copy_from_slice(from);
        }
        Ok(())
    }

    /// Computes the values of some cells of a window from all points.
    fn resolve(
        &self,
        cells: &Cells,
        method: &CellMethod,
        unresolved: &[usize],
        window: &mut [f32],
    ) -> Result<()> {
        let is_distinct = method.is_of_distinct_positions();
        let new_forest = || Forest::new(&self.points, self.frame.of_points(), is_distinct);
        let mut forest = new_forest();
        for some in unresolved.chunks(FOREST_CELLS) {
            if forest.num_loaded()? > self.max_points {
                forest = new_forest();
            }
            let mut values = memory::filled(some.len(), f32::NAN, "cells of a raster")?;
            // SAFETY: the slots of the forest are its own.
            unsafe { write_values(&&forest, cells, method, |i| some[i], &mut values) };
            for (&i, value) in some.iter().zip(values) {
                window[i] = value;
            }
        }
        forest.num_loaded().map(|_| ())
    }

    /// Returns the values of a window, from points of which all in `known` are there.
    fn window(
        &self,
        points: &[[i32; 3]],
        known: Known,
        cells: &Cells,
        method: &CellMethod,
    ) -> Result<Vec<f32>> {
        let frame = self.frame.of_points();
        let gpu = gpu_of!(self.device).filter(|_| !points.is_empty());
        let Some(gpu) = gpu else {
            return CpuPoints::new(points, frame)?.with_known(known).raster(cells, method);
        };
        let (stream, mut workspace) = (Stream::new(gpu)?, Workspace::new(gpu));
        let uploaded = Buffer::from_slice(&stream, points, "points of a terrain")?;
        let sorted = GpuPoints::new(&stream, &mut workspace, &uploaded, frame, bounds(points))?;
        drop(uploaded);
        sorted.with_known(known).raster_on(&stream, &mut workspace, cells, method)?.to_vec(&stream)
    }
}

impl Backend for TiledPoints {
    fn raster(&self, cells: &Cells, method: &CellMethod) -> Result<Vec<f32>> {
        let mut values = memory::filled(cells.len(), f32::NAN, "cells of a raster")?;
        let stride = cells.columns as usize;
        self.fill(cells, method, self.margin(method), (&mut values, stride))?;
        Ok(values)
    }
}

/// Divides the cells of a window, of which there are at least two, into two windows.
fn halves(cells: &Cells) -> [Cells; 2] {
    let (mut first, mut second) = (*cells, *cells);
    if cells.columns > cells.rows {
        first.columns = cells.columns / 2;
        second.columns -= first.columns;
        second.first_column += first.columns;
    } else {
        first.rows = cells.rows / 2;
        second.rows -= first.rows;
        second.first_row += first.rows;
    }
    [first, second]
}

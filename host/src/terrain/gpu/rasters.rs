//! The heights of cells, and the Delaunay triangulation.

use super::{GpuPoints, POINTS};
use crate::device::{Buffer, Stream, Workspace};
use crate::error::Result;
use crate::primitives::radix_sort::{RadixSortOptions, sort_pairs};
use crate::terrain::backend::{Backend, CellMethod};
use crate::terrain::spline::{self, Cloud, SplineRaster};
use kauri_kernels::terrain::cells::Cells;
use kauri_kernels::terrain::rasters::{
    Task, terrain_corners, terrain_natural_neighbor, terrain_nearest, terrain_statistic, terrain_tin,
    terrain_triangles, terrain_weighted,
};
use kauri_kernels::terrain::tree::DevicePoints;

/// The label of memory for triangles.
const TRIANGLES: &str = "triangles";

impl Backend for GpuPoints {
    fn raster(&self, cells: &Cells, method: &CellMethod) -> Result<Vec<f32>> {
        let (stream, mut workspace) = (Stream::new(&self.gpu)?, Workspace::new(&self.gpu));
        self.raster_on(&stream, &mut workspace, cells, method)?.to_vec(&stream)
    }

    fn raster_on(
        &self,
        stream: &Stream,
        workspace: &mut Workspace,
        cells: &Cells,
        method: &CellMethod,
    ) -> Result<Buffer<f32>> {
        self.codes.check_device(stream)?;
        let mut values = Buffer::uninitialized(&self.gpu, cells.len(), "cells of a raster")?;
        let tree = self.tree(stream, workspace, method.is_of_distinct_positions())?;
        if let CellMethod::Spline { options, corners, num_points } = *method {
            let mut positions = Buffer::uninitialized(&self.gpu, 2 * tree.heights.len(), POINTS)?;
            // SAFETY: the index has as many coordinates, which are followed by padding.
            unsafe { stream.copy(positions.slice_mut(), tree.index.coords())? };
            let cloud = Cloud { corners, num_points, known: self.known };
            let task = SplineRaster { cells: *cells, options, cloud };
            spline::raster_on(stream, workspace, &positions, &tree.heights, &task, &mut values)?;
            return Ok(values);
        }
        let points = DevicePoints { known: self.known, ..tree.points() };
        let task = Task { points, cells: *cells, values: values.slice_mut() };
        let threads = cells.num_threads();
        // SAFETY: there is a value for each cell, and buffers wait for the device before they are freed.
        unsafe {
            match *method {
                CellMethod::Statistic { statistic, radius2 } => {
                    stream.launch_items::<terrain_statistic>(threads, (task, radius2, statistic))
                }
                CellMethod::WeightedDisk { radius2, power } => {
                    stream.launch_items::<terrain_weighted>(threads, (task, radius2, power))
                }
                CellMethod::Tin { max_edge2 } => {
                    stream.launch_items::<terrain_tin>(threads, (task, max_edge2))
                }
                CellMethod::NaturalNeighbor => {
                    stream.launch_items::<terrain_natural_neighbor>(threads, (task,))
                }
                // Done above.
                CellMethod::Spline { .. } => Ok(()),
                CellMethod::WeightedNearest { k, radius2, power } => {
                    let args = (task, k, radius2, power);
                    match k {
                        1 => stream.launch_items::<terrain_nearest<1>>(threads, args),
                        2..=8 => stream.launch_items::<terrain_nearest<8>>(threads, args),
                        9..=16 => stream.launch_items::<terrain_nearest<16>>(threads, args),
                        _ => stream.launch_items::<terrain_nearest<32>>(threads, args),
                    }
                }
            }?;
        }
        Ok(values)
    }
}

impl GpuPoints {
    /// Returns the corners of the Delaunay triangles, as values of the points.
    pub(in crate::terrain) fn triangles(
        &self,
        stream: &Stream,
        workspace: &mut Workspace,
    ) -> Result<Buffer<[u32; 3]>> {
        let tree = self.tree(stream, workspace, true)?;
        let n = tree.index.ids.len();
        // There are less than twice as many triangles as points (Euler). Memory without a triangle sorts after all others.
        let mut owners = Buffer::of_bytes(stream, 2 * n, 0xFF, TRIANGLES)?;
        let mut others = Buffer::of_bytes(stream, 2 * n, 0xFF, TRIANGLES)?;
        let mut count = Buffer::of_bytes(stream, 1, 0, TRIANGLES)?;
        let args = (tree.points(), owners.slice_mut(), others.slice_mut(), count.slice_mut());
        // SAFETY: the lengths agree, and buffers wait for the device before they are freed.
        unsafe { stream.launch_items::<terrain_triangles>(n as u64, args)? };
        let num_triangles = count.to_vec(stream)?[0] as usize;
        let mut sorted_owners = Buffer::uninitialized(&self.gpu, 2 * n, TRIANGLES)?;
        let mut sorted_others = Buffer::uninitialized(&self.gpu, 2 * n, TRIANGLES)?;
        let options = RadixSortOptions::default();
        // The sort is stable: the triangles of a point stay in the order in which it has appended them.
        let sorted = (&mut sorted_owners, &mut sorted_others);
        sort_pairs(stream, workspace, &owners, &others, sorted.0, sorted.1, &options)?;
        drop((owners, others));
        let mut corners = Buffer::<[u32; 3]>::uninitialized(&self.gpu, num_triangles, TRIANGLES)?;
        let (owners, others) = (sorted_owners.slice(), sorted_others.slice());
        let args = (owners, others, tree.heights.slice(), corners.slice_mut());
        // SAFETY: as above.
        unsafe { stream.launch_items::<terrain_corners>(num_triangles as u64, args)? };
        Ok(corners)
    }
}

//! Elevation models on the CPU, with the searches of the kernels.

use super::backend::{Backend, CellMethod};
use super::spline::{self, Cloud, SplineRaster};
use crate::error::Result;
use crate::memory;
use crate::parallel::{self, Ranges, TASK_ITEMS};
use kauri_kernels::query::buckets::BucketLayout;
use kauri_kernels::query::left_balanced::full_tree;
use kauri_kernels::terrain::cells::Cells;
use kauri_kernels::terrain::disk::{statistic, weighted_disk};
use kauri_kernels::terrain::known::Known;
use kauri_kernels::terrain::natural::natural_neighbor;
use kauri_kernels::terrain::nearest_k::weighted_nearest;
use kauri_kernels::terrain::order::{Frame, code, decoded, height_value, value_height};
use kauri_kernels::terrain::star::own_triangles;
use kauri_kernels::terrain::tree::{Alone, Corners, Missing, PointTree, Points, Search, search_tree};
use kauri_kernels::terrain::triangles::{Triangle, contains, linear_in, locate};
use rayon::prelude::*;

/// Cells of a task, and points of a task that triangulates.
const TASK_CELLS: usize = 256;
/// The longest list of nearest points.
pub(super) const MAX_NEAREST: usize = 32;
/// The label of memory for points.
const POINTS: &str = "points of a terrain";

/// Points in their order: codes of x and y with values, which are of heights, or indexes of points.
pub(super) struct CpuPoints {
    frame: Frame,
    known: Known,
    points: Vec<(u64, u32)>,
}

impl CpuPoints {
    /// Sorts points of two coordinates, or of three with a height.
    pub(super) fn new<const N: usize>(points: &[[i32; N]], frame: Frame) -> Result<Self> {
        let mut points = parallel::collect(points.len(), TASK_ITEMS, POINTS, |i| {
            let point = &points[i];
            (code([point[0], point[1]]), if N > 2 { height_value(point[2]) } else { i as u32 })
        })?;
        points.par_sort_unstable();
        Ok(Self { frame, known: Known::ALL, points })
    }

    /// The points are all of a cloud in a part of the plane.
    pub(super) fn with_known(self, known: Known) -> Self {
        Self { known, ..self }
    }

    /// Returns the tree over the first point at each position, or over all points.
    pub(super) fn tree(&self, is_distinct: bool) -> Result<CpuTree> {
        if !is_distinct {
            return CpuTree::new(&self.points, self.frame);
        }
        let mut distinct = memory::vec_with_capacity(self.points.len(), POINTS)?;
        distinct.extend(self.points.chunk_by(|a, b| a.0 == b.0).map(|run| run[0]));
        CpuTree::new(&distinct, self.frame)
    }

    /// Returns the corners of the Delaunay triangles, as values of the points.
    pub(super) fn triangles(&self) -> Result<Vec<[u32; 3]>> {
        let tree = self.tree(true)?;
        let parts = Ranges::new(tree.positions.len(), TASK_CELLS).map(|slots| {
            let mut triangles = Vec::new();
            for slot in slots {
                let visit = |second, third| {
                    triangles.push([slot as u32, second, third].map(|slot| tree.values[slot as usize]));
                };
                // SAFETY: the slot is one of the tree's.
                unsafe { own_triangles(&tree.view(), Some(slot as u32), visit) };
            }
            triangles
        });
        parallel::joined(parts, "triangles")
    }
}

impl Backend for CpuPoints {
    fn raster(&self, cells: &Cells, method: &CellMethod) -> Result<Vec<f32>> {
        let tree = self.tree(method.is_of_distinct_positions())?;
        if let CellMethod::Spline { options, corners, num_points } = *method {
            let cloud = Cloud { corners, num_points, known: self.known };
            let heights =
                parallel::collect(tree.values.len(), TASK_ITEMS, POINTS, |i| value_height(tree.values[i]))?;
            return spline::raster(
                &tree.positions,
                &heights,
                &SplineRaster { cells: *cells, options, cloud },
            );
        }
        let mut values = memory::filled(cells.len(), f32::NAN, "cells of a raster")?;
        let view = View { known: self.known, ..tree.view() };
        // SAFETY: the view has the slots of the tree.
        unsafe { write_values(&view, cells, method, |i| i, &mut values) };
        Ok(values)
    }
}

/// Computes the value of cell `cell(i)` for each value `i`, by a method that searches.
///
/// # Safety
/// As [`Points::search`].
pub(super) unsafe fn write_values<P: Points + Sync>(
    points: &P,
    cells: &Cells,
    method: &CellMethod,
    cell: impl Fn(usize) -> usize + Sync,
    values: &mut [f32],
) {
    parallel::for_chunks(values, TASK_CELLS, |number, values| {
        let mut heights = Heights { points, method, last: None };
        for (i, value) in (number * TASK_CELLS..).zip(values) {
            // SAFETY: passed on to the caller.
            *value = cells.value(unsafe { heights.at(cells.center(cell(i))) });
        }
    });
}

/// The heights of positions, most of which are near the one before.
struct Heights<'a, P> {
    points: &'a P,
    method: &'a CellMethod,
    /// The triangle of the last position.
    last: Option<Triangle>,
}

impl<P: Points> Heights<'_, P> {
    /// Returns the height at a position in steps, by a method that searches.
    ///
    /// # Safety
    /// As [`Points::search`].
    unsafe fn at(&mut self, position: [i32; 2]) -> Result<f64, Missing> {
        let (points, some) = (self.points, Some(position));
        // SAFETY: passed on to the caller.
        unsafe {
            match *self.method {
                CellMethod::Statistic { statistic: number, radius2 } => {
                    statistic(points, some, radius2, number)
                }
                CellMethod::WeightedDisk { radius2, power } => weighted_disk(points, some, radius2, power),
                CellMethod::WeightedNearest { k, radius2, power } => {
                    weighted_nearest::<_, MAX_NEAREST>(points, some, k as usize, radius2, power)
                }
                CellMethod::Tin { max_edge2 } => {
                    let triangle = match self.last {
                        Some(last) if contains(last, position) => last,
                        _ => locate(points, some)?,
                    };
                    self.last = Some(triangle);
                    linear_in(points, triangle, position, max_edge2)
                }
                CellMethod::NaturalNeighbor => natural_neighbor(points, some),
                CellMethod::Spline { .. } => Err(Missing::Unresolved),
            }
        }
    }
}

/// Positions in buckets, and the boxes above them.
pub(super) struct CpuTree {
    positions: Vec<[i32; 2]>,
    values: Vec<u32>,
    /// The boxes of the left and the right child of each node.
    boxes: Vec<[Corners; 2]>,
}

impl CpuTree {
    fn new(points: &[(u64, u32)], frame: Frame) -> Result<Self> {
        let position = |i: usize| frame.position(decoded(points[i].0));
        let positions = parallel::collect(points.len(), TASK_ITEMS, POINTS, position)?;
        let values = parallel::collect(points.len(), TASK_ITEMS, POINTS, |i| points[i].1)?;
        let layout = BucketLayout::left_balanced(points.len() as u32);
        let mut below = parallel::collect(1 << layout.levels, TASK_CELLS, POINTS, |bucket| {
            let run = [0, 1].map(|next| layout.begin(bucket as u32 + next, layout.levels) as usize);
            around(positions[run[0]..run[1]].iter().map(|&position| [position; 2]))
        })?;
        let mut boxes = memory::filled(full_tree(layout.levels) as usize, [[[0; 2]; 2]; 2], POINTS)?;
        for level in (0..layout.levels).rev() {
            let nodes = &mut boxes[full_tree(level) as usize..][..1 << level];
            nodes.copy_from_slice(below.as_chunks().0);
            below = nodes.iter().map(|children| around(children.iter().copied())).collect();
        }
        Ok(Self { positions, values, boxes })
    }

    /// Returns all points of a cloud.
    pub(super) fn view(&self) -> View<'_> {
        View {
            layout: BucketLayout::left_balanced(self.positions.len() as u32),
            tree: self,
            known: Known::ALL,
        }
    }
}

/// Returns the box around boxes.
pub(super) fn around(boxes: impl Iterator<Item = Corners>) -> Corners {
    boxes.fold([[i32::MAX; 2], [i32::MIN; 2]], |[low, high], [other_low, other_high]| {
        let axes = [0, 1];
        [axes.map(|axis| low[axis].min(other_low[axis])), axes.map(|axis| high[axis].max(other_high[axis]))]
    })
}

/// A tree as the searches of kernels see it.
#[derive(Clone, Copy)]
pub(super) struct View<'a> {
    layout: BucketLayout,
    tree: &'a CpuTree,
    known: Known,
}

impl PointTree for View<'_> {
    fn layout(&self) -> BucketLayout {
        self.layout
    }

    unsafe fn position(&self, slot: u32) -> [i32; 2] {
        self.tree.positions[slot as usize]
    }

    unsafe fn child(&self, node: u32, is_right: bool) -> Corners {
        self.tree.boxes[node as usize][usize::from(is_right)]
    }
}

impl Points for View<'_> {
    type Lanes = Alone;

    unsafe fn position(&self, slot: u32) -> [i32; 2] {
        self.tree.positions[slot as usize]
    }

    unsafe fn height(&self, slot: u32) -> i32 {
        value_height(self.tree.values[slot as usize])
    }

    unsafe fn search<S: Search>(&self, start: Option<u32>, search: &mut S) {
        // SAFETY: passed on to the caller.
        unsafe { search_tree::<Alone, _, _>(self, start, search) };
    }

    fn known(&self) -> &Known {
        &self.known
    }
}

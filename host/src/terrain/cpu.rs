//! Elevation models on the CPU, with the searches of the kernels.

use super::backend::{Backend, CellMethod};
use crate::device::Device;
use crate::error::Result;
use crate::kdtree::{KdTree, KdTreeOptions};
use crate::memory;
use crate::parallel::{self, Ranges, TASK_ITEMS};
use crate::query::{QueryOptions, SpatialIndex};
use kauri_kernels::query::buckets::BucketLayout;
use kauri_kernels::query::left_balanced::full_tree;
use kauri_kernels::terrain::cells::Cells;
use kauri_kernels::terrain::disk::{Disk, weighted_row};
use kauri_kernels::terrain::natural::natural_neighbor;
use kauri_kernels::terrain::order::{Frame, code, height_value, position, value_height};
use kauri_kernels::terrain::rasters::{linear, weighted_disk};
use kauri_kernels::terrain::star::own_triangles;
use kauri_kernels::terrain::tree::{Corners, PointTree, search};
use rayon::prelude::*;

/// Cells of a task, and points of a task that triangulates.
const TASK_CELLS: usize = 256;
/// Cells whose nearest points are listed at a time.
const BAND_CELLS: usize = 1 << 18;
/// The label of memory for points.
const POINTS: &str = "points of a terrain";

/// Points in their order: codes of positions with values, which are heights or indexes of points.
pub(super) struct CpuPoints(Vec<(u64, u32)>);

impl CpuPoints {
    /// Sorts points of two coordinates, or of three with a height.
    pub(super) fn new<const N: usize>(points: &[[i32; N]], frame: &Frame) -> Result<Self> {
        let mut points = parallel::collect(points.len(), TASK_ITEMS, POINTS, |i| {
            let point = &points[i];
            let value = if N > 2 { height_value(point[2]) } else { i as u32 };
            (code(frame.position([point[0], point[1]])), value)
        })?;
        points.par_sort_unstable();
        Ok(Self(points))
    }

    /// Returns the tree over the first point at each position, or over all points.
    fn tree(&self, is_distinct: bool) -> Result<CpuTree> {
        let Self(points) = self;
        if !is_distinct {
            return CpuTree::new(points);
        }
        let mut distinct = memory::vec_with_capacity(points.len(), POINTS)?;
        distinct.extend(points.chunk_by(|a, b| a.0 == b.0).map(|run| run[0]));
        CpuTree::new(&distinct)
    }

    /// Returns the corners of the Delaunay triangles, as values of the points.
    pub(super) fn triangles(&self) -> Result<Vec<[u32; 3]>> {
        let tree = self.tree(true)?;
        let parts = Ranges::new(tree.positions.len(), TASK_CELLS).map(|slots| {
            let mut triangles = Vec::new();
            for slot in slots {
                let corners = |second, third| {
                    triangles.push([slot as u32, second, third].map(|slot| tree.values[slot as usize]));
                };
                // SAFETY: the slot is one of the tree's.
                unsafe { own_triangles(&tree.view(), slot as u32, corners) };
            }
            triangles
        });
        parallel::joined(parts, "triangles")
    }
}

impl Backend for CpuPoints {
    fn raster(&self, cells: &Cells, method: &CellMethod) -> Result<Vec<f32>> {
        let tree = self.tree(method.is_of_distinct_positions())?;
        let (view, heights) = (tree.view(), |slot| tree.height(slot));
        // SAFETY: the slots of the view are those of the tree, and of its heights.
        unsafe {
            match *method {
                CellMethod::Statistic { statistic, radius2 } => values(cells, |center| {
                    let mut disk = Disk::new(center, radius2, heights);
                    search(&view, None, &mut disk);
                    disk.value(statistic)
                }),
                CellMethod::WeightedDisk { radius2, power } => {
                    values(cells, |center| weighted_disk(&view, heights, center, radius2, power))
                }
                CellMethod::WeightedNearest { k, radius, power } => {
                    tree.weighted_nearest(cells, k, radius, power)
                }
                CellMethod::Tin { max_edge2 } => {
                    values(cells, |center| linear(&view, heights, center, max_edge2))
                }
                CellMethod::NaturalNeighbor => {
                    values(cells, |center| natural_neighbor(&view, heights, center))
                }
            }
        }
    }
}

/// Returns the value of each cell, from a function of its center.
fn values(cells: &Cells, height: impl Fn([i32; 2]) -> Option<f64> + Sync) -> Result<Vec<f32>> {
    parallel::collect(cells.len(), TASK_CELLS, "cells of a raster", |i| {
        height(cells.center(i)).map_or(f32::NAN, |steps| cells.height(steps))
    })
}

/// Positions in buckets, and the boxes above them.
struct CpuTree {
    positions: Vec<[i32; 2]>,
    values: Vec<u32>,
    /// The boxes of the children of each node.
    boxes: Vec<[Corners; 2]>,
}

impl CpuTree {
    fn new(points: &[(u64, u32)]) -> Result<Self> {
        let positions = parallel::collect(points.len(), TASK_ITEMS, POINTS, |i| position(points[i].0))?;
        let values = parallel::collect(points.len(), TASK_ITEMS, POINTS, |i| points[i].1)?;
        let layout = BucketLayout::left_balanced(points.len() as u32);
        let mut below = parallel::collect(1 << layout.levels, TASK_CELLS, POINTS, |bucket| {
            let run = [0, 1].map(|next| layout.begin(bucket as u32 + next, layout.levels) as usize);
            around(positions[run[0]..run[1]].iter().map(|&position| [position; 2]))
        })?;
        let num_nodes = full_tree(layout.levels) as usize;
        let mut boxes = parallel::collect(num_nodes, TASK_ITEMS, POINTS, |_| [[[0; 2]; 2]; 2])?;
        for level in (0..layout.levels).rev() {
            let nodes = &mut boxes[full_tree(level) as usize..][..1 << level];
            nodes.copy_from_slice(below.as_chunks().0);
            below = nodes.iter().map(|children| around(children.iter().copied())).collect();
        }
        Ok(Self { positions, values, boxes })
    }

    fn view(&self) -> View<'_> {
        let layout = BucketLayout::left_balanced(self.positions.len() as u32);
        View { layout, positions: &self.positions, boxes: &self.boxes }
    }

    fn height(&self, slot: u32) -> i32 {
        value_height(self.values[slot as usize])
    }

    /// Returns the weighted average of the nearest points of each cell.
    fn weighted_nearest(&self, cells: &Cells, k: usize, radius: f64, power: u32) -> Result<Vec<f32>> {
        let tree = KdTree::build(&Device::cpu(), &self.positions, &KdTreeOptions::default())?;
        let radius = (radius < f64::INFINITY).then_some(radius);
        let options = QueryOptions { radius, coherent: true, ..QueryOptions::default() };
        let mut values = memory::vec_with_capacity(cells.len(), "cells of a raster")?;
        for band in Ranges::new(cells.len(), BAND_CELLS).iter() {
            let centers = parallel::collect(band.len(), TASK_ITEMS, "cells of a raster", |i| {
                cells.center(band.start + i)
            })?;
            let nearest = tree.nearest_with(&centers, k, &options)?;
            parallel::extend(&mut values, band.len(), TASK_CELLS, |i| {
                let row = nearest.row(i);
                let entry = |i| {
                    let ends = (f64::INFINITY, u32::MAX);
                    row.dist2().get(i).map_or(ends, |&distance2| (distance2, row.ids()[i]))
                };
                // SAFETY: ids are slots, and `entry` is defined for all numbers.
                let height = unsafe { weighted_row(k, power, entry, |slot| self.height(slot)) };
                height.map_or(f32::NAN, |steps| cells.height(steps))
            });
        }
        Ok(values)
    }
}

/// Returns the box around boxes.
fn around(boxes: impl Iterator<Item = Corners>) -> Corners {
    boxes.fold([[i32::MAX; 2], [i32::MIN; 2]], |[low, high], [other_low, other_high]| {
        let axes = [0, 1];
        [axes.map(|axis| low[axis].min(other_low[axis])), axes.map(|axis| high[axis].max(other_high[axis]))]
    })
}

/// A tree as the searches of kernels see it.
#[derive(Clone, Copy)]
struct View<'a> {
    layout: BucketLayout,
    positions: &'a [[i32; 2]],
    boxes: &'a [[Corners; 2]],
}

impl PointTree for View<'_> {
    fn layout(&self) -> BucketLayout {
        self.layout
    }

    unsafe fn position(&self, slot: u32) -> [i32; 2] {
        self.positions[slot as usize]
    }

    unsafe fn children(&self, node: u32) -> [Corners; 2] {
        self.boxes[node as usize]
    }

    unsafe fn child(&self, node: u32, is_right: bool) -> Corners {
        self.boxes[node as usize][usize::from(is_right)]
    }
}

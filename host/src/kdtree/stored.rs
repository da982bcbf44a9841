//! Left-balanced trees in files.

use kauri_kernels::thread::coord::Coord;
use std::borrow::Cow;

use super::{Coordinate, KdTree, SplitRule, Storage, ids, num_axes};
use crate::device::Device;
use crate::error::Result;
use crate::io::index::{Contents, Index, IndexFile, Section, files_of_index};
use crate::memory::Items;
use crate::point::{Point, dims, first_unusable, is_usable};
use crate::stats::Stats;

/// What a file holds of a tree, in level order on every device.
pub struct Stored<'a, C: Coord> {
    pub(super) coords: Cow<'a, [C]>,
    pub(super) ids: Cow<'a, [u32]>,
    /// The axes of nodes that have children; empty if they go by levels.
    pub(super) axes: Cow<'a, [u8]>,
}

/// The same of a file, checked: every id once, coordinates within their limits, axes that there are.
pub(super) struct Loaded<C> {
    pub(super) coords: Items<C>,
    pub(super) ids: Items<u32>,
    pub(super) axes: Items<u8>,
}

impl<C: Coordinate> Loaded<C> {
    pub(super) fn of_file(mut file: IndexFile, dims: usize) -> Result<Self> {
        let num_points = file.num_points()?;
        file.num_nodes(num_points..=num_points)?;
        let coords = file.section("coords", &[num_points * dims])?;
        let node_ids = file.section("ids", &[num_points])?;
        let axes: Section<u8> = file.section("axes", &[0, num_axes(num_points, SplitRule::Widest)])?;
        file.end()?;
        check_coords(&coords, dims)?;
        if let Some((node, what)) = ids::first_wrong(&node_ids.items)? {
            return Err(node_ids.corrupt(node, what));
        }
        if let Some(node) = first_unusable(&axes.items, |axis| usize::from(axis) < dims) {
            let what = format!("axis {}, but there are {dims}", axes.items[node]);
            return Err(axes.corrupt(node, what));
        }
        Ok(Self { coords: coords.items, ids: node_ids.items, axes: axes.items })
    }
}

/// Checks that coordinates of a file are such that distances are numbers.
pub(crate) fn check_coords<C: Coord>(coords: &Section<C>, dims: usize) -> Result<()> {
    match first_unusable(&coords.items, is_usable) {
        None => Ok(()),
        Some(i) => {
            let (value, limit, axis) = (coords.items[i].to_f64(), C::LIMIT.to_f64(), i % dims);
            Err(coords
                .corrupt(i, format!("{value:e} on axis {axis}, where magnitudes are at most {limit:e}")))
        }
    }
}

impl<P: Point> Index for KdTree<P> {
    const KIND: &'static str = "kdtree";
    type Point = P;

    fn show(&self, write: &mut dyn FnMut(&Contents<'_>) -> Result<()>) -> Result<()> {
        let Stored { coords, ids, axes } = self.backend().stored()?;
        write(&Contents {
            num_points: ids.len(),
            num_nodes: ids.len(),
            sections: &[
                ("coords", bytemuck::cast_slice(&coords)),
                ("ids", bytemuck::cast_slice(&ids)),
                ("axes", &axes),
            ],
        })
    }

    fn from_file(device: &Device, file: IndexFile, mut stats: Stats) -> Result<Self> {
        let storage = match device.gpu() {
            None => Storage::Cpu(P::Coord::loaded_cpu_tree(file, dims::<P>(), &mut stats)?),
            Some(gpu) => Storage::Gpu(P::Coord::loaded_gpu_tree(gpu, file, dims::<P>(), &mut stats)?),
        };
        Ok(Self::of(device.clone(), stats, storage))
    }
}

files_of_index! {
    KdTree<P: Point>;
    checks: "and that axes are there. [`verify`](Self::verify) checks the order of points too.";
    memory: "1 bit a point.";
}

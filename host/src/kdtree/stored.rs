//! Left-balanced trees in files.

use kauri_kernels::thread::coord::Coord;
use std::borrow::Cow;

use crate::device::Device;
use crate::error::Result;
use crate::kdtree::gpu::GpuTree;
use crate::kdtree::{KdTree, SplitRule, Storage, Storages, cpu, num_axes};
use crate::memory::Items;
use crate::point::{Dispatch, NoValue, Point, Typed, dims, first_unusable, is_usable, with_coordinate};
use crate::query::ids;
use crate::stats::Stats;
use crate::stored::{Contents, IndexFile, Section, Stored, files_of_index};

/// What a file holds of a tree, in level order on every device.
pub(crate) struct Sections<'a, C: Coord> {
    pub(crate) coords: Cow<'a, [C]>,
    pub(crate) ids: Cow<'a, [u32]>,
    /// The axes of nodes that have children; empty if they go by levels.
    pub(crate) axes: Cow<'a, [u8]>,
}

/// The same of a file, checked: every id once, coordinates within their limits, axes that there are.
pub(crate) struct Loaded<C> {
    pub(crate) coords: Items<C>,
    pub(crate) ids: Items<u32>,
    pub(crate) axes: Items<u8>,
}

impl<C: Coord> Loaded<C> {
    pub(crate) fn of_file(mut file: IndexFile, dims: usize) -> Result<Self> {
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

impl<P: Point> Stored for KdTree<P> {
    const KIND: &'static str = "kdtree";
    type Point = P;

    fn contents(&self, write: &mut dyn FnMut(&Contents<'_>) -> Result<()>) -> Result<()> {
        let Sections { coords, ids, axes } = self.backend().stored()?;
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
        let storage = load(P::Coord::TYPE, device, file, dims::<P>(), &mut stats)?;
        Ok(Self::of(device.clone(), stats, P::Coord::unwrap(storage)))
    }
}

/// The tree of a file on a device.
fn load(
    coordinate: Typed<NoValue>,
    device: &Device,
    file: IndexFile,
    dims: usize,
    stats: &mut Stats,
) -> Result<Typed<Storages>> {
    Ok(with_coordinate!(coordinate, C, () => {
        let nodes = stats.phase("check", || Loaded::<C>::of_file(file, dims))?;
        match device.gpu() {
            None => Storage::Cpu(Box::new(cpu::loaded(nodes, dims))),
            Some(gpu) => Storage::Gpu(Box::new(GpuTree::loaded(gpu, &nodes, dims, stats)?)),
        }
    }))
}

files_of_index! {
    KdTree<P: Point>;
    checks: "and that axes are there. [`verify`](Self::verify) checks the order of points too.";
    memory: "1 bit a point.";
}

//! Files of left-balanced trees.

use kauri_kernels::thread::coord::{Coord, Float};

use crate::device::{Device, gpu_of};
use crate::error::Result;
use crate::kdtree::backend::{FileNodes, Sections};
use crate::kdtree::gpu::GpuTree;
use crate::kdtree::{KdTree, SplitRule, Storage, Storages, cpu};
use crate::point::{Dispatch, NoValue, Point, Typed, dims, first_unusable, is_usable, with_coordinate};
use crate::query::ids;
use crate::stats::Stats;
use crate::stored::{Contents, IndexFile, Section, Stored, files_of_index};

impl<C: Coord> FileNodes<C> {
    /// Reads the nodes of a file, and checks that each id occurs once, coordinates are within their limits, and axes exist.
    fn of_file(mut file: IndexFile, dims: usize) -> Result<Self> {
        let num_points = file.num_points()?;
        file.num_nodes(num_points..=num_points)?;
        let coords = file.section("coords", &[num_points * dims])?;
        let node_ids = file.section("ids", &[num_points])?;
        let axes: Section<u8> = file.section("axes", &[0, SplitRule::Widest.num_stored_axes(num_points)])?;
        file.end()?;
        check_coords(&coords, dims)?;
        if let Some((node, what)) = ids::first_invalid(&node_ids.items)? {
            return Err(node_ids.corrupt(node, what));
        }
        if let Some(node) = first_unusable(&axes.items, |axis| usize::from(axis) < dims) {
            let what = format!("axis {}, but there are {dims}", axes.items[node]);
            return Err(axes.corrupt(node, what));
        }
        Ok(Self { dims, coords: coords.items, ids: node_ids.items, axes: axes.items })
    }
}

/// Checks that the coordinates of a file are finite and small enough for distances not to overflow.
pub(crate) fn check_coords<C: Coord>(coords: &Section<C>, dims: usize) -> Result<()> {
    match first_unusable(&coords.items, is_usable) {
        None => Ok(()),
        Some(i) => {
            let (value, limit, axis) = (coords.items[i].to_f64(), C::Distance::LIMIT.to_f64(), i % dims);
            Err(coords
                .corrupt(i, format!("{value:e} on axis {axis}, where magnitudes are at most {limit:e}")))
        }
    }
}

impl<P: Point> Stored for KdTree<P> {
    const KIND: &'static str = "kdtree";
    type Point = P;
    type Coord = P::Coord;

    fn contents(&self, write: &mut dyn FnMut(&Contents<'_>) -> Result<()>) -> Result<()> {
        self.backend().sections(&mut |Sections { coords, ids, axes }| {
            write(&Contents {
                num_points: ids.len(),
                num_nodes: ids.len(),
                sections: &[
                    ("coords", bytemuck::cast_slice(coords)),
                    ("ids", bytemuck::cast_slice(ids)),
                    ("axes", axes),
                ],
            })
        })
    }

    fn from_file(device: &Device, file: IndexFile, mut stats: Stats) -> Result<Self> {
        let storage = load(P::Coord::TYPE, device, file, dims::<P>(), &mut stats)?;
        Ok(Self::from_parts(device.clone(), stats, P::Coord::unwrap(storage)))
    }
}

/// Loads the tree of a file to a device.
fn load(
    coordinate: Typed<NoValue>,
    device: &Device,
    file: IndexFile,
    dims: usize,
    stats: &mut Stats,
) -> Result<Typed<Storages>> {
    Ok(with_coordinate!(coordinate, C, () => {
        let nodes = stats.phase("check", || FileNodes::<C>::of_file(file, dims))?;
        match gpu_of!(device) {
            None => Storage::Cpu(Box::new(stats.phase("order", || cpu::of_nodes(nodes))?)),
            Some(gpu) => Storage::Gpu(Box::new(GpuTree::from_nodes(gpu, &nodes, stats)?)),
        }
    }))
}

files_of_index! {
    KdTree<P: Point>;
    checks: "and that axes are there. [`verify`](Self::verify) checks the order of points too.";
    memory: "1 bit a point. On the CPU a k-d tree orders the points anew: it takes the memory of the file again, and does not keep the file.";
}

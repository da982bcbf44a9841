//! Files of balanced trees.

use kauri_kernels::balanced::{NONE, Run, medians_len};
use kauri_kernels::query::left_balanced::{full_tree, level};
use kauri_kernels::thread::coord::Float;

use crate::balanced::backend::{Backend, Sections};
use crate::balanced::cpu::CpuTree;
use crate::balanced::gpu::GpuTree;
use crate::balanced::{Backends, BalancedKdTree};
use crate::device::{Device, gpu_of};
use crate::error::Result;
use crate::kdtree::stored::check_coords;
use crate::once::Once;
use crate::parallel::{self, TASK_ITEMS};
use crate::point::{Dispatch, DistanceOf, NoValue, Point, Typed, dims, with_float};
use crate::query::ids;
use crate::stats::Stats;
use crate::stored::{Contents, IndexFile, Section, Stored, files_of_index};

impl<C: Float> CpuTree<C> {
    /// Reads the tree of a file, and checks that the medians have the shape of a balanced tree with one node per kept point, and that
    /// removed points equal their representatives.
    fn of_file(mut file: IndexFile, dims: usize) -> Result<Self> {
        let num_points = file.num_points()?;
        let num_nodes = file.num_nodes(num_points.min(1)..=num_points)?;
        let coords = file.section("coords", &[num_points * dims])?;
        let medians = file.section("medians", &[medians_len(num_nodes as u32)])?;
        let num_representatives = if num_nodes < num_points { num_points } else { 0 };
        let representatives = file.section("stays", &[num_representatives])?;
        file.end()?;
        check_coords(&coords, dims)?;
        check_representatives(&representatives, &coords.items, dims, num_nodes)?;
        check_medians(&medians, &representatives.items, num_nodes, num_points)?;
        let (coords, medians, representatives) = (coords.items.into(), medians.items, representatives.items);
        Ok(Self { dims, coords, num_nodes, medians, representatives, index: Once::new() })
    }
}

/// Checks that each representative represents itself, comes no later than its points and equals them, and that there is one per node.
fn check_representatives<C: Float>(
    representatives: &Section<u32>,
    coords: &[C],
    dims: usize,
    num_nodes: usize,
) -> Result<()> {
    let point = |id: usize| &coords[id * dims..(id + 1) * dims];
    let wrong = |id: usize| {
        let kept = representatives.items[id];
        let kept_id = kept as usize;
        if kept_id > id || representatives.items[kept_id] != kept {
            let what = "comes later or does not stand for itself";
            return Some((id, format!("point {kept} stands for point {id}, but {what}")));
        }
        // Compares values rather than bits: -0.0 equals 0.0.
        let differs = point(kept_id) != point(id);
        differs.then(|| (id, format!("point {kept} stands for point {id}, but differs from it")))
    };
    if let Some((id, what)) = parallel::find_some(representatives.items.len(), TASK_ITEMS, wrong) {
        return Err(representatives.corrupt(id, what));
    }
    let num_kept =
        representatives.items.iter().enumerate().filter(|&(id, &kept)| id == kept as usize).count();
    if !representatives.items.is_empty() && num_kept != num_nodes {
        return Err(representatives
            .corrupt(0, format!("{num_kept} points were kept, but there are {num_nodes} nodes")));
    }
    Ok(())
}

/// Checks that the nodes are at the addresses of a balanced tree, and that each has a different kept point.
fn check_medians(
    medians: &Section<u32>,
    representatives: &[u32],
    num_nodes: usize,
    num_points: usize,
) -> Result<()> {
    let wrong = |slot: usize| {
        let (id, level) = (medians.items[slot], level(slot as u32));
        let run = Run::of(slot as u32 - full_tree(level), level, num_nodes as u32);
        if (run.len == 0) != (id == NONE) {
            return Some((slot, format!("the entry is {id}, but the subtree has {} points", run.len)));
        }
        if id != NONE && id as usize >= num_points {
            return Some((slot, format!("id {id}, but there are {num_points} points")));
        }
        let is_kept = representatives.get(id as usize).is_none_or(|&kept| kept == id);
        (!is_kept).then(|| (slot, format!("id {id}, but that point was removed")))
    };
    if let Some((slot, what)) = parallel::find_some(medians.items.len(), TASK_ITEMS, wrong) {
        return Err(medians.corrupt(slot, what));
    }
    match ids::first_duplicate(&medians.items, num_points)? {
        Some(slot) => {
            let what = format!("id {} is also the id of another node", medians.items[slot]);
            Err(medians.corrupt(slot, what))
        }
        None => Ok(()),
    }
}

/// Loads the tree of a file to a device.
fn load(
    coordinate: Typed<NoValue>,
    device: &Device,
    file: IndexFile,
    dims: usize,
    stats: &mut Stats,
) -> Result<Typed<Backends>> {
    Ok(with_float!(coordinate, C, () => {
        let tree = stats.phase("check", || CpuTree::<C>::of_file(file, dims))?;
        match gpu_of!(device) {
            None => Box::new(tree) as Box<dyn Backend<C>>,
            Some(gpu) => Box::new(stats.phase("upload", || GpuTree::from_host(gpu, &tree))?),
        }
    }))
}

impl<P: Point> Stored for BalancedKdTree<P> {
    const KIND: &'static str = "balanced";
    type Point = P;
    type Coord = DistanceOf<P>;

    fn contents(&self, write: &mut dyn FnMut(&Contents<'_>) -> Result<()>) -> Result<()> {
        let Sections { coords, medians, representatives } = self.tree.sections()?;
        write(&Contents {
            num_points: self.num_points,
            num_nodes: self.len(),
            sections: &[
                ("coords", bytemuck::cast_slice(&coords)),
                ("medians", bytemuck::cast_slice(&medians)),
                ("stays", bytemuck::cast_slice(&representatives)),
            ],
        })
    }

    fn from_file(device: &Device, file: IndexFile, mut stats: Stats) -> Result<Self> {
        let num_points = file.num_points()?;
        let tree =
            DistanceOf::<P>::unwrap(load(DistanceOf::<P>::TYPE, device, file, dims::<P>(), &mut stats)?);
        Ok(Self::from_parts(vec![device.clone()], stats, num_points, tree))
    }
}

files_of_index! {
    BalancedKdTree<P: Point>;
    checks: "and that nodes are where they must be. [`verify`](Self::verify) checks the order of points too.";
    memory: "1 bit a point.";
}

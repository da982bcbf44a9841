//! Balanced trees in files.

use kauri_kernels::balanced::{NONE, Run, medians_len};
use kauri_kernels::query::left_balanced::{full_tree, level};
use kauri_kernels::thread::coord::Coord;
use rayon::prelude::*;
use std::borrow::Cow;
use std::marker::PhantomData;

use crate::balanced::{BalancedKdTree, BalancedTree, Trees, cpu, gpu};
use crate::device::Device;
use crate::error::Result;
use crate::kdtree::stored::check_coords;
use crate::memory::Items;
use crate::point::{Dispatch, NoValue, Point, Typed, dims, with_coordinate};
use crate::query::ids;
use crate::stats::Stats;
use crate::stored::{Contents, IndexFile, Section, Stored, files_of_index};

/// What a file holds of a tree.
pub struct Sections<'a, C: Coord> {
    /// In the order of ids.
    pub(crate) coords: Cow<'a, [C]>,
    /// The node at each address of each level, or [`NONE`].
    pub(crate) medians: Cow<'a, [u32]>,
    /// Of each point the one that stays for it; empty if all do.
    pub(crate) stays: Cow<'a, [u32]>,
}

/// The same of a file, checked.
pub(crate) struct Loaded<C> {
    pub(crate) num_nodes: usize,
    pub(crate) coords: Items<C>,
    pub(crate) medians: Items<u32>,
    pub(crate) stays: Items<u32>,
}

impl<C: Coord> Loaded<C> {
    /// Reads a tree whose nodes are where a balanced tree has them, one for each point that stays; removed points are equal to those that stay.
    fn of_file(mut file: IndexFile, dims: usize) -> Result<Self> {
        let num_points = file.num_points()?;
        let num_nodes = file.num_nodes(num_points.min(1)..=num_points)?;
        let coords = file.section("coords", &[num_points * dims])?;
        let medians = file.section("medians", &[medians_len(num_nodes as u32)])?;
        let num_stays = if num_nodes < num_points { num_points } else { 0 };
        let stays = file.section("stays", &[num_stays])?;
        file.end()?;
        check_coords(&coords, dims)?;
        check_stays(&stays, &coords.items, dims, num_nodes)?;
        check_medians(&medians, &stays.items, num_nodes, num_points)?;
        let (coords, medians) = (coords.items, medians.items);
        Ok(Self { num_nodes, coords, medians, stays: stays.items })
    }
}

/// Points that stay do so for themselves, are as many as nodes, and equal to those that they stay for.
fn check_stays<C: Coord>(stays: &Section<u32>, coords: &[C], dims: usize, num_nodes: usize) -> Result<()> {
    let point = |id: usize| &coords[id * dims..(id + 1) * dims];
    let wrong = |id: usize, of: u32| {
        let of_id = of as usize;
        if of_id > id || stays.items[of_id] != of {
            return Some(format!("point {of} stays for point {id}, but not for itself or not before it"));
        }
        // Not a comparison of bits: -0.0 equals 0.0.
        (point(of_id) != point(id)).then(|| format!("point {of} stays for point {id}, which is another"))
    };
    let first = stays.items.par_iter().enumerate().find_map_first(|(id, &of)| Some((id, wrong(id, of)?)));
    if let Some((id, what)) = first {
        return Err(stays.corrupt(id, what));
    }
    let staying = stays.items.par_iter().enumerate().filter(|&(id, &of)| id == of as usize).count();
    if !stays.items.is_empty() && staying != num_nodes {
        return Err(stays.corrupt(0, format!("{staying} points stay, for {num_nodes} nodes")));
    }
    Ok(())
}

/// There is a node at the addresses that a balanced tree has, and each is another point of those that stay.
fn check_medians(medians: &Section<u32>, stays: &[u32], num_nodes: usize, num_points: usize) -> Result<()> {
    let wrong = |place: usize, id: u32| {
        let on = level(place as u32);
        let run = Run::of(place as u32 - full_tree(on), on, num_nodes as u32);
        if (run.len == 0) != (id == NONE) {
            return Some(format!("there is {id}, and {} points are left for the subtree", run.len));
        }
        if id != NONE && id as usize >= num_points {
            return Some(format!("id {id}, but there are {num_points} points"));
        }
        let stays = stays.get(id as usize).is_none_or(|&of| of == id);
        (!stays).then(|| format!("id {id}, but that point was removed"))
    };
    let nodes = medians.items.par_iter().enumerate();
    if let Some((place, what)) = nodes.find_map_first(|(place, &id)| Some((place, wrong(place, id)?))) {
        return Err(medians.corrupt(place, what));
    }
    match ids::first_twice(&medians.items, num_points)? {
        Some(place) => {
            let what = format!("id {} is also the id of another node", medians.items[place]);
            Err(medians.corrupt(place, what))
        }
        None => Ok(()),
    }
}

/// The tree of a file on a device.
fn load(
    coordinate: Typed<NoValue>,
    device: &Device,
    file: IndexFile,
    dims: usize,
    stats: &mut Stats,
) -> Result<Typed<Trees>> {
    Ok(with_coordinate!(coordinate, C, () => {
        let loaded = stats.phase("check", || Loaded::<C>::of_file(file, dims))?;
        match device.gpu() {
            None => Box::new(cpu::CpuTree::loaded(loaded, dims)) as Box<dyn BalancedTree<C>>,
            Some(gpu) => Box::new(stats.phase("upload", || gpu::GpuTree::loaded(gpu, &loaded, dims))?),
        }
    }))
}

impl<P: Point> Stored for BalancedKdTree<P> {
    const KIND: &'static str = "balanced";
    type Point = P;

    fn contents(&self, write: &mut dyn FnMut(&Contents<'_>) -> Result<()>) -> Result<()> {
        let Sections { coords, medians, stays } = self.tree.stored()?;
        write(&Contents {
            num_points: self.num_points,
            num_nodes: self.len(),
            sections: &[
                ("coords", bytemuck::cast_slice(&coords)),
                ("medians", bytemuck::cast_slice(&medians)),
                ("stays", bytemuck::cast_slice(&stays)),
            ],
        })
    }

    fn from_file(device: &Device, file: IndexFile, mut stats: Stats) -> Result<Self> {
        let num_points = file.num_points()?;
        let tree = P::Coord::unwrap(load(P::Coord::TYPE, device, file, dims::<P>(), &mut stats)?);
        Ok(Self { devices: vec![device.clone()], stats, num_points, tree, points: PhantomData })
    }
}

files_of_index! {
    BalancedKdTree<P: Point>;
    checks: "and that nodes are where they must be. [`verify`](Self::verify) checks the order of points too.";
    memory: "1 bit a point.";
}

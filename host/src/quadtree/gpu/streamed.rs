//! Trees of points and nodes that the device has no room for: they stay in host memory, and go through the device part by part.
//!
//! The points are counted by the cells of an upper level, chunk by chunk, which gives the nodes above; these are the roots of parts, which
//! are put into batches that the device has room for. The points of each batch are brought to where they are in the tree, chunk by
//! chunk again, and then one batch after another is built there. Of several chunks, or batches, one is on its way to the device
//! while another is worked on and a third is on its way back.
//!
//! Gluck 2014 splits the upper levels on the CPU instead, until the largest node fits; then every node of that level is a root in turn.
//! Where the nodes of a part do not fit he cuts its list of parents; here it is cut in two, or split one level further.

mod batch;
mod chunks;
mod lanes;
mod top;

use crate::device::{Buffer, Gpu, Stream};
use crate::error::{Error, Result};
use crate::memory::{self, Parts};
use crate::once::Once;
use crate::primitives::cpu::bounds::bounds;
use crate::progress::Progress;
use crate::quadtree::host::{HostTree, Levels, NodeWords};
use crate::quadtree::{OutOfCore, QuadtreeOptions, cpu, frame_over};
use crate::query::cpu::Corners;
use crate::stats::Stats;
use kauri_kernels::quadtree::frame::Frame;
use kauri_kernels::quadtree::node::Node;
use kauri_kernels::thread::coord::Coord;
use lanes::Lanes;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ops::Range;
use top::{Batch, Top};

/// One on its way to the device, one that is worked on, one on its way back.
const LANES: usize = 3;
/// Page-locked memory of each, at most: making more of it takes longer than it saves.
const STAGED_BYTES: u64 = 8 << 20;
/// Fewer points than that are always tried.
const LEAST_POINTS: usize = 1 << 8;
/// More points do not go to the device at one time.
const CHUNK_LIMIT: usize = 1 << 30;
/// Points that are even have so many cells in a batch.
const PARTS_OF_A_BATCH: usize = 16;
/// Bits of the number of a cell that is counted, at most.
const COUNTED_BITS: u32 = 20;

/// A tree, and its points.
type Built<C, const D: usize> = (Levels<D>, Vec<C>, Vec<u32>);

/// A tree that is being built.
struct Streamed<'a, C, const D: usize> {
    gpu: &'a Gpu,
    options: &'a QuadtreeOptions,
    frame: Frame<D>,
    /// Levels below the root.
    depth: u32,
    /// Bytes of the device.
    bytes: u64,
    coords: PhantomData<C>,
}

/// Points in host memory, of which nothing says their ids if these are their places.
#[derive(Clone, Copy)]
struct Points<'a, C> {
    coords: &'a [C],
    ids: Option<&'a [u32]>,
}

/// Where the points of a tree are put: its coordinates and ids.
struct Room<'a, C> {
    coords: Parts<'a, C>,
    ids: Parts<'a, u32>,
}

/// A node and its points in the tree, below which nothing is built yet.
struct Base<const D: usize> {
    level: u32,
    corner: [u32; D],
    points: Range<usize>,
}

/// Builds the tree over points in host memory.
pub(crate) fn build<C: Coord, const D: usize>(
    gpu: &Gpu,
    points: &[[C; D]],
    options: &QuadtreeOptions,
    progress: &mut dyn Progress,
    stats: &mut Stats,
) -> Result<HostTree<C>> {
    let n = points.len();
    let frame = stats.phase("bounds", || frame_over(bounds(points), points.is_empty(), options.max_depth))?;
    // Allocations are rounded up, and a sixteenth is for what is on its way.
    let free = gpu.free_memory()?;
    let (bytes, staged_bytes) = (free / 8 * 7, (free / 16 / LANES as u64).min(STAGED_BYTES));
    let depth = frame.levels.min(options.max_depth);
    let streamed = Streamed::<C, D> { gpu, options, frame, depth, bytes, coords: PhantomData };
    let (levels, coords, ids) = match options.out_of_core {
        OutOfCore::CpuTop => streamed.by_cpu(points, staged_bytes, progress, stats)?,
        _ => {
            let mut ids = memory::vec_with_capacity(n, "ids of points")?;
            let mut coords = memory::vec_with_capacity(n * D, "points in the order of a quadtree")?;
            let room = Room {
                coords: Parts::new(&mut coords.spare_capacity_mut()[..n * D]),
                ids: Parts::new(&mut ids.spare_capacity_mut()[..n]),
            };
            let root = Base { level: 0, corner: [0; D], points: 0..n };
            let from = Points { coords: points.as_flattened(), ids: None };
            let mut lanes = Lanes::new(LANES, staged_bytes, progress);
            let levels = stats
                .phase("parts", || streamed.part(&mut lanes, &root, from, &room, streamed.fits(LANES)))?;
            // SAFETY: all parts have been written.
            unsafe {
                ids.set_len(n);
                coords.set_len(n * D);
            }
            (levels, coords, ids)
        }
    };
    let (nodes, cells, level_begins) = stats.phase("nodes", || levels.into_tree())?;
    stats.temp_bytes = gpu.memory_use().peak_bytes;
    Ok(HostTree {
        frame: frame.to_words().collect(),
        dims: D,
        options: options.clone(),
        nodes: NodeWords::of_nodes(nodes),
        cells,
        level_begins,
        coords: coords.into(),
        ids: ids.into(),
        corners: Corners::new(),
        deep_leaves: Once::new(),
    })
}

impl<C: Coord, const D: usize> Streamed<'_, C, D> {
    /// Gluck's way: the CPU splits upper levels, and of the last of them one node after another goes to the device.
    fn by_cpu(
        &self,
        points: &[[C; D]],
        staged_bytes: u64,
        progress: &mut dyn Progress,
        stats: &mut Stats,
    ) -> Result<Built<C, D>> {
        let (most, fits) = (self.options.leaf_points, self.fits(1));
        let (tree, cpu::Points { mut coords, mut ids }) = stats.phase("levels by the CPU", || {
            cpu::levels::build(points, &self.frame, self.depth, most, fits.try_into().unwrap_or(u32::MAX))
        })?;
        let top = Top::of_tree(tree, |node| self.splits(node));
        let batches = top.batches(0);
        // SAFETY: points are brought from one place of their batch to another.
        let (coords_room, ids_room) = unsafe { (as_room(&mut coords), as_room(&mut ids)) };
        let room = Room { coords: Parts::new(coords_room), ids: Parts::new(ids_room) };
        let mut lanes = Lanes::new(1, staged_bytes, progress);
        let levels = stats.phase("parts", || self.below(&mut lanes, top, &batches, &room))?;
        Ok((levels, coords, ids))
    }

    /// Builds a node and all below it, whose points are brought to their room from elsewhere.
    fn part(
        &self,
        lanes: &mut Lanes<'_>,
        base: &Base<D>,
        from: Points<'_, C>,
        room: &Room<'_, C>,
        fits: usize,
    ) -> Result<Levels<D>> {
        let num_levels = self.counted_levels(base, fits);
        let counts = self.count(lanes, base, from, num_levels, fits)?;
        let top = Top::new(base, &counts, num_levels, fits, self.frame.levels, |node| self.splits(node))?;
        let batches = top.batches(fits);
        self.distribute(lanes, &top, &batches, from, room, fits)?;
        self.below(lanes, top, &batches, room)
    }

    /// Builds what is below upper levels.
    fn below(
        &self,
        lanes: &mut Lanes<'_>,
        mut top: Top<D>,
        batches: &[Batch],
        room: &Room<'_, C>,
    ) -> Result<Levels<D>> {
        let pieces: Vec<_> = batches.iter().map(|batch| batch.points.clone()).collect();
        let built =
            lanes.run(self.gpu, "subtrees", &pieces, |lane, i| self.batch(lane, &top, &batches[i], room))?;
        for (batch, built) in batches.iter().zip(built) {
            let built = match built {
                Ok(levels) => vec![(batch.clone(), levels)],
                Err(error) => self.cut(lanes, &top, batch, room, error, false)?,
            };
            for (batch, below) in built {
                top.put_below(&batch, below)?;
            }
        }
        Ok(top.into_levels())
    }

    /// Builds a batch whose nodes the device has no room for: alone, then in halves, and at last a single root by its parts. The points of
    /// roots may follow each other already, as they have to in halves.
    fn cut(
        &self,
        lanes: &mut Lanes<'_>,
        top: &Top<D>,
        batch: &Batch,
        room: &Room<'_, C>,
        error: Error,
        is_in_order: bool,
    ) -> Result<Vec<(Batch, Levels<D>)>> {
        lanes.release();
        let pieces = [batch.points.clone()];
        let mut alone =
            lanes.run(self.gpu, "subtrees", &pieces, |lane, _| self.batch(lane, top, batch, room))?;
        if let Some(Ok(levels)) = alone.pop() {
            return Ok(vec![(batch.clone(), levels)]);
        }
        // As many in each part of a part, if they are so near each other that they share the cells of many levels.
        let fits = self.fits(LANES).min(batch.points.len() / 2).max(LEAST_POINTS);
        // SAFETY: the points of the batch have been written, and nobody else uses them.
        let (coords, ids) = unsafe { room.points::<D>(&batch.points) };
        if let Some(halves) = top.halves(batch) {
            if !is_in_order {
                let (coords, ids) = (copy(coords)?, copy(ids)?);
                let from = Points { coords: &coords, ids: Some(&ids) };
                self.distribute(lanes, top, &top.alone(batch), from, room, fits)?;
            }
            let mut built = Vec::new();
            for half in halves {
                let error = no_room("nodes of a quadtree");
                built.extend(self.cut(lanes, top, &half, room, error, true)?);
            }
            return Ok(built);
        }
        if batch.points.len() / 2 < LEAST_POINTS {
            return Err(error);
        }
        let Some(base) = top.base(batch) else { return Err(error) };
        let (coords, ids) = (copy(coords)?, copy(ids)?);
        let from = Points { coords: &coords, ids: Some(&ids) };
        Ok(vec![(batch.clone(), self.part(lanes, &base, from, room, fits)?)])
    }

    /// True if a node is to split.
    fn splits(&self, node: &Node) -> bool {
        node.len() > self.options.leaf_points && node.level < self.depth
    }

    /// Points of a batch that the device has room for, beside the others that are on their way.
    fn fits(&self, num_lanes: usize) -> usize {
        // As they came and as they go, ids and what is sorted; a quarter is for nodes.
        let point_bytes = 2 * D * size_of::<C>() + 44;
        let points = self.bytes / num_lanes as u64 / 4 * 3 / point_bytes as u64;
        (points as usize).clamp(LEAST_POINTS, CHUNK_LIMIT)
    }

    /// Levels below a node whose cells are counted: so that a cell of even points is a small part of a batch.
    fn counted_levels(&self, base: &Base<D>, fits: usize) -> u32 {
        let parts = (PARTS_OF_A_BATCH * base.points.len()).div_ceil(fits).max(2);
        let levels = (usize::BITS - (parts - 1).leading_zeros()).div_ceil(D as u32);
        levels.min(COUNTED_BITS / D as u32).min(self.depth - base.level)
    }

    /// The frame's words on the device.
    fn frame_on(&self, stream: &Stream) -> Result<Buffer<u64>> {
        let words: Vec<u64> = self.frame.to_words().collect();
        Buffer::from_slice(stream, &words, "quadtree frame")
    }
}

impl<'a, C: Copy> Room<'a, C> {
    /// The coordinates and ids at some places.
    ///
    /// # Safety
    /// They have been written, and nobody writes them as long as they are used.
    unsafe fn points<const D: usize>(&self, places: &Range<usize>) -> (&'a [C], &'a [u32]) {
        // SAFETY: passed on to the caller.
        unsafe {
            let coords = self.coords.part(places.start * D..places.end * D);
            (coords.assume_init_ref(), self.ids.part(places.clone()).assume_init_ref())
        }
    }
}

/// Items as room for others.
///
/// # Safety
/// Nothing but items is written there: they are items again when the borrow ends.
unsafe fn as_room<T: Copy>(items: &mut [T]) -> &mut [MaybeUninit<T>] {
    // SAFETY: of one layout; the rest is passed on to the caller.
    unsafe { std::slice::from_raw_parts_mut(items.as_mut_ptr().cast(), items.len()) }
}

fn copy<T: Copy>(items: &[T]) -> Result<Vec<T>> {
    let mut copy = memory::vec_with_capacity(items.len(), "points on their way through the device")?;
    copy.extend_from_slice(items);
    Ok(copy)
}

fn no_room(label: &'static str) -> Error {
    Error::OutOfMemory { memory: "device", requested: 0, free: 0, label }
}

//! Out-of-core builds: points and nodes stay in host memory, or the points in files, and the device works on parts of them.
//!
//! 1. Count: the points stream through the device chunk by chunk, and are counted by the cells of an upper level. The counts give the nodes
//!    above these cells. Nodes whose points fit on the device become roots.
//! 2. Distribute: the points stream through the device again, and are written to the ranges of their roots. The counts of the chunks give
//!    the slot of each point, so that they stay in input order.
//! 3. Build: consecutive roots form batches; the device builds the subtrees batch by batch.
//!
//! Several lanes run side by side, so that one chunk or batch is uploaded while another is worked on and a third is downloaded.
//!
//! Gluck 2014 instead splits the upper levels on the CPU until the largest node fits, and then builds the subtree of one node at a time
//! (`OutOfCore::CpuTop`). Where the nodes of a subtree do not fit, he cuts the list of parents; here the batch is halved, or its root is
//! split one level further.

mod batch;
mod chunks;
pub(crate) mod columns;
#[cfg(feature = "research")]
mod cpu_top;
mod lanes;
mod top;

use crate::device::Gpu;
use crate::error::Result;
use crate::memory::{self, Parts};
use crate::primitives::cpu::bounds::bounds;
use crate::progress::Progress;
use crate::quadtree::frame::frame_of_bounds;
use crate::quadtree::host::{HostTree, Levels};
use crate::quadtree::node::{OrderedPoints, Part};
#[cfg(feature = "research")]
use crate::quadtree::options::OutOfCore;
use crate::quadtree::options::QuadtreeOptions;
use crate::stats::Stats;
use columns::{InputColumn, OutputColumn};
use kauri_kernels::quadtree::frame::Frame;
use kauri_kernels::quadtree::node::Node;
use kauri_kernels::thread::coord::Coord;
use lanes::Lanes;
use std::marker::PhantomData;
use std::ops::Range;
use top::{Batch, Root, TopNodes};

/// Number of lanes of a device: one uploads, one works, one downloads.
const LANES: usize = 3;
/// A batch of fewer points is always tried.
const MIN_POINTS: usize = 1 << 8;
/// Most points on the device at one time.
const MAX_POINTS: usize = 1 << 30;
/// Number of cells per batch for evenly spread points.
const CELLS_PER_BATCH: usize = 16;
/// Most bits of the code of a counted cell.
const MAX_CELL_BITS: u32 = 20;

/// An out-of-core build in progress.
struct StreamedBuild<'a, C, const D: usize> {
    options: &'a QuadtreeOptions,
    frame: Frame<D>,
    /// Number of levels below the root.
    depth: u32,
    /// Memory of each device to use.
    bytes: u64,
    coords: PhantomData<C>,
}

/// The points to build a tree over. Without ids, the id of a point is its index.
#[derive(Clone, Copy)]
pub(crate) struct InputPoints<'a, C> {
    pub(crate) len: usize,
    pub(crate) coords: InputColumn<'a, C>,
    pub(crate) ids: Option<InputColumn<'a, u32>>,
}

/// The coordinates and ids of the tree, which several threads write.
pub(crate) struct TreePoints<'a, C> {
    pub(crate) coords: OutputColumn<'a, C>,
    pub(crate) ids: OutputColumn<'a, u32>,
}

/// Builds the tree over points in host memory.
pub(crate) fn build<C: Coord, const D: usize>(
    gpus: &[Gpu],
    points: &[[C; D]],
    options: &QuadtreeOptions,
    progress: &mut dyn Progress,
    stats: &mut Stats,
) -> Result<HostTree<C>> {
    let frame = stats.phase("bounds", || frame_of_bounds(bounds(points), points.is_empty(), options))?;
    #[cfg(feature = "research")]
    if options.out_of_core == OutOfCore::CpuTop {
        let build = StreamedBuild::new(gpus, &frame, options)?;
        let (levels, ordered) = build.with_cpu_top(gpus, points, progress, stats)?;
        let part = stats.phase("nodes", || levels.into_part())?;
        stats.temp_bytes = peak_bytes(gpus);
        return Ok(HostTree::new(&frame, options, part, ordered));
    }
    let n = points.len();
    let mut ids = memory::vec_with_capacity(n, "ids of points")?;
    let mut coords = memory::vec_with_capacity(n * D, "points in the order of a quadtree")?;
    let input = InputPoints { len: n, coords: InputColumn::Memory(points.as_flattened()), ids: None };
    let output = TreePoints {
        coords: OutputColumn::Memory(Parts::new(&mut coords.spare_capacity_mut()[..n * D])),
        ids: OutputColumn::Memory(Parts::new(&mut ids.spare_capacity_mut()[..n])),
    };
    let part = build_nodes(gpus, input, &output, &frame, options, progress, stats)?;
    // SAFETY: the build has written the points of all roots, which are all points.
    unsafe {
        ids.set_len(n);
        coords.set_len(n * D);
    }
    Ok(HostTree::new(&frame, options, part, OrderedPoints { coords, ids }))
}

/// Builds the nodes of the tree over `input`, and writes its points in tree order to `output`, which has room for them.
pub(crate) fn build_nodes<C: Coord, const D: usize>(
    gpus: &[Gpu],
    input: InputPoints<'_, C>,
    output: &TreePoints<'_, C>,
    frame: &Frame<D>,
    options: &QuadtreeOptions,
    progress: &mut dyn Progress,
    stats: &mut Stats,
) -> Result<Part<D>> {
    let build = StreamedBuild::<C, D>::new(gpus, frame, options)?;
    let point_bytes = (D * size_of::<C>() + size_of::<u32>()) as u64;
    let mut lanes = Lanes::new(gpus, LANES, point_bytes, progress);
    let levels = stats.phase("parts", || {
        let node = Node { start: 0, end: input.len as u32, first_child: 0, level: 0 };
        let root = Root { node, corner: [0; D], splits: build.splits(&node), cells: 0..1 };
        build.build_subtree(&mut lanes, &root, input, output, build.max_points(LANES))
    })?;
    let part = stats.phase("nodes", || levels.into_part())?;
    stats.temp_bytes = peak_bytes(gpus);
    Ok(part)
}

/// Returns the most bytes that a device has held.
fn peak_bytes(gpus: &[Gpu]) -> u64 {
    gpus.iter().map(|gpu| gpu.memory_use().peak_bytes).max().unwrap_or(0)
}

/// Returns an upper bound of the device memory of a build: the memory that is free, or what all points take at once.
pub(crate) fn temp_bytes(gpu: &Gpu, num_points: u64, in_core_bytes: u64) -> u64 {
    // Beside the memory of an in-core build: ids in the order of input and in tree order.
    let id_bytes = 2 * num_points * size_of::<u32>() as u64;
    let bytes = in_core_bytes + id_bytes;
    gpu.free_memory().map_or(bytes, |free| bytes.min(free))
}

impl<'a, C: Coord, const D: usize> StreamedBuild<'a, C, D> {
    fn new(gpus: &[Gpu], frame: &Frame<D>, options: &'a QuadtreeOptions) -> Result<Self> {
        // An eighth of the memory is left, since allocations are rounded up.
        let free = gpus.iter().map(Gpu::free_memory).collect::<Result<Vec<_>>>()?;
        let free = free.into_iter().min().unwrap_or(0);
        let bytes = free / 8 * 7;
        let depth = options.depth(frame);
        Ok(Self { options, frame: *frame, depth, bytes, coords: PhantomData })
    }
}

impl<C: Coord, const D: usize> StreamedBuild<'_, C, D> {
    /// Builds the subtree of a node, whose points are in `input`. Returns its levels from the node itself on.
    fn build_subtree(
        &self,
        lanes: &mut Lanes<'_>,
        root: &Root<D>,
        input: InputPoints<'_, C>,
        output: &TreePoints<'_, C>,
        max_points: usize,
    ) -> Result<Levels<D>> {
        let num_levels = self.counted_levels(&root.node, max_points);
        let chunks = self.count_cells(lanes, root.node.level, num_levels, input, max_points)?;
        let mut counts = memory::filled(1 << (D as u32 * num_levels), 0, "counts of cells")?;
        for chunk in &chunks {
            counts.iter_mut().zip(&chunk.counts).for_each(|(count, chunk_count)| *count += chunk_count);
        }
        let splits = |node: &Node| self.splits(node);
        let top = TopNodes::of_counts(root, &counts, num_levels, max_points, &self.frame, splits)?;
        self.distribute(lanes, &top, chunks, input, output)?;
        let batches = top.batches(max_points);
        self.build_batches(lanes, top, &batches, output)
    }

    /// Builds the subtrees below upper levels.
    fn build_batches(
        &self,
        lanes: &mut Lanes<'_>,
        mut top: TopNodes<D>,
        batches: &[Batch],
        output: &TreePoints<'_, C>,
    ) -> Result<Levels<D>> {
        let tasks: Vec<_> = batches.iter().map(|batch| batch.points.clone()).collect();
        let built =
            lanes.run("subtrees", &tasks, |lane, i| self.build_batch(lane, &top, &batches[i], output))?;
        for (batch, built) in batches.iter().zip(built) {
            let below = match built {
                Some(levels) => levels,
                None => self.build_in_parts(lanes, &top, batch, output)?,
            };
            top.append_below(below)?;
        }
        Ok(top.into_levels())
    }

    /// Builds a batch for which the device lacked memory. Tries again with the other lanes idle, then in halves, and at last builds the
    /// subtree of a single root out of core.
    fn build_in_parts(
        &self,
        lanes: &mut Lanes<'_>,
        top: &TopNodes<D>,
        batch: &Batch,
        output: &TreePoints<'_, C>,
    ) -> Result<Levels<D>> {
        let is_smallest = batch.roots.len() == 1 && batch.points.len() / 2 < MIN_POINTS;
        let alone = lanes.run("subtrees", std::slice::from_ref(&batch.points), |lane, _| {
            if is_smallest {
                return self.try_batch(lane, top, batch, output).map(Some);
            }
            self.build_batch(lane, top, batch, output)
        })?;
        if let Some(levels) = alone.into_iter().flatten().next() {
            return Ok(levels);
        }
        let mut below = Levels::default();
        if let Some(halves) = top.halves(batch) {
            for half in halves {
                below.append(self.build_in_parts(lanes, top, &half, output)?)?;
            }
        } else if let Some(root) = top.splitting_roots(batch).next() {
            // SAFETY: the points of the batch have been written, and nothing else uses them.
            let (coords, ids) = unsafe { output.points::<D>(&batch.points) };
            let len = batch.points.len();
            let (coords, ids) = (coords.to_vec(len * D)?, ids.to_vec(len)?);
            let (coords, ids) = (InputColumn::Memory(&coords), InputColumn::Memory(&ids));
            let input = InputPoints { len, coords, ids: Some(ids) };
            // At most half of the points at once: all of them may share the cells of many levels.
            let max_points = self.max_points(LANES).min(batch.points.len() / 2).max(MIN_POINTS);
            below = self.build_subtree(lanes, root, input, output, max_points)?.below_first();
        }
        Ok(below)
    }

    /// Returns true if a node splits.
    fn splits(&self, node: &Node) -> bool {
        node.len() > self.options.leaf_points && node.level < self.depth
    }

    /// Returns the number of points of a batch that fits on the device beside the batches of the other lanes.
    fn max_points(&self, num_lanes: usize) -> usize {
        // Coordinates in two orders, and ids and sort buffers. A quarter of the memory is for nodes.
        let point_bytes = 2 * D * size_of::<C>() + 44;
        let points = self.bytes / num_lanes as u64 / 4 * 3 / point_bytes as u64;
        (points as usize).clamp(MIN_POINTS, MAX_POINTS)
    }

    /// Returns the number of levels below a node down to the cells that are counted. For evenly spread points, a batch has several cells.
    fn counted_levels(&self, node: &Node, max_points: usize) -> u32 {
        let cells = (CELLS_PER_BATCH * node.len() as usize).div_ceil(max_points).max(2);
        let levels = (usize::BITS - (cells - 1).leading_zeros()).div_ceil(D as u32);
        levels.min(MAX_CELL_BITS / D as u32).min(self.depth - node.level)
    }
}

impl<'a, C: Coord> TreePoints<'a, C> {
    /// Returns coordinates and ids of a range.
    ///
    /// # Safety
    /// They have been written, and nothing writes them while they are in use.
    unsafe fn points<const D: usize>(
        &self,
        range: &Range<usize>,
    ) -> (InputColumn<'a, C>, InputColumn<'a, u32>) {
        // SAFETY: the caller's promise.
        unsafe { (self.coords.input(range.start * D..range.end * D), self.ids.input(range.clone())) }
    }
}

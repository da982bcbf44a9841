//! Robinson's partitioners of one array by the medians of a level: many warps per run, one warp per run, or many runs per warp.
//!
//! The medians come from the primary array, which is sorted on the split axis of the level and needs no partition. The points before a
//! median move to the run of the less child, those after it to the run of the greater child; the median is dropped. A warp performs both
//! compactions at once, so every warp writes the same amount for any data.
//!
//! Two constants select what Robinson compares with: without coalescing buffers (`BUFFERED` is 0), and one compaction after the other
//! (`AT_ONCE` is 0), which reads and compares every point twice. Small runs are partitioned in registers and have neither.

use crate::balanced::{Run, is_before};
use crate::block::tile::THREADS;
use crate::thread::coord::Float;
use crate::thread::items::strided;
use crate::thread::operator::Sum;
use crate::warp::coalescing_buffer::{BUFFER_ITEMS, CoalescingBuffer};
use crate::warp::scan::reduce;
use cuda_std::prelude::*;

const WARPS: usize = THREADS / 32;

/// Shared memory of a block: two coalescing buffers per warp.
#[repr(C, align(16))]
pub struct PartitionSmem {
    segments: [[[u32; BUFFER_ITEMS]; 2]; WARPS],
}

/// The level that is partitioned.
#[derive(Clone, Copy, KernelArgs)]
pub struct Level<'a, C> {
    /// The points, by the super key of the split axis of the level.
    pub points: crate::thread::order::Lookup<'a, C>,
    /// The array that is sorted on the split axis of the level.
    pub primary: Slice<'a, u32>,
    /// The number of the level; the root is on level 0.
    pub level: u32,
    /// The output; the medians are empty if the partition of another array writes the nodes.
    pub nodes: crate::balanced::robinson::Nodes<'a>,
}

impl<C: Float> Level<'_, C> {
    #[inline(always)]
    fn run(&self, address: u32) -> Run {
        Run::of(address, self.level, self.primary.len() as u32)
    }

    /// Returns the median of a run. Lane 0 writes the node.
    #[inline(always)]
    unsafe fn median(&self, address: u32, run: Run, lane: usize) -> u32 {
        let median = self.primary.load(run.median() as usize);
        if lane == 0 && !self.nodes.medians.is_empty() {
            self.nodes.store(self.level, address, median);
        }
        median
    }

    /// Returns whether a point moves to the less child and whether it moves to the greater child.
    #[inline(always)]
    unsafe fn sides(&self, id: u32, median: u32) -> (bool, bool) {
        let less = is_before(&self.points, id, median);
        (less, !less && id != median)
    }
}

/// The two compactions of a warp.
struct Halves<'a, const BUFFERED: usize> {
    less: CoalescingBuffer<'a, u32, BUFFERED>,
    greater: CoalescingBuffer<'a, u32, BUFFERED>,
}

impl<'a, const BUFFERED: usize> Halves<'a, BUFFERED> {
    #[inline(always)]
    unsafe fn new(less: SliceMut<'a, u32>, greater: SliceMut<'a, u32>) -> Self {
        let warp = thread::thread_idx_x() as usize / 32;
        let segments = shared_field!(shared_mem::<PartitionSmem>(), segments);
        let segment = |half: usize| segments.part((2 * warp + half) * BUFFER_ITEMS, BUFFER_ITEMS);
        Self {
            less: CoalescingBuffer { segments: segment(0), output: less, len: 0 },
            greater: CoalescingBuffer { segments: segment(1), output: greater, len: 0 },
        }
    }

    /// Partitions the positions `begin..end` of an array.
    #[inline(always)]
    unsafe fn partition<C: Float, const AT_ONCE: usize>(
        &mut self,
        level: &Level<'_, C>,
        from: Slice<'_, u32>,
        begin: usize,
        end: usize,
        median: u32,
    ) {
        let lane = warp::lane_id() as usize;
        for round in strided(begin, end, 32) {
            let is_item = round + lane < end;
            let id = from.load(if is_item { round + lane } else { end - 1 });
            let (less, greater) = level.sides(id, median);
            self.less.push(is_item && less, id);
            if AT_ONCE != 0 {
                self.greater.push(is_item && greater, id);
            }
        }
        if AT_ONCE == 0 {
            for round in strided(begin, end, 32) {
                let is_item = round + lane < end;
                let id = from.load(if is_item { round + lane } else { end - 1 });
                self.greater.push(is_item && level.sides(id, median).1, id);
            }
        }
    }
}

/// The part of a run that one of its warps partitions.
struct Piece {
    run: Run,
    address: u32,
    /// The index of the warp among the warps of its run.
    number: u32,
    begin: usize,
    end: usize,
}

impl Piece {
    #[inline(always)]
    fn of(warp: u32, warps: u32, level: u32, num_points: u32) -> Self {
        let warps_per_run = warps >> level;
        let (address, number) = (warp / warps_per_run, warp % warps_per_run);
        let run = Run::of(address, level, num_points);
        let len = run.len.div_ceil(warps_per_run) as u64;
        let begin_of = |number: u32| {
            let offset = u64::from(number) * len;
            run.begin as usize + if offset < u64::from(run.len) { offset as usize } else { run.len as usize }
        };
        Self { run, address, number, begin: begin_of(number), end: begin_of(number + 1) }
    }
}

/// Partitions with many warps per run; there are fewer runs than warps. Each warp compacts its piece to the same position of `less` and
/// `greater`, and writes the two counts to `counts`.
#[kernel(family = "research-balanced", block = THREADS, shared = PartitionSmem)]
#[instances(C = [f32, f64], BUFFERED = [0, 1], AT_ONCE = [0, 1])]
pub unsafe fn balanced_partition_pieces<C: Float, const BUFFERED: usize, const AT_ONCE: usize>(
    level: Level<'_, C>,
    from: Slice<u32>,
    less: SliceMut<u32>,
    greater: SliceMut<u32>,
    counts: SliceMut<u32>,
    warps: u32,
) {
    let warp = (thread::index_1d_u64() / 32) as u32;
    if warp < warps {
        let piece = Piece::of(warp, warps, level.level, level.primary.len() as u32);
        let lane = warp::lane_id() as usize;
        let median = level.median(piece.address, piece.run, lane + piece.number as usize);
        if !from.is_empty() {
            let len = piece.end - piece.begin;
            let mut halves =
                Halves::<BUFFERED>::new(less.part(piece.begin, len), greater.part(piece.begin, len));
            halves.partition::<C, AT_ONCE>(&level, from, piece.begin, piece.end, median);
            if lane == 0 {
                counts.store(2 * warp as usize, halves.less.len as u32);
                counts.store(2 * warp as usize + 1, halves.greater.len as u32);
            }
            halves.less.finish();
            halves.greater.finish();
        }
    }
}

/// Closes the gaps: moves the compacted points of each warp after those of the preceding warps of its run.
#[kernel(family = "research-balanced", block = THREADS)]
pub unsafe fn balanced_partition_close_gaps(
    less: Slice<u32>,
    greater: Slice<u32>,
    counts: Slice<u32>,
    level: u32,
    to: SliceMut<u32>,
    warps: u32,
) {
    let warp = (thread::index_1d_u64() / 32) as u32;
    if warp < warps {
        let piece = Piece::of(warp, warps, level, to.len() as u32);
        let lane = warp::lane_id();
        let first = warp - piece.number;
        let mut before = [0, 0];
        for other in strided(first + lane, warp, 32) {
            before[0] += counts.load(2 * other as usize);
            before[1] += counts.load(2 * other as usize + 1);
        }
        let count = |half: usize| counts.load(2 * warp as usize + half);
        let less_to = piece.run.begin + reduce::<u32, Sum>(before[0]);
        let greater_to = piece.run.median() + 1 + reduce::<u32, Sum>(before[1]);
        copy(less.part(piece.begin, count(0) as usize), to, less_to as usize);
        copy(greater.part(piece.begin, count(1) as usize), to, greater_to as usize);
    }
}

/// Copies a slice with one warp.
#[inline(always)]
unsafe fn copy(from: Slice<'_, u32>, to: SliceMut<'_, u32>, begin: usize) {
    for i in strided(warp::lane_id() as usize, from.len(), 32) {
        to.store(begin + i, from.load(i));
    }
}

/// Partitions with one warp per run; there are at least as many runs as warps.
#[kernel(family = "research-balanced", block = THREADS, shared = PartitionSmem)]
#[instances(C = [f32, f64], BUFFERED = [0, 1], AT_ONCE = [0, 1])]
pub unsafe fn balanced_partition_runs<C: Float, const BUFFERED: usize, const AT_ONCE: usize>(
    level: Level<'_, C>,
    from: Slice<u32>,
    to: SliceMut<u32>,
    warps: u32,
) {
    let lane = warp::lane_id() as usize;
    let warp = (thread::index_1d_u64() / 32) as u32;
    let mut address = warp;
    while warp < warps && address >> level.level == 0 {
        let run = level.run(address);
        let median = level.median(address, run, lane);
        if !from.is_empty() {
            let (less, greater) = (run.less(), run.greater());
            let output = |run: Run| to.part(run.begin as usize, run.len as usize);
            let mut halves = Halves::<BUFFERED>::new(output(less), output(greater));
            let (begin, end) = (run.begin as usize, (run.begin + run.len) as usize);
            halves.partition::<C, AT_ONCE>(&level, from, begin, end, median);
            halves.less.finish();
            halves.greater.finish();
            // All lanes have read the buffers before the next run writes to them.
            warp::sync_warp(warp::FULL_MASK);
        }
        address += warps;
    }
}

/// Partitions many runs per warp, in place. A run has at most `lanes` points: 16, 8 or 4.
#[kernel(family = "research-balanced", block = THREADS)]
#[instances(C = [f32, f64])]
pub unsafe fn balanced_partition_small_runs<C: Float>(
    level: Level<'_, C>,
    array: SliceMut<u32>,
    lanes: u32,
    warps: u32,
) {
    let lane = warp::lane_id();
    let (offset, runs) = (lane % lanes, 32 / lanes);
    let mask = (u32::MAX >> (32 - lanes)) << (lane - offset);
    let warp = (thread::index_1d_u64() / 32) as u32;
    let mut first = warp * runs;
    while warp < warps && first >> level.level == 0 {
        let address = first + lane / lanes;
        // The last warp may have fewer runs.
        let is_run = address >> level.level == 0;
        let run = if is_run { level.run(address) } else { Run { begin: 0, len: 0 } };
        let (mut less, mut greater, mut id) = (false, false, 0);
        if is_run && offset < run.len {
            let median = level.median(address, run, offset as usize);
            if !array.is_empty() {
                id = array.load((run.begin + offset) as usize);
                (less, greater) = level.sides(id, median);
            }
        }
        // All lanes have loaded their points before any lane stores.
        warp::sync_warp(warp::FULL_MASK);
        let below = mask & warp::lane_mask_lt();
        let before = (warp::warp_vote_ballot(warp::FULL_MASK, less) & below).count_ones();
        let after = (warp::warp_vote_ballot(warp::FULL_MASK, greater) & below).count_ones();
        if less {
            array.store((run.begin + before) as usize, id);
        }
        if greater {
            array.store((run.median() + 1 + after) as usize, id);
        }
        first += warps * runs;
    }
}

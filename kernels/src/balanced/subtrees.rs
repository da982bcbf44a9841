//! Builds whole subtrees in shared memory: numbers their points with two bytes, then partitions them [by path codes](super::paths) level by
//! level.

use super::paths::{CLASSES, GONE, MAX_PENDING, Row, next_path, pending};
use super::{Run, num_partitions};
use crate::policy::{
    BALANCED_SUBTREES_MIN_BLOCKS, BALANCED_SUBTREES_ROWS, BALANCED_SUBTREES_THREADS as THREADS,
};
use crate::query::left_balanced::full_tree;
use crate::thread::items::strided;
use crate::warp::scan::inclusive_sum;
use cuda_std::prelude::*;

const WARPS: usize = THREADS / 32;

/// Returns the number of positions per thread. Points of more than four coordinates have half the capacity.
pub const fn rows(dims: usize) -> usize {
    if dims <= 4 { BALANCED_SUBTREES_ROWS } else { BALANCED_SUBTREES_ROWS / 2 }
}

/// Returns the maximum number of points of a subtree.
pub const fn capacity(dims: usize) -> usize {
    THREADS * rows(dims)
}

/// Writes the medians of the subtrees of `level`, in a tree of `num_points` points. The runs of that level have at most [`capacity`]
/// points. `arrays` holds the arrays of all axes and a spare one; four bits of `slots` per axis select its array. `ids` are the ids of
/// the points. `numbers` is scratch memory of two bytes per point. One block per subtree.
#[kernel(family = "balanced", block = THREADS, min_blocks = BALANCED_SUBTREES_MIN_BLOCKS, shared = BalancedSubtreeSmem<DIMS, ROWS>, hot)]
#[instance(4, 8)]
#[instance(8, 4)]
pub unsafe fn balanced_subtrees<const DIMS: usize, const ROWS: usize>(
    arrays: Slice<u32>,
    slots: u32,
    dims: u32,
    num_points: u32,
    level: u32,
    ids: Slice<u32>,
    numbers: SliceMut<u16>,
    medians: SliceMut<u32>,
) {
    let address = thread::block_idx_x();
    let run = Run::of(address, level, num_points);
    let stride = arrays.len() / (dims as usize + 1);
    let array = |axis: u32| {
        arrays.part((slots >> (4 * axis) & 15) as usize * stride + run.begin as usize, run.len as usize)
    };
    let last = num_partitions(num_points) - level;
    let subtree = Subtree::<DIMS, ROWS> { first: array(0), address, level, last, dims, smem: shared_mem() };
    let codes = subtree.begin();
    subtree.number(&array, numbers);
    let mut depth = 0;
    while depth <= last {
        // The split axis of the depth comes last, because its partition writes the next bit of the path codes.
        let mut others = dims;
        while others > 0 {
            others -= 1;
            let axis = (level + depth + others) % dims;
            let pending = pending(level + depth, axis, dims, level);
            if others == 0 || pending == MAX_PENDING {
                subtree.partition(&codes, axis, pending, depth, others == 0);
            }
        }
        depth += 1;
    }
    subtree.end(&codes, ids, medians);
}

/// Shared memory of a subtree. The number of a point is its position in the array of the first axis.
#[repr(C, align(16))]
pub struct BalancedSubtreeSmem<const DIMS: usize, const ROWS: usize> {
    /// The points in the order of each axis. A median keeps its position.
    orders: [[[u16; THREADS]; ROWS]; DIMS],
    /// The path code of each point.
    paths: [[u8; THREADS]; ROWS],
    /// For the run of each code its begin, and its median in the upper half word.
    runs: [[u32; THREADS]; ROWS],
    /// For each class one bit per position, and the number of bits set in the preceding words.
    bits: [[[u32; WARPS]; ROWS]; CLASSES],
    before: [[[u16; WARPS]; ROWS]; CLASSES],
}

/// One subtree. The code of its root run is 1. The less and the greater child of the run of code `c` have the codes `2 c` and `2 c + 1`.
struct Subtree<'a, const DIMS: usize, const ROWS: usize> {
    /// The points by number.
    first: Slice<'a, u32>,
    address: u32,
    level: u32,
    /// Depth of the runs of one to three points.
    last: u32,
    dims: u32,
    smem: *mut BalancedSubtreeSmem<DIMS, ROWS>,
}

impl<const DIMS: usize, const ROWS: usize> Subtree<'_, DIMS, ROWS> {
    /// Number of words of one bit per position.
    const WORDS: usize = WARPS * ROWS;

    /// Returns the index of a word of a class. Words of equal index are in different banks for different classes, both in `bits` and in
    /// `before`.
    #[inline(always)]
    const fn word(class: u32, word: usize) -> usize {
        class as usize * Self::WORDS + (word ^ (2 * class as usize))
    }

    /// Writes the begins and medians of all runs. Returns for each position of the thread the code of the run whose median is there, or
    /// else of the deepest run that contains it.
    #[inline(always)]
    unsafe fn begin(&self) -> [RunCode; ROWS] {
        let (thread, len) = (thread::thread_idx_x(), self.first.len() as u32);
        let (runs, paths) = (shared_field!(self.smem, runs), shared_field!(self.smem, paths));
        let mut code = 1 + thread;
        while code >> (self.last + 1) == 0 {
            let depth = depth_of(code);
            let run = Run::of(code - (1 << depth), depth, len);
            runs.store(code as usize, run.median() << 16 | run.begin);
            code += THREADS as u32;
        }
        let mut codes = [RunCode::NONE; ROWS];
        for row in 0..ROWS {
            let position = thread + (row * THREADS) as u32;
            paths.store(position as usize, 0);
            if position < len {
                let (mut run, mut code) = (Run { begin: 0, len }, 1);
                while position != run.median() && code >> self.last == 0 {
                    let is_greater = position > run.median();
                    run = if is_greater { run.greater() } else { run.less() };
                    code = 2 * code + u32::from(is_greater);
                }
                codes[row] = RunCode::new(code);
            }
        }
        codes
    }

    /// Numbers the points, and loads the orders of all axes.
    #[inline(always)]
    unsafe fn number<'s>(&self, array: &impl Fn(u32) -> Slice<'s, u32>, numbers: SliceMut<'_, u16>) {
        let thread = thread::thread_idx_x() as usize;
        for axis in 0..self.dims {
            let (points, order) = (array(axis), self.order(axis));
            for position in strided(thread, points.len(), THREADS) {
                let id = points.load(position) as usize;
                if axis == 0 {
                    numbers.store(id, position as u16);
                    order.store(position, position as u16);
                } else {
                    order.store(position, numbers.load(id));
                }
            }
            // All threads read the numbers that the first axis stores.
            thread::sync_threads();
        }
    }

    /// Returns the order of an axis.
    #[inline(always)]
    fn order(&self, axis: u32) -> SharedSlice<'_, u16> {
        // SAFETY: computes an address, and accesses no memory.
        unsafe { shared_field!(self.smem, orders).part(axis as usize * THREADS * ROWS, THREADS * ROWS) }
    }

    /// Partitions the order of an axis with `pending` pending levels into the runs of a depth. If `is_primary`, the depth splits on this
    /// axis: then it also writes the next bit of the path codes.
    #[inline(always)]
    unsafe fn partition(
        &self,
        codes: &[RunCode; ROWS],
        axis: u32,
        pending: u32,
        depth: u32,
        is_primary: bool,
    ) {
        let (order, paths) = (self.order(axis), shared_field!(self.smem, paths));
        let runs = shared_field!(self.smem, runs);
        let (bits, before) = (shared_field!(self.smem, bits), shared_field!(self.smem, before));
        let (thread, lane) = (thread::thread_idx_x(), warp::lane_id());
        let above = depth - pending;

        // The point at each position, with its path code in the upper half word.
        let mut points = [u32::from(GONE) << 16; ROWS];
        for row in 0..ROWS {
            // The points of medians of the levels above have left the runs.
            if codes[row].reaches(above) {
                let point = order.load((thread + (row * THREADS) as u32) as usize);
                points[row] = u32::from(paths.load(point as usize)) << 16 | u32::from(point);
            }
            let (class, is_point) = class(points[row], pending);
            let lanes = Row::of(class, is_point).lanes_of(lane);
            if lane < CLASSES as u32 {
                bits.store(Self::word(lane, row * WARPS + thread as usize / 32), lanes);
            }
        }
        thread::sync_threads();
        // One warp per class; a lane takes consecutive words.
        if thread < 32 * CLASSES as u32 {
            let lane_word = |i: usize| Self::word(thread / 32, lane as usize * (Self::WORDS / 32) + i);
            let mut sum = 0;
            for i in 0..Self::WORDS / 32 {
                sum += bits.load(lane_word(i)).count_ones();
            }
            let mut sum = inclusive_sum(sum) - sum;
            for i in 0..Self::WORDS / 32 {
                before.store(lane_word(i), sum as u16);
                sum += bits.load(lane_word(i)).count_ones();
            }
        }
        thread::sync_threads();
        let rank = |class: u32, position: u32| {
            let word = Self::word(class, (position / 32) as usize);
            u32::from(before.load(word)) + (bits.load(word) & ((1 << (position % 32)) - 1)).count_ones()
        };
        for row in 0..ROWS {
            let position = thread + (row * THREADS) as u32;
            let (class, is_point) = class(points[row], pending);
            if is_point {
                let code = codes[row].code(above);
                let begin = runs.load(code as usize) & 0xFFFF;
                let code = code << pending | class;
                let run = runs.load(code as usize);
                let to = (run & 0xFFFF) + rank(class, position) - rank(class, begin);
                order.store(to as usize, points[row] as u16);
                if is_primary {
                    let (path, median) = ((points[row] >> 16) as u8, run >> 16);
                    let path = if to == median { GONE } else { next_path(path, to > median) };
                    paths.store((points[row] & 0xFFFF) as usize, path);
                }
            }
        }
        thread::sync_threads();
    }

    /// Writes the nodes. The median of a run is in the order of the split axis of its depth. The neighbors of the medians of the last depth
    /// become leaves.
    #[inline(always)]
    unsafe fn end(&self, codes: &[RunCode; ROWS], ids: Slice<'_, u32>, medians: SliceMut<'_, u32>) {
        for row in 0..ROWS {
            let position = thread::thread_idx_x() + (row * THREADS) as u32;
            if codes[row].reaches(0) {
                let mut depth = codes[row].depth();
                let mut code = codes[row].code(depth);
                let point = self.order((self.level + depth) % self.dims).load(position as usize);
                let median = shared_field!(self.smem, runs).load(code as usize) >> 16;
                if position != median {
                    (code, depth) = (2 * code + u32::from(position > median), depth + 1);
                }
                // The code of the subtree's root is 1.
                let address = (self.address << depth) + (code - (1 << depth));
                let id = ids.load(self.first.load(point as usize) as usize);
                medians.store((full_tree(self.level + depth) + address) as usize, id);
            }
        }
    }
}

/// The code of a run, left-aligned and ended by a 1 bit, so that one register also holds the codes of all runs that contain it. 0 if the
/// position is beyond the subtree.
#[derive(Clone, Copy)]
struct RunCode(u32);

impl RunCode {
    const NONE: Self = Self(0);

    #[inline(always)]
    const fn new(code: u32) -> Self {
        Self((2 * code + 1) << (30 - depth_of(code)))
    }

    /// Returns the depth of the run.
    #[inline(always)]
    const fn depth(self) -> u32 {
        30 - self.0.trailing_zeros()
    }

    /// Returns true if the run is at a depth or below it.
    #[inline(always)]
    const fn reaches(self, depth: u32) -> bool {
        self.0 << depth << 1 != 0
    }

    /// Returns the code of the run at a depth that contains it.
    #[inline(always)]
    const fn code(self, depth: u32) -> u32 {
        self.0 >> (31 - depth)
    }
}

/// Returns the depth of a code. The code is not 0.
#[inline(always)]
const fn depth_of(code: u32) -> u32 {
    31 - code.leading_zeros()
}

/// Returns the class of a point with its path code, and whether it is still in a run.
#[inline(always)]
fn class(point: u32, pending: u32) -> (u32, bool) {
    let path = point >> 16;
    (path & ((1 << pending) - 1), path != GONE as u32)
}

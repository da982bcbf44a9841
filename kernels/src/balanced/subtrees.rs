//! Whole subtrees in shared memory: their points are numbered anew, in two bytes, and then partitioned [by paths](super::paths) level by
//! level.

use super::paths::{CLASSES, GONE, MAX_PENDING, Row, next_path, pending};
use super::{Run, num_partitions};
use crate::policy::{
    BALANCED_SUBTREES_MIN_BLOCKS, BALANCED_SUBTREES_ROWS, BALANCED_SUBTREES_THREADS as THREADS,
};
use crate::query::left_balanced::full_tree;
use crate::warp::scan::inclusive_sum;
use cuda_std::prelude::*;

const WARPS: usize = THREADS / 32;

/// Places of a thread, of points of so many coordinates: of more than four there is half the room.
pub const fn rows(dims: usize) -> usize {
    if dims <= 4 { BALANCED_SUBTREES_ROWS } else { BALANCED_SUBTREES_ROWS / 2 }
}

/// Places of a subtree.
pub const fn room(dims: usize) -> usize {
    THREADS * rows(dims)
}

/// Stores the medians of the subtrees of `level`, whose runs have at most [`room`] points, of a tree of `num_points` points. `arrays` are
/// those of all axes and one more, and `slots` has four bits an axis that say which of them is its own. `names` are the ids of points,
/// `numbers` has room for two bytes a point. A block a subtree.
#[kernel(family = "balanced", block = THREADS, min_blocks = BALANCED_SUBTREES_MIN_BLOCKS, shared = BalancedSubtreeSmem<DIMS, ROWS>, hot)]
#[instance(4, 8)]
#[instance(8, 4)]
pub unsafe fn balanced_subtrees<const DIMS: usize, const ROWS: usize>(
    arrays: Slice<u32>,
    slots: u32,
    dims: u32,
    num_points: u32,
    level: u32,
    names: Slice<u32>,
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
    let ways = subtree.begin();
    subtree.number(&array, numbers);
    let mut depth = 0;
    while depth <= last {
        // The axis of the depth comes last.
        let mut others = dims;
        while others > 0 {
            others -= 1;
            let axis = (level + depth + others) % dims;
            let waited = pending(level + depth, axis, dims, level);
            if others == 0 || waited == MAX_PENDING {
                subtree.partition(&ways, axis, waited, depth, others == 0);
            }
        }
        depth += 1;
    }
    subtree.end(&ways, names, medians);
}

/// Shared memory of a subtree, whose points are numbered as they come in the array sorted on the first axis.
#[repr(C, align(16))]
pub struct BalancedSubtreeSmem<const DIMS: usize, const ROWS: usize> {
    /// For each axis the points in order. A median stays where it is.
    orders: [[[u16; THREADS]; ROWS]; DIMS],
    /// The path of each point.
    paths: [[u8; THREADS]; ROWS],
    /// Of the run of each code where it begins, and above that its median.
    runs: [[u32; THREADS]; ROWS],
    /// For each class a bit a place, and how many bits are set in the words before.
    bits: [[[u32; WARPS]; ROWS]; CLASSES],
    before: [[[u16; WARPS]; ROWS]; CLASSES],
}

/// One subtree. The code of a run in it is 1 for the root and for children twice that of their parent, for the greater one with 1 more.
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
    /// Words of a bit a place.
    const WORDS: usize = WARPS * ROWS;

    /// Where a word of a class is: the same one of all classes in different banks, both of bits and of their numbers before.
    #[inline(always)]
    const fn word(class: u32, word: usize) -> usize {
        class as usize * Self::WORDS + (word ^ (2 * class as usize))
    }

    /// Lays out all runs. For each of the thread's places the way to the run whose median is there, or to the last run around it.
    #[inline(always)]
    unsafe fn begin(&self) -> [Way; ROWS] {
        let (thread, len) = (thread::thread_idx_x(), self.first.len() as u32);
        let (runs, paths) = (shared_field!(self.smem, runs), shared_field!(self.smem, paths));
        let mut code = 1 + thread;
        while code >> (self.last + 1) == 0 {
            let depth = depth_of(code);
            let run = Run::of(code - (1 << depth), depth, len);
            runs.store(code as usize, run.median() << 16 | run.begin);
            code += THREADS as u32;
        }
        let mut ways = [Way::NONE; ROWS];
        let mut row = 0;
        while row < ROWS {
            let place = thread + (row * THREADS) as u32;
            paths.store(place as usize, 0);
            if place < len {
                let (mut run, mut code) = (Run { begin: 0, len }, 1);
                while place != run.median() && code >> self.last == 0 {
                    let is_greater = place > run.median();
                    run = if is_greater { run.greater() } else { run.less() };
                    code = 2 * code + u32::from(is_greater);
                }
                ways[row] = Way::to(code);
            }
            row += 1;
        }
        ways
    }

    /// Numbers the points, and reads the orders of all axes.
    #[inline(always)]
    unsafe fn number<'s>(&self, array: &impl Fn(u32) -> Slice<'s, u32>, numbers: SliceMut<'_, u16>) {
        let thread = thread::thread_idx_x() as usize;
        let mut axis = 0;
        while axis < self.dims {
            let (points, order) = (array(axis), self.order(axis));
            let mut place = thread;
            while place < points.len() {
                let id = points.load(place) as usize;
                if axis == 0 {
                    numbers.store(id, place as u16);
                    order.store(place, place as u16);
                } else {
                    order.store(place, numbers.load(id));
                }
                place += THREADS;
            }
            // The block's own stores, of which the first ones are read by all of its threads.
            thread::sync_threads();
            axis += 1;
        }
    }

    /// The order on an axis.
    #[inline(always)]
    fn order(&self, axis: u32) -> SharedSlice<'_, u16> {
        // SAFETY: an address only.
        unsafe { shared_field!(self.smem, orders).part(axis as usize * THREADS * ROWS, THREADS * ROWS) }
    }

    /// Puts an order that has waited for `pending` levels in that of the runs of a depth. If the runs are split on its axis, sends
    /// all points down but their medians.
    #[inline(always)]
    unsafe fn partition(&self, ways: &[Way; ROWS], axis: u32, pending: u32, depth: u32, is_primary: bool) {
        let (order, paths) = (self.order(axis), shared_field!(self.smem, paths));
        let runs = shared_field!(self.smem, runs);
        let (bits, before) = (shared_field!(self.smem, bits), shared_field!(self.smem, before));
        let (thread, lane) = (thread::thread_idx_x(), warp::lane_id());
        let above = depth - pending;

        // The point of each place, and above that its path.
        let mut points = [u32::from(GONE) << 16; ROWS];
        let mut row = 0;
        while row < ROWS {
            // Places of medians above have no point any more.
            if ways[row].reaches(above) {
                let point = order.load((thread + (row * THREADS) as u32) as usize);
                points[row] = u32::from(paths.load(point as usize)) << 16 | u32::from(point);
            }
            let (class, is_point) = class(points[row], pending);
            let lanes = Row::of(class, is_point).lanes_of(lane);
            if lane < CLASSES as u32 {
                bits.store(Self::word(lane, row * WARPS + thread as usize / 32), lanes);
            }
            row += 1;
        }
        thread::sync_threads();
        // A warp a class, a lane some words that follow each other.
        if thread < 32 * CLASSES as u32 {
            let of_lane = |i: usize| Self::word(thread / 32, lane as usize * (Self::WORDS / 32) + i);
            let (mut sum, mut i) = (0, 0);
            while i < Self::WORDS / 32 {
                sum += bits.load(of_lane(i)).count_ones();
                i += 1;
            }
            let (mut sum, mut i) = (inclusive_sum(sum) - sum, 0);
            while i < Self::WORDS / 32 {
                before.store(of_lane(i), sum as u16);
                sum += bits.load(of_lane(i)).count_ones();
                i += 1;
            }
        }
        thread::sync_threads();
        let rank = |class: u32, place: u32| {
            let word = Self::word(class, (place / 32) as usize);
            u32::from(before.load(word)) + (bits.load(word) & ((1 << (place % 32)) - 1)).count_ones()
        };
        let mut row = 0;
        while row < ROWS {
            let place = thread + (row * THREADS) as u32;
            let (class, is_point) = class(points[row], pending);
            if is_point {
                let code = ways[row].code(above);
                let begin = runs.load(code as usize) & 0xFFFF;
                let code = code << pending | class;
                let run = runs.load(code as usize);
                let to = (run & 0xFFFF) + rank(class, place) - rank(class, begin);
                order.store(to as usize, points[row] as u16);
                if is_primary {
                    let (path, median) = ((points[row] >> 16) as u8, run >> 16);
                    let path = if to == median { GONE } else { next_path(path, to > median) };
                    paths.store((points[row] & 0xFFFF) as usize, path);
                }
            }
            row += 1;
        }
        thread::sync_threads();
    }

    /// Stores the medians: those of each depth are in the order on its axis, and so is what is beside those of the last.
    #[inline(always)]
    unsafe fn end(&self, ways: &[Way; ROWS], names: Slice<'_, u32>, medians: SliceMut<'_, u32>) {
        let mut row = 0;
        while row < ROWS {
            let place = thread::thread_idx_x() + (row * THREADS) as u32;
            if ways[row].reaches(0) {
                let mut depth = ways[row].depth();
                let mut code = ways[row].code(depth);
                let point = self.order((self.level + depth) % self.dims).load(place as usize);
                let median = shared_field!(self.smem, runs).load(code as usize) >> 16;
                if place != median {
                    (code, depth) = (2 * code + u32::from(place > median), depth + 1);
                }
                // The code of the subtree's root is 1.
                let address = (self.address << depth) + (code - (1 << depth));
                let id = names.load(self.first.load(point as usize) as usize);
                medians.store((full_tree(self.level + depth) + address) as usize, id);
            }
            row += 1;
        }
    }
}

/// The code of a run, the highest bit first, and a bit behind it: so that a place has one register for those of all its runs. 0 if there is
/// no such place.
#[derive(Clone, Copy)]
struct Way(u32);

impl Way {
    const NONE: Self = Self(0);

    #[inline(always)]
    const fn to(code: u32) -> Self {
        Self((2 * code + 1) << (30 - depth_of(code)))
    }

    /// The depth of the run.
    #[inline(always)]
    const fn depth(self) -> u32 {
        30 - self.0.trailing_zeros()
    }

    /// True if the run is of a depth or below it.
    #[inline(always)]
    const fn reaches(self, depth: u32) -> bool {
        self.0 << depth << 1 != 0
    }

    /// The code of the run of a depth around it.
    #[inline(always)]
    const fn code(self, depth: u32) -> u32 {
        self.0 >> (31 - depth)
    }
}

/// The depth of a code, which is not 0.
#[inline(always)]
const fn depth_of(code: u32) -> u32 {
    31 - code.leading_zeros()
}

/// The class of a point and its path, and whether it has one.
#[inline(always)]
fn class(point: u32, pending: u32) -> (u32, bool) {
    let path = point >> 16;
    (path & ((1 << pending) - 1), path != GONE as u32)
}

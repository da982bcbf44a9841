//! Whole subtrees in shared memory: their points are numbered anew, in two bytes, and then partitioned [by paths](super::paths) level by
//! level.

use super::paths::{CLASSES, GONE, Row, next_path, pending};
use super::{Run, num_partitions};
use crate::kdtree::left_balanced::full_tree;
use crate::policy::{BALANCED_SUBTREES_MIN_BLOCKS, BALANCED_SUBTREES_ROWS as ROWS};
use crate::warp::scan::inclusive_sum;
use cuda_std::prelude::*;

/// A warp counts each class.
const THREADS: usize = 32 * CLASSES;
const WARPS: usize = CLASSES;
/// Places of a subtree.
pub const ROOM: usize = THREADS * ROWS;
/// Rows of 32 places.
const WORDS: usize = ROOM / 32;

/// Stores the medians of the subtrees of `level`, whose runs have at most [`ROOM`] points, of a tree of `num_points` points. `arrays` are
/// those of all axes and one more, and `slots` has four bits an axis that say which of them is its own. `names` are the ids of points,
/// `numbers` has room for two bytes a point. A block a subtree.
#[kernel(family = "kdtree-balanced", block = THREADS, min_blocks = BALANCED_SUBTREES_MIN_BLOCKS, shared = BalancedSubtreeSmem<DIMS>, hot)]
#[instance(4)]
#[instance(8)]
pub unsafe fn kdtree_balanced_subtrees<const DIMS: usize>(
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
    let subtree =
        Subtree::<DIMS> { first: array(0), names, address, level, last, dims, medians, smem: shared_mem() };
    let codes = subtree.begin();
    subtree.number(&array, numbers);
    let mut depth = 0;
    while depth <= last {
        let axis = (level + depth) % dims;
        let mut other = 0;
        while other < dims {
            let waited = pending(level + depth, other, dims, level);
            if other != axis && waited == super::paths::MAX_PENDING {
                subtree.partition(&codes, other, waited, depth, false);
            }
            other += 1;
        }
        subtree.partition(&codes, axis, pending(level + depth, axis, dims, level), depth, true);
        depth += 1;
    }
}

/// Shared memory of a subtree, whose points are numbered as they come in the array sorted on the first axis.
#[repr(C, align(16))]
pub struct BalancedSubtreeSmem<const DIMS: usize> {
    /// For each axis the points in order.
    orders: [[u16; ROOM]; DIMS],
    /// The path of each point.
    paths: [u8; ROOM],
    /// Of the run of each code where it begins, and above that its median.
    runs: [u32; ROOM],
    /// For each class a bit a place, and how many bits are set in the words before.
    bits: [[u32; WORDS]; CLASSES],
    before: [[u16; WORDS]; CLASSES],
}

/// One subtree. The code of a run in it is 1 for the root and for children twice that of their parent, for the greater one with 1 more.
struct Subtree<'a, const DIMS: usize> {
    /// The points by number.
    first: Slice<'a, u32>,
    names: Slice<'a, u32>,
    address: u32,
    level: u32,
    /// Depth of the runs of one to three points.
    last: u32,
    dims: u32,
    medians: SliceMut<'a, u32>,
    smem: *mut BalancedSubtreeSmem<DIMS>,
}

impl<const DIMS: usize> Subtree<'_, DIMS> {
    /// Lays out all runs. For each of the thread's places the code of the run whose median is there, or of the last run around it; 0 if
    /// there is no such place.
    #[inline(always)]
    unsafe fn begin(&self) -> [u32; ROWS] {
        let (thread, len) = (thread::thread_idx_x(), self.first.len() as u32);
        let (runs, paths) = (shared_field!(self.smem, runs), shared_field!(self.smem, paths));
        let mut code = 1 + thread;
        while code >> (self.last + 1) == 0 {
            let depth = depth_of(code);
            let run = Run::of(code - (1 << depth), depth, len);
            runs.store(code as usize, run.median() << 16 | run.begin);
            code += THREADS as u32;
        }
        let mut codes = [0; ROWS];
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
                codes[row] = code;
            }
            row += 1;
        }
        codes
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
        unsafe { shared_field!(self.smem, orders).part(axis as usize * ROOM, ROOM) }
    }

    /// Puts an order that has waited for `pending` levels in that of the runs of a depth. If the runs are split on its axis, stores their
    /// medians, and sends all points down.
    #[inline(always)]
    unsafe fn partition(&self, codes: &[u32; ROWS], axis: u32, pending: u32, depth: u32, is_primary: bool) {
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
            if codes[row] >> above != 0 {
                let point = order.load((thread + (row * THREADS) as u32) as usize);
                points[row] = u32::from(paths.load(point as usize)) << 16 | u32::from(point);
            }
            let (class, is_point) = class(points[row], pending);
            let lanes = Row::of(class, is_point).lanes_of(lane);
            if lane < CLASSES as u32 {
                bits.store(lane as usize * WORDS + row * WARPS + thread as usize / 32, lanes);
            }
            row += 1;
        }
        thread::sync_threads();
        let of_warp = thread as usize / 32 * WORDS;
        let (mut sum, mut begin) = (0, 0);
        while begin < WORDS {
            let count = bits.load(of_warp + begin + lane as usize).count_ones();
            let inclusive = inclusive_sum(count);
            before.store(of_warp + begin + lane as usize, (sum + inclusive - count) as u16);
            sum += warp::shuffle_idx(warp::FULL_MASK, inclusive, 31);
            begin += 32;
        }
        thread::sync_threads();
        let rank = |class: u32, place: u32| {
            let word = class as usize * WORDS + (place / 32) as usize;
            u32::from(before.load(word)) + (bits.load(word) & ((1 << (place % 32)) - 1)).count_ones()
        };
        let mut row = 0;
        while row < ROWS {
            let place = thread + (row * THREADS) as u32;
            let (class, is_point) = class(points[row], pending);
            if is_point {
                let code = codes[row] >> (depth_of(codes[row]) - above);
                let begin = runs.load(code as usize) & 0xFFFF;
                let code = code << pending | class;
                let run = runs.load(code as usize);
                let to = (run & 0xFFFF) + rank(class, place) - rank(class, begin);
                order.store(to as usize, points[row] as u16);
                if is_primary {
                    self.send_down(points[row], code, to, run >> 16, depth);
                }
            }
            row += 1;
        }
        thread::sync_threads();
    }

    /// Sends a point that is in the run of a code, at a place, one level down, or makes a node of it.
    #[inline(always)]
    unsafe fn send_down(&self, point: u32, code: u32, place: u32, median: u32, depth: u32) {
        let is_median = place == median;
        let path = if is_median { GONE } else { next_path((point >> 16) as u8, place > median) };
        shared_field!(self.smem, paths).store((point & 0xFFFF) as usize, path);
        if is_median || depth == self.last {
            let (code, depth) =
                if is_median { (code, depth) } else { (2 * code + u32::from(place > median), depth + 1) };
            // That of the subtree is 1.
            let address = (self.address << depth) + (code - (1 << depth));
            let id = self.names.load(self.first.load((point & 0xFFFF) as usize) as usize);
            self.medians.store((full_tree(self.level + depth) + address) as usize, id);
        }
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

//! Takes the points of a run down through the brackets of its nodes, and moves them to their new runs or lists.

use super::{HAS_FAILED, IN_BIN, INSIDE, LEFT, MAX_LEVELS, MOVED, Points, Remaining, Round, Run};
use crate::block::nth::find_digit;
use crate::policy::SELECTION;
use crate::query::left_balanced::level;
use crate::thread::coord::Coord;
use crate::thread::divisor::Divisor;
use crate::thread::items::strided;
use crate::thread::radix_key::RadixKey;
use crate::thread::ranked::Ranked;
use crate::thread::words::{Words, computed};
use crate::warp::rank::lanes_with_bits;
use crate::warp::scan::inclusive_sum;
use cuda_std::prelude::*;

const THREADS: usize = SELECTION.split.0;
const ITEMS: usize = SELECTION.split.1;
/// Points of a tile.
pub const TILE: usize = THREADS * ITEMS;
/// Maximum number of warps of a block.
const MAX_WARPS: usize = 32;

/// The nodes of a run are numbered in in-order sequence too: these are the *classes* of its points. Even ones are new runs.
const CLASSES: usize = 1 << (MAX_LEVELS + 1);
/// The bits of a class; the last class stands for no point.
const CLASS_BITS: u32 = MAX_LEVELS as u32 + 1;
const NO_CLASS: u32 = CLASSES as u32 - 1;

/// Number of coordinates that a thread loads at a time.
const BATCH: usize = 4;

/// The missing output position of a point, and of a coordinate.
const NO_POSITION: u32 = u32::MAX;
const NO_COORD_POSITION: u64 = u64::MAX;

/// Takes points down. In step 0 these are all points of each run, from its root. In step `d + 1` these are the undecided points of each node
/// at depth `d` below its root; those in the bin of the pivot are listed. One block per tile, `num_tiles` tiles per run or node.
#[kernel(family = "kdtree", block = THREADS, shared = SplitSmem<C, THREADS, ITEMS>, hot)]
#[instances(C = [f32, f64, i32])]
pub unsafe fn kdtree_split<C: Coord>(round: Round<'_, C>, step: u32, num_tiles: u32) {
    let (i, tile) = (thread::block_idx_x() / num_tiles, thread::block_idx_x() % num_tiles);
    let begin = tile * TILE as u32;
    let depth = step.saturating_sub(1);
    let (run, code) = (i >> depth, (1 << depth) + (i & ((1 << depth) - 1)));
    if step == 0 {
        let remaining = Remaining::all(round.run(run, 1), round.ids);
        if begin < remaining.len {
            let split = Split::<C, THREADS, ITEMS>::new(round, run, 0, shared_mem());
            split.load(false);
            split.tile(remaining, begin, 0);
        }
    } else {
        let num_inside = round.counts(run, code).load(INSIDE);
        if begin < num_inside {
            let Some(pivot) = PivotBin::find(round, run, code) else { return };
            let (list, _) = round.list(run, code);
            let remaining = Remaining::list(round.undecided.read_only(), list, num_inside);
            let split = Split::<C, THREADS, ITEMS>::new(round, run, code, shared_mem());
            split.load(false);
            let ends = round.ends(run, code);
            split.set_bracket(code, |end| ends.load(pivot.bin + end));
            split.tile(remaining, begin, 0);
        }
    }
}

/// The bin that contains the pivot of a node.
pub(super) struct PivotBin {
    bin: usize,
    /// The number of points of the run that are left of the bin.
    pub(super) num_left: u32,
}

impl PivotBin {
    /// Finds the bin; `None` if the bracket does not contain the pivot or the list was too short, which it notes.
    #[inline(always)]
    pub(super) unsafe fn find<C: Coord>(round: Round<'_, C>, run: u32, code: u32) -> Option<Self> {
        let counts = round.counts(run, code);
        let (num_left, num_inside) = (counts.load(LEFT), counts.load(INSIDE));
        let left_len = round.run(run, code).left_len;
        let (_, capacity) = round.list(run, code);
        if num_left > left_len || left_len - num_left >= num_inside || num_inside > capacity {
            if thread::thread_idx_x() == 0 {
                round.counts(run, 1).atomic_or(HAS_FAILED, 1, Ordering::Relaxed, Scope::Device);
            }
            return None;
        }
        let bins = round.bins(run, code);
        let count = |bin: usize| if bin < bins.len() { bins.load(bin).into() } else { 0 };
        let (bin, before) = find_digit(count, u64::from(left_len - num_left));
        Some(Self { bin: bin as usize, num_left: num_left + before as u32 })
    }
}

/// Shared memory of a tile.
#[derive(Clone, Copy)]
#[repr(C, align(16))]
pub struct SplitSmem<C: Coord, const THREADS: usize, const ITEMS: usize> {
    /// The bracket of each node of the run.
    brackets: [[C::Ranked; 2]; 1 << MAX_LEVELS],
    from: [[u32; THREADS]; ITEMS],
    to: [[u32; THREADS]; ITEMS],
    classes: [[u8; THREADS]; ITEMS],
    /// The number of points of each class in each warp, then the rank of the first of them in its run or list.
    counts: [[u32; CLASSES]; MAX_WARPS],
    /// The begin and the length of the run or list of each class.
    begins: [u32; CLASSES],
    lens: [u32; CLASSES],
}

/// The split of a run by blocks of `THREADS` threads with `ITEMS` points each.
pub(super) struct Split<'a, C: Coord, const THREADS: usize, const ITEMS: usize> {
    round: Round<'a, C>,
    pub(super) from: Points<'a, C>,
    run: u32,
    /// The node whose undecided points are split; 0 for all points.
    code: u32,
    smem: *mut SplitSmem<C, THREADS, ITEMS>,
}

impl<'a, C: Coord, const THREADS: usize, const ITEMS: usize> Split<'a, C, THREADS, ITEMS> {
    /// Points of a tile.
    const TILE: usize = THREADS * ITEMS;

    #[inline(always)]
    pub(super) fn new(
        round: Round<'a, C>,
        run: u32,
        code: u32,
        smem: *mut SplitSmem<C, THREADS, ITEMS>,
    ) -> Self {
        Self { round, from: round.points(), run, code, smem }
    }

    /// Returns the class of a node.
    #[inline(always)]
    pub(super) fn class(&self, code: u32) -> u32 {
        let depth = level(code - 1);
        ((2 * (code - (1 << depth)) + 1) << (self.round.num_levels - depth)) - 1
    }

    /// Returns the node of a class.
    #[inline(always)]
    fn code(&self, class: u32) -> u32 {
        let height = (class + 1).trailing_zeros();
        (1 << (self.round.num_levels - height)) + ((class + 1) >> (height + 1))
    }

    /// Sets the bracket of a node, whose ends are numbered 0 and 1. Ends with a barrier.
    #[inline(always)]
    pub(super) unsafe fn set_bracket(&self, code: u32, end: impl Fn(usize) -> C::Ranked) {
        let brackets = shared_field!(self.smem, brackets);
        if thread::thread_idx_x() == 0 {
            brackets.store(2 * code as usize, end(0));
            brackets.store(2 * code as usize + 1, end(1));
        }
        thread::sync_threads();
    }

    /// Loads the brackets of the nodes, or sets brackets that contain all points if `are_open`, and the places of runs and lists. Ends with a
    /// barrier.
    #[inline(always)]
    pub(super) unsafe fn load(&self, are_open: bool) {
        let brackets = shared_field!(self.smem, brackets);
        let class = thread::thread_idx_x();
        if class < (2 << self.round.num_levels) - 1 {
            let code = self.code(class);
            let (begin, len) = if class.is_multiple_of(2) {
                let run = self.round.run(self.run, code);
                (run.begin, run.len)
            } else {
                if are_open {
                    brackets.store(2 * code as usize, C::Ranked::ZEROS);
                    brackets.store(2 * code as usize + 1, C::Ranked::LAST);
                } else {
                    let ends = self.round.ends(self.run, code);
                    brackets.store(2 * code as usize, ends.load(0));
                    brackets.store(2 * code as usize + 1, ends.load(ends.len() - 1));
                }
                if code == self.code {
                    (self.round.bin_list(self.run, code), self.round.bin_capacity)
                } else {
                    self.round.list(self.run, code)
                }
            };
            shared_field!(self.smem, begins).store(class as usize, begin as u32);
            shared_field!(self.smem, lens).store(class as usize, len);
        }
        thread::sync_threads();
    }

    /// Returns the node at which each point ends: a new run, or the first node whose bracket contains the point. The points begin at
    /// `code`, or at the root if it is 0. `key` returns the key of a point on an axis.
    #[inline(always)]
    pub(super) unsafe fn take_down<const N: usize>(
        &self,
        code: u32,
        ids: [u32; N],
        key: impl Fn(usize, usize) -> C::Key,
    ) -> [u32; N] {
        let brackets = shared_field!(self.smem, brackets);
        let code = if code == 0 { 1 } else { code };
        let mut codes = [code; N];
        let mut depth = level(code - 1);
        while depth < self.round.num_levels {
            let axis = self.round.axis(self.run, depth);
            let mut keys = [C::Key::ZERO; N];
            for i in 0..N {
                keys[i] = computed(key(i, axis));
            }
            for i in 0..N {
                // A point that has ended remains on a level above.
                let code = codes[i];
                let (low, high) = (brackets.load(2 * code as usize), brackets.load(2 * code as usize + 1));
                let point = C::Ranked::new(keys[i], ids[i]);
                let (is_left, is_right) = (point.is_before(low), high.is_before(point));
                let child = 2 * code + u32::from(is_right);
                codes[i] = if (code >> depth == 1) & (is_left | is_right) { child } else { code };
            }
            depth += 1;
        }
        codes
    }

    /// Splits the tile that begins at remaining point `begin`. `pivots` has a bit for each class whose bracket contains only the pivot, which
    /// is written to the top nodes.
    #[inline(always)]
    pub(super) unsafe fn tile(&self, remaining: Remaining<'_>, begin: u32, pivots: u32) {
        let (from, to) = (shared_field!(self.smem, from), shared_field!(self.smem, to));
        let counts = shared_field!(self.smem, counts);
        let thread = thread::thread_idx_x();
        let (lane, warp) = (thread % 32, thread / 32);
        let rest = remaining.len - begin;
        let len = if rest < Self::TILE as u32 { rest } else { Self::TILE as u32 };
        // The points of a warp are consecutive; a lane takes every 32nd of them.
        let first = warp * 32 * ITEMS as u32 + lane;

        let own_counts = counts.part(warp as usize * CLASSES, CLASSES);
        own_counts.store(lane as usize, 0);
        warp::sync_warp(warp::FULL_MASK);
        // Loads in steps, so that the loads of a step are independent.
        let mut positions = [0; ITEMS];
        for row in 0..ITEMS {
            let i = first + 32 * row as u32;
            if i < len {
                positions[row] = computed(remaining.position(begin + i) as u32);
                from.store(i as usize, positions[row]);
            }
        }
        let mut ids = [0; ITEMS];
        for row in 0..ITEMS {
            if first + 32 * (row as u32) < len {
                ids[row] = computed(self.from.id(positions[row] as usize));
            }
        }
        let key = |indices: [u32; ITEMS], row: usize, axis: usize| {
            if first + 32 * (row as u32) < len {
                self.from.coords.load(indices[row] as usize * self.from.dims + axis).key()
            } else {
                C::Key::ZERO
            }
        };
        // Two cases, so that the loads of coordinates wait for ids only if they need them.
        let codes = if self.from.by_id {
            self.take_down(self.code, ids, |row, axis| key(ids, row, axis))
        } else {
            self.take_down(self.code, ids, |row, axis| key(positions, row, axis))
        };
        // The class, above the rank within the warp, in one register.
        let mut ranks = [0; ITEMS];
        for row in 0..ITEMS {
            let class = if first + 32 * (row as u32) < len { self.class(codes[row]) } else { NO_CLASS };
            let same = lanes_with_bits::<CLASS_BITS>(class);
            let before = own_counts.load(class as usize);
            warp::sync_warp(warp::FULL_MASK);
            if same & warp::lane_mask_lt() == 0 {
                own_counts.store(class as usize, before + same.count_ones());
            }
            warp::sync_warp(warp::FULL_MASK);
            ranks[row] = computed(class << 16 | (before + (same & warp::lane_mask_lt()).count_ones()));
        }
        thread::sync_threads();
        if warp == 0 {
            self.reserve(lane, pivots);
        }
        thread::sync_threads();

        for row in 0..ITEMS {
            let i = first + 32 * row as u32;
            if i < len {
                let class = ranks[row] >> 16;
                let rank = own_counts.load(class as usize) + (ranks[row] & 0xFFFF);
                let mut target = NO_POSITION;
                if pivots >> class & 1 == 0 && rank < shared_field!(self.smem, lens).load(class as usize) {
                    let place = shared_field!(self.smem, begins).load(class as usize) + rank;
                    if class.is_multiple_of(2) {
                        target = place;
                        self.round.to.ids.store(target as usize, ids[row]);
                    } else {
                        let is_in_bin = codes[row] == self.code;
                        let lists = if is_in_bin { self.round.in_bin } else { self.round.undecided };
                        lists.store(place as usize, from.load(i as usize));
                    }
                }
                to.store(i as usize, target);
                shared_field!(self.smem, classes).store(i as usize, class as u8);
            }
        }
        thread::sync_threads();
        self.finish_nodes(len, pivots);
        if !self.round.to.coords.is_empty() {
            self.copy(len);
        }
        // Before shared memory is reused.
        thread::sync_threads();
    }

    /// Writes the pivots of a tile to the top nodes, and counts the undecided points in their bins.
    #[inline(always)]
    unsafe fn finish_nodes(&self, len: u32, pivots: u32) {
        for i in strided(thread::thread_idx_x(), len, THREADS as u32) {
            let class = u32::from(shared_field!(self.smem, classes).load(i as usize));
            if class & 1 == 1 {
                let (code, position) = (self.code(class), shared_field!(self.smem, from).load(i as usize));
                if pivots >> class & 1 == 1 {
                    let node = self.round.node(self.run, code);
                    self.round.top.set(node as usize, self.from, position as usize);
                } else if code != self.code {
                    self.count_in_bin(code, position as usize);
                }
            }
        }
    }

    /// Counts an undecided point in its bin.
    #[inline(always)]
    unsafe fn count_in_bin(&self, code: u32, position: usize) {
        let axis = self.axis(code);
        let point = self.from.ranked(position, axis);
        let ends = self.round.ends(self.run, code);
        // The last bin whose first end is not after the point; the bracket contains it.
        let (mut bin, mut end) = (0, ends.len() - 1);
        while bin + 1 < end {
            let middle = (bin + end) / 2;
            if point.is_before(ends.load(middle)) {
                end = middle;
            } else {
                bin = middle;
            }
        }
        self.round.bins(self.run, code).atomic_add(bin, 1, Ordering::Relaxed, Scope::Device);
    }

    /// Reserves places in the run or list of class `class` for the points of the tile, and counts those that were taken to the left of its
    /// node. All lanes of one warp call, each with its class.
    #[inline(always)]
    unsafe fn reserve(&self, class: u32, pivots: u32) {
        let counts = shared_field!(self.smem, counts);
        let mut total = 0;
        for warp in 0..THREADS / 32 {
            let i = warp * CLASSES + class as usize;
            let count = counts.load(i);
            counts.store(i, total);
            total += count;
        }
        let is_class = class < (2 << self.round.num_levels) - 1;
        let code = if is_class { self.code(class) } else { 1 };
        // The points of the classes before this one in the subtree of its node.
        let width = 1 << (class + 1).trailing_zeros();
        let before = inclusive_sum(total) - total;
        let first = if is_class { class + 1 - width } else { class };
        let num_left = before - warp::shuffle_idx(warp::FULL_MASK, before, first);
        if is_class && pivots >> class & 1 == 0 {
            let of_node = self.round.counts(self.run, code);
            if total > 0 {
                let count = if class.is_multiple_of(2) {
                    MOVED
                } else if code == self.code {
                    IN_BIN
                } else {
                    INSIDE
                };
                let begin = of_node.atomic_add(count, total, Ordering::Relaxed, Scope::Device);
                for warp in 0..THREADS / 32 {
                    let i = warp * CLASSES + class as usize;
                    counts.store(i, counts.load(i) + begin);
                }
            }
            // Nodes above the one whose points are split have counted them before.
            let is_below = self.code == 0 || level(code - 1) > level(self.code - 1);
            if num_left > 0 && is_below {
                of_node.atomic_add(LEFT, num_left, Ordering::Relaxed, Scope::Device);
            }
        }
    }

    /// Splits all remaining points by one block. `pivots` is that of [`tile`](Self::tile).
    #[inline(always)]
    pub(super) unsafe fn all_tiles(&self, remaining: Remaining<'_>, pivots: u32) {
        // `u64`: the end of the last tile of the largest run exceeds 32 bits.
        let mut begin = 0;
        while begin < u64::from(remaining.len) {
            self.tile(remaining, begin as u32, pivots);
            begin += Self::TILE as u64;
        }
    }

    /// Returns the split axis of a node.
    #[inline(always)]
    pub(super) unsafe fn axis(&self, code: u32) -> usize {
        self.round.axis(self.run, level(code - 1))
    }

    /// Returns the run of a node.
    #[inline(always)]
    pub(super) fn run(&self, code: u32) -> Run {
        self.round.run(self.run, code)
    }

    /// Copies the coordinates; adjacent lanes copy adjacent coordinates.
    #[inline(always)]
    unsafe fn copy(&self, len: u32) {
        let (from, to) = (shared_field!(self.smem, from), shared_field!(self.smem, to));
        let dims = self.from.dims as u32;
        let divisor = Divisor::new(dims);
        // The step from one coordinate of a thread to its next, in points and axes.
        let points = divisor.quotient(THREADS as u32);
        let axes = THREADS as u32 - points * dims;
        let mut point = divisor.quotient(thread::thread_idx_x());
        let mut axis = thread::thread_idx_x() - point * dims;
        while point < len {
            // All loads of a batch are issued before the first store.
            let mut targets = [NO_COORD_POSITION; BATCH];
            let mut coords = [C::ZERO; BATCH];
            let mut j = 0;
            while j < BATCH {
                if point < len {
                    let target = to.load(point as usize);
                    if target != NO_POSITION {
                        let coord_at = |point: u32| u64::from(point) * u64::from(dims) + u64::from(axis);
                        let from = coord_at(from.load(point as usize));
                        (targets[j], coords[j]) =
                            (coord_at(target), computed(self.from.coords.load(from as usize)));
                    }
                }
                (point, axis) = (point + points, axis + axes);
                if axis >= dims {
                    (point, axis) = (point + 1, axis - dims);
                }
                j += 1;
            }
            let mut j = 0;
            while j < BATCH {
                if targets[j] != NO_COORD_POSITION {
                    self.round.to.coords.store(targets[j] as usize, coords[j]);
                }
                j += 1;
            }
        }
    }
}

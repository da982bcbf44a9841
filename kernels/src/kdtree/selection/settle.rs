//! Finds the exact pivot of a run, and moves the remaining points to their sides.

use super::split::{Split, SplitSmem};
use super::{COUNTS, LEFT, LevelRuns, OVERFLOW, PointsMut, RIGHT, Remaining};
use crate::block::bitonic;
use crate::block::nth::{NthSmem, clear_counts, count_digit, find_digit};
use crate::policy::SELECTION;
use crate::thread::coord::Coord;
use crate::thread::ranked::Ranked;
use crate::thread::words::Words;
use cuda_std::prelude::*;

const THREADS: usize = SELECTION.settle.0;
const ITEMS: usize = SELECTION.settle.1;
/// Maximum number of points that a block sorts to find the pivot.
pub const MAX_SORTED: usize = THREADS * ITEMS;

/// Finds the pivot of each run among the points inside the last bracket, writes it to its node in the top nodes, and moves the other points
/// to their sides. If a bracket has missed the pivot or overflowed, it finds the pivot among all points of the run and splits the run
/// again. One block per run.
#[kernel(
    family = "kdtree", block = THREADS, min_blocks = SELECTION.settle_min_blocks,
    shared = SettleSmem<<C as Coord>::Ranked>, hot
)]
#[instances(C = [f32, f64, i32])]
pub unsafe fn kdtree_settle<C: Coord>(
    level: LevelRuns<'_, C>,
    counts: SliceMut<u32>,
    to: PointsMut<'_, C>,
    top: PointsMut<'_, C>,
) {
    let i = thread::block_idx_x() as usize;
    let run = level.run(i as u32);
    let smem = shared_mem::<SettleSmem<C::Ranked>>();
    let split = Split::<C, THREADS, ITEMS> {
        from: level.points(),
        to,
        axis: level.axis(run),
        run,
        counts: counts.part(i * COUNTS, COUNTS),
        stage: level.stage,
        bracket: (C::Ranked::ZEROS, C::Ranked::LAST),
        smem: &raw mut (*smem).split,
    };
    if run.len > 0 {
        let inside = level.remaining(run, i, counts.read_only());
        Settle { split, inside, top, smem }.run()
    }
}

/// Shared memory of phases that do not overlap.
#[repr(C, align(16))]
pub union SettleSmem<R: Copy> {
    sorted: [R; MAX_SORTED],
    nth: NthSmem,
    split: SplitSmem<THREADS, ITEMS>,
}

/// The work of a block on one run.
struct Settle<'a, C: Coord> {
    split: Split<'a, C, THREADS, ITEMS>,
    /// The points inside the last bracket.
    inside: Remaining<'a>,
    top: PointsMut<'a, C>,
    smem: *mut SettleSmem<C::Ranked>,
}

impl<C: Coord> Settle<'_, C> {
    #[inline(always)]
    unsafe fn run(mut self) {
        let run = self.split.run;
        let num_left = self.split.counts.load(LEFT);
        let is_inside = num_left <= run.left_len && run.left_len - num_left < self.inside.len;
        let is_small = self.inside.len <= MAX_SORTED as u32 && self.split.counts.load(OVERFLOW) == 0;
        let (pivot, rest) = if is_inside && is_small {
            (self.select_inside(run.left_len - num_left), self.inside)
        } else {
            let all =
                Remaining { positions: self.inside.positions.part(0, 0), begin: run.begin, len: run.len };
            let pivot = self.select_of_all(all);
            thread::sync_threads();
            if thread::thread_idx_x() == 0 {
                self.split.counts.store(LEFT, 0);
                self.split.counts.store(RIGHT, 0);
            }
            (pivot, all)
        };
        // Before shared memory is reused; the counters are set.
        thread::sync_threads();
        self.split.bracket = (pivot, pivot);
        // `u64`: the end of the last tile of the largest run exceeds 32 bits.
        let mut begin = 0;
        while begin < u64::from(rest.len) {
            self.split.tile(rest, begin as u32, |_, position, _| {
                self.top.set(run.node as usize, self.split.from, position as usize);
            });
            begin += MAX_SORTED as u64;
        }
    }

    /// Returns the point of rank `n` among the points inside the last bracket, by a sort.
    #[inline(always)]
    unsafe fn select_inside(&self, n: u32) -> C::Ranked {
        let sorted = shared_field!(self.smem, sorted);
        let len = self.inside.len;
        let padded = len.next_power_of_two();
        let mut i = thread::thread_idx_x();
        while i < padded {
            let point = if i < len {
                self.split.from.ranked(self.inside.position(i), self.split.axis)
            } else {
                C::Ranked::LAST
            };
            sorted.store(i as usize, point);
            i += THREADS as u32;
        }
        thread::sync_threads();
        bitonic::sort(sorted, padded);
        sorted.load(n as usize)
    }

    /// Returns the pivot among all points of the run, by a radix selection digit by digit.
    #[inline(always)]
    unsafe fn select_of_all(&self, all: Remaining<'_>) -> C::Ranked {
        let counts = shared_field!(self.smem, nth.counts);
        let (mut prefix, mut n) = (C::Ranked::ZEROS, u64::from(self.split.run.left_len));
        let mut digit = 0;
        while digit < C::Ranked::DIGITS {
            clear_counts(counts);
            thread::sync_threads();
            let mut i = u64::from(thread::thread_idx_x());
            while i < u64::from(all.len) {
                let point = self.split.from.ranked(all.position(i as u32), self.split.axis);
                count_digit(point, prefix, digit, counts);
                i += THREADS as u64;
            }
            thread::sync_threads();
            let (value, before) = find_digit(|digit| counts.load(digit).into(), n);
            thread::sync_threads();
            prefix = prefix.with_digit(digit, value);
            n -= before;
            digit += 1;
        }
        prefix
    }
}

//! Finds the exact pivot of a node among the points of its bin, and takes the others down.

use super::split::{PivotBin, Split, SplitSmem};
use super::{HAS_FAILED, IN_BIN, Remaining, Round};
use crate::block::bitonic;
use crate::block::nth::{NthSmem, count_digit, nth_counted};
use crate::policy::SELECTION;
use crate::thread::coord::Coord;
use crate::thread::ranked::Ranked;
use cuda_std::prelude::*;

const THREADS: usize = SELECTION.settle.0;
const ITEMS: usize = SELECTION.settle.1;
/// Maximum number of points that a block sorts to find the pivot.
const MAX_SORTED: usize = THREADS * ITEMS;

/// Finds the pivot of each node at depth `depth` of the round, writes it to the top nodes, and takes the other points of its bin down. One
/// block per node.
#[kernel(
    family = "kdtree", block = THREADS, min_blocks = SELECTION.settle_min_blocks, shared = SettleSmem<C>, hot
)]
#[instances(C = [f32, f64, i32])]
pub unsafe fn kdtree_settle<C: Coord>(round: Round<'_, C>, depth: u32) {
    let i = thread::block_idx_x();
    let (run, code) = (i >> depth, (1 << depth) + (i & ((1 << depth) - 1)));
    let node = round.run(run, code);
    if node.len == 0 {
        return;
    }
    let smem = shared_mem::<SettleSmem<C>>();
    let Some(bin) = PivotBin::find(round, run, code) else { return };
    let num_in_bin = round.counts(run, code).load(IN_BIN);
    if num_in_bin > round.bin_capacity {
        if thread::thread_idx_x() == 0 {
            round.counts(run, 1).atomic_or(HAS_FAILED, 1, Ordering::Relaxed, Scope::Device);
        }
        return;
    }
    let remaining =
        Remaining::list(round.in_bin.read_only(), round.bin_list(run, code), num_in_bin);
    let settle = Settle { round, axis: round.axis(run, depth), remaining, smem };
    let pivot = settle.nth(node.left_len - bin.num_left);
    // Before shared memory is reused.
    thread::sync_threads();
    let split = Split::<C, THREADS, ITEMS>::new(round, run, code, &raw mut (*smem).split);
    split.load(false);
    split.set_bracket(code, |_| pivot);
    split.all_tiles(remaining, 1 << split.class(code));
}

/// Shared memory of phases that do not overlap.
#[repr(C, align(16))]
pub union SettleSmem<C: Coord> {
    sorted: [C::Ranked; MAX_SORTED],
    nth: NthSmem,
    split: SplitSmem<C, THREADS, ITEMS>,
}

/// The search for a pivot.
struct Settle<'a, C: Coord> {
    round: Round<'a, C>,
    axis: usize,
    remaining: Remaining<'a>,
    smem: *mut SettleSmem<C>,
}

impl<C: Coord> Settle<'_, C> {
    /// Returns the point of rank `n`.
    #[inline(always)]
    unsafe fn nth(&self, n: u32) -> C::Ranked {
        if self.remaining.len <= MAX_SORTED as u32 { self.nth_by_sort(n) } else { self.nth_by_digits(n) }
    }

    #[inline(always)]
    unsafe fn ranked(&self, i: u32) -> C::Ranked {
        self.round.points().ranked(self.remaining.position(i), self.axis)
    }

    /// Returns the point of rank `n` by a sort.
    #[inline(always)]
    unsafe fn nth_by_sort(&self, n: u32) -> C::Ranked {
        let sorted = shared_field!(self.smem, sorted);
        let len = self.remaining.len;
        let padded = len.next_power_of_two();
        let mut i = thread::thread_idx_x();
        while i < padded {
            sorted.store(i as usize, if i < len { self.ranked(i) } else { C::Ranked::LAST });
            i += THREADS as u32;
        }
        thread::sync_threads();
        bitonic::sort(sorted, padded);
        sorted.load(n as usize)
    }

    /// Returns the point of rank `n` by a radix selection.
    #[inline(always)]
    unsafe fn nth_by_digits(&self, n: u32) -> C::Ranked {
        let counts = shared_field!(self.smem, nth.counts);
        nth_counted(n.into(), counts, |prefix, digit| {
            let mut i = thread::thread_idx_x();
            while i < self.remaining.len {
                count_digit(self.ranked(i), prefix, digit, counts);
                i += THREADS as u32;
            }
        })
    }
}

//! Splits a run again whose brackets have failed: finds each pivot among all points of its node.

use super::split::{Split, SplitSmem};
use super::{HAS_FAILED, MOVED, Remaining, Round};
use crate::block::nth::{NthSmem, count_digit, nth_counted};
use crate::policy::SELECTION;
use crate::thread::coord::Coord;
use cuda_std::prelude::*;

const THREADS: usize = SELECTION.settle.0;
const ITEMS: usize = SELECTION.settle.1;

/// Splits each run of the round again that has failed. One block per run.
#[kernel(
    family = "kdtree", block = THREADS, min_blocks = SELECTION.settle_min_blocks, shared = AgainSmem<C>, hot
)]
#[instances(C = [f32, f64, i32])]
pub unsafe fn kdtree_split_again<C: Coord>(round: Round<'_, C>) {
    let run = thread::block_idx_x();
    if round.counts(run, 1).load(HAS_FAILED) == 0 {
        return;
    }
    let smem = shared_mem::<AgainSmem<C>>();
    let split = Split::<C, THREADS, ITEMS>::new(round, run, 0, &raw mut (*smem).split);
    let remaining = Remaining::all(round.run(run, 1), round.ids);
    split.load(true);
    let first_leaf = 1 << round.num_levels;
    let mut code = 1;
    while code < first_leaf {
        if split.run(code).len > 0 {
            let pivot = nth_of_node(&split, remaining, code, shared_field!(smem, nth.counts));
            split.set_bracket(code, |_| pivot);
        }
        code += 1;
    }
    if thread::thread_idx_x() < first_leaf {
        round.counts(run, first_leaf + thread::thread_idx_x()).store(MOVED, 0);
    }
    thread::sync_threads();
    // Odd classes are nodes of the round.
    split.all_tiles(remaining, 0xAAAA_AAAA);
}

/// Shared memory of a block.
#[repr(C, align(16))]
pub struct AgainSmem<C: Coord> {
    split: SplitSmem<C, THREADS, ITEMS>,
    nth: NthSmem,
}

/// Returns the pivot of a node, whose bracket is open, by a radix selection. The brackets above contain only pivots.
#[inline(always)]
unsafe fn nth_of_node<C: Coord>(
    split: &Split<'_, C, THREADS, ITEMS>,
    remaining: Remaining<'_>,
    code: u32,
    counts: SharedSlice<'_, u32>,
) -> C::Ranked {
    let axis = split.axis(code);
    nth_counted(split.run(code).left_len.into(), counts, |prefix, digit| {
        let mut i = u64::from(thread::thread_idx_x());
        while i < u64::from(remaining.len) {
            let position = remaining.position(i as u32);
            let key = |_: usize, axis: usize| split.from.coord(position, axis).key();
            let [end] = split.take_down(1, [split.from.id(position)], key);
            if end == code {
                count_digit(split.from.ranked(position, axis), prefix, digit, counts);
            }
            i += THREADS as u64;
        }
    })
}

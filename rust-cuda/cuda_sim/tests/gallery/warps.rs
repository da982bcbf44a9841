//! Warp operations: their results, masks, exited lanes, and the memory order that they do not give.

use crate::harness::{Case, Device, error, source, under_all};
use crate::kernels::warps::*;
use crate::ptx::ptx;
use cuda_std::prelude::*;
use cuda_std::warp::{WarpMatchValue, WarpShuffleValue};
use std::fmt::Debug;

const N: usize = 64;

#[repr(C)]
struct Smem {
    items: [u32; N],
}

/// Lanes without an item leave before the shuffle.
#[kernel(block = N)]
unsafe fn shuffle_after_exit(input: Slice<u32>, out: SliceMut<u32>) {
    let i = thread::index_1d() as usize;
    if i >= input.len() {
        return;
    }
    let next = warp::shuffle_down(warp::FULL_MASK, input.load(i), 1); // ! shuffle with an exited lane
    out.store(i, next);
}

#[kernel(block = N)]
unsafe fn shuffle_before_exit(input: Slice<u32>, out: SliceMut<u32>) {
    let i = thread::index_1d() as usize;
    let item = if i < input.len() { input.load(i) } else { 0 };
    let next = warp::shuffle_down(warp::FULL_MASK, item, 1);
    if i < input.len() {
        out.store(i, if i + 1 < input.len() { next } else { item });
    }
}

/// The lower half of a warp reads from the upper one, which does not take part.
#[kernel(block = N)]
unsafe fn shuffle_from_outside(input: Slice<u32>, out: SliceMut<u32>) {
    let i = thread::index_1d() as usize;
    let mut item = input.load(i);
    if i % 32 < 16 {
        item = warp::shuffle_xor(0xFFFF, item, 16); // ! shuffle from outside the mask
    }
    out.store(i, item);
}

#[kernel(block = N)]
unsafe fn shuffle_from_inside(input: Slice<u32>, out: SliceMut<u32>) {
    let i = thread::index_1d() as usize;
    let mut item = input.load(i);
    if i % 32 < 16 {
        item = warp::shuffle_xor(0xFFFF, item, 8);
    }
    out.store(i, item);
}

/// The mask is computed for the wrong half.
#[kernel(block = N)]
unsafe fn vote_without_caller(input: Slice<u32>, out: SliceMut<u32>) {
    let i = thread::index_1d() as usize;
    let item = input.load(i);
    let upper = i % 32 >= 16;
    let mask = if upper { 0x0000_FFFF } else { 0xFFFF_0000 };
    out.store(i, warp::warp_vote_ballot(mask, item % 3 == 0).count_ones()); // ! caller not in mask
}

#[kernel(block = N)]
unsafe fn vote_of_halves(input: Slice<u32>, out: SliceMut<u32>) {
    let i = thread::index_1d() as usize;
    let item = input.load(i);
    let upper = i % 32 >= 16;
    let mask = if upper { 0xFFFF_0000 } else { 0x0000_FFFF };
    out.store(i, warp::warp_vote_ballot(mask, item % 3 == 0).count_ones());
}

/// Some lanes name all lanes, others only the lanes of their branch.
#[kernel(block = N)]
unsafe fn masks_differ(input: Slice<u32>, out: SliceMut<u32>) {
    let i = thread::index_1d() as usize;
    let item = input.load(i);
    let mask = if i % 32 < 16 { 0x0000_FFFF } else { warp::FULL_MASK };
    let wide = warp::warp_reduce(mask, item, warp::WarpReductionOp::Max); // ! masks differ
    out.store(i, wide);
}

#[kernel(block = N)]
unsafe fn masks_agree(input: Slice<u32>, out: SliceMut<u32>) {
    let i = thread::index_1d() as usize;
    let wide = warp::warp_reduce(warp::FULL_MASK, input.load(i), warp::WarpReductionOp::Max);
    out.store(i, wide);
}

/// Both sides of a branch vote with the full mask: two votes that never meet.
#[kernel(block = N)]
unsafe fn votes_in_branches(input: Slice<u32>, out: SliceMut<u32>) {
    let i = thread::index_1d() as usize;
    let item = input.load(i);
    let votes = if item % 2 == 0 {
        warp::warp_vote_ballot(warp::FULL_MASK, true) // ! vote in both branches
    } else {
        warp::warp_vote_ballot(warp::FULL_MASK, false) // ! vote in both branches
    };
    out.store(i, votes.count_ones());
}

#[kernel(block = N)]
unsafe fn vote_before_branch(input: Slice<u32>, out: SliceMut<u32>) {
    let i = thread::index_1d() as usize;
    let item = input.load(i);
    let votes = warp::warp_vote_ballot(warp::FULL_MASK, item % 2 == 0);
    out.store(i, votes.count_ones());
}

/// A vote makes the lanes meet, but orders no memory.
#[kernel(block = N, shared = Smem)]
unsafe fn ballot_as_fence(input: Slice<u32>, out: SliceMut<u32>) {
    let items = shared_field!(shared_mem::<Smem>(), items);
    let (t, i) = (thread::thread_idx_x() as usize, thread::index_1d() as usize);
    items.store(t, input.load(i)); // ! ballot as memory order
    warp::warp_vote_ballot(warp::FULL_MASK, true);
    out.store(i, items.load(t ^ 1)); // ! ballot as memory order
}

/// A warp-synchronous exchange, which was correct on GPUs whose lanes run in lockstep.
#[kernel(block = N, shared = Smem)]
unsafe fn warp_synchronous(input: Slice<u32>, out: SliceMut<u32>) {
    let items = shared_field!(shared_mem::<Smem>(), items);
    let (t, i) = (thread::thread_idx_x() as usize, thread::index_1d() as usize);
    items.store(t, input.load(i)); // ! warp-synchronous code
    out.store(i, items.load(t ^ 1)); // ! warp-synchronous code
}

#[kernel(block = N, shared = Smem)]
unsafe fn sync_as_fence(input: Slice<u32>, out: SliceMut<u32>) {
    let items = shared_field!(shared_mem::<Smem>(), items);
    let (t, i) = (thread::thread_idx_x() as usize, thread::index_1d() as usize);
    items.store(t, input.load(i));
    warp::sync_warp(warp::FULL_MASK);
    out.store(i, items.load(t ^ 1));
}

/// A sum over a warp: each round reads what the other lanes wrote in the last one.
#[kernel(block = N, shared = Smem)]
unsafe fn rounds_without_sync(input: Slice<u32>, out: SliceMut<u32>) {
    let items = shared_field!(shared_mem::<Smem>(), items);
    let (t, i) = (thread::thread_idx_x() as usize, thread::index_1d() as usize);
    items.store(t, input.load(i));
    warp::sync_warp(warp::FULL_MASK);
    let mut delta = 16;
    while delta > 0 {
        let other = items.load(t ^ delta); // ! missing sync_warp between rounds
        let own = items.load(t);
        warp::sync_warp(warp::FULL_MASK);
        items.store(t, own + other); // ! missing sync_warp between rounds
        delta /= 2;
    }
    out.store(i, items.load(t));
}

#[kernel(block = N, shared = Smem)]
unsafe fn rounds(input: Slice<u32>, out: SliceMut<u32>) {
    let items = shared_field!(shared_mem::<Smem>(), items);
    let (t, i) = (thread::thread_idx_x() as usize, thread::index_1d() as usize);
    items.store(t, input.load(i));
    warp::sync_warp(warp::FULL_MASK);
    let mut delta = 16;
    while delta > 0 {
        let other = items.load(t ^ delta);
        let own = items.load(t);
        warp::sync_warp(warp::FULL_MASK);
        items.store(t, own + other);
        warp::sync_warp(warp::FULL_MASK);
        delta /= 2;
    }
    out.store(i, items.load(t));
}

/// The lowest lane writes for all and passes the index by a shuffle, which orders nothing.
#[kernel(block = N)]
unsafe fn leader_by_shuffle(input: Slice<u32>, out: SliceMut<u32>) {
    let i = thread::index_1d() as usize;
    let first = i / 32 * 32;
    if i == first {
        out.store(i, 7); // ! shuffle as memory order
    }
    let place = warp::shuffle_idx(warp::FULL_MASK, i as u32, 0);
    let seven = out.load(place as usize); // ! shuffle as memory order
    if i != first {
        out.store(i, seven + input.load(i));
    }
}

#[kernel(block = N)]
unsafe fn leader_by_sync(input: Slice<u32>, out: SliceMut<u32>) {
    let i = thread::index_1d() as usize;
    let first = i / 32 * 32;
    if i == first {
        out.store(i, 7);
    }
    warp::sync_warp(warp::FULL_MASK);
    let place = warp::shuffle_idx(warp::FULL_MASK, i as u32, 0);
    let seven = out.load(place as usize);
    if i != first {
        out.store(i, seven + input.load(i));
    }
}

/// Assumes that the active lanes are the lanes that took the branch.
#[kernel(block = N)]
unsafe fn activemask_in_branch(input: Slice<u32>, out: SliceMut<u32>) {
    let i = thread::index_1d() as usize;
    let item = input.load(i);
    if item % 4 == 0 {
        let mask = warp::activemask();
        out.store(i, warp::warp_vote_ballot(mask, true).count_ones()); // ! activemask as mask
    }
}

#[kernel(block = N)]
unsafe fn vote_for_mask(input: Slice<u32>, out: SliceMut<u32>) {
    let i = thread::index_1d() as usize;
    let item = input.load(i);
    let mask = warp::warp_vote_ballot(warp::FULL_MASK, item % 4 == 0);
    if item % 4 == 0 {
        out.store(i, warp::warp_vote_ballot(mask, true).count_ones());
    }
}

/// A segment of 12 lanes.
#[kernel(block = N)]
unsafe fn odd_width(input: Slice<u32>, out: SliceMut<u32>) {
    let i = thread::index_1d() as usize;
    let (item, _) = warp::warp_shuffle_xor(warp::FULL_MASK, input.load(i), 8, 12); // ! odd segment width
    out.store(i, item);
}

#[kernel(block = N)]
unsafe fn even_width(input: Slice<u32>, out: SliceMut<u32>) {
    let i = thread::index_1d() as usize;
    let (item, _) = warp::warp_shuffle_xor(warp::FULL_MASK, input.load(i), 8, 16);
    out.store(i, item);
}

const BLOCKS: usize = 2;
const ITEMS: usize = BLOCKS * N;

fn ids() -> impl Iterator<Item = u32> {
    0..ITEMS as u32
}

macro_rules! case {
    ($name:literal, $($kind:ident)|+, $always:literal, $items:expr, $wrong:ident, $right:ident, $values:expr) => {
        Case {
            name: $name,
            caught_as: error!($($kind)|+),
            always: $always,
            wrong: |d: &Device| d.in_out::<$wrong>(BLOCKS as u32, $items, $items),
            right: |d: &Device| d.in_out::<$right>(BLOCKS as u32, $items, $items),
            values: $values,
            source: source!("warps.rs"),
        }
    };
}

pub(crate) fn cases() -> Vec<Case> {
    vec![
        case!(
            "shuffle with an exited lane",
            ExitedLane,
            true,
            100,
            shuffle_after_exit,
            shuffle_before_exit,
            || (0..100).map(|i| if i % 32 < 31 && i < 99 { i + 1 } else { i }).collect()
        ),
        case!(
            "shuffle from outside the mask",
            BadSource,
            true,
            ITEMS,
            shuffle_from_outside,
            shuffle_from_inside,
            || ids().map(|i| if i % 32 < 16 { i ^ 8 } else { i }).collect()
        ),
        case!("caller not in mask", NotInMask, true, ITEMS, vote_without_caller, vote_of_halves, || {
            ids().map(|i| (i / 16 * 16..i / 16 * 16 + 16).filter(|j| j % 3 == 0).count() as u32).collect()
        }),
        case!("masks differ", WarpMismatch | ExitedLane, true, ITEMS, masks_differ, masks_agree, || {
            ids().map(|i| i / 32 * 32 + 31).collect()
        }),
        case!(
            "vote in both branches",
            WarpMismatch,
            true,
            ITEMS,
            votes_in_branches,
            vote_before_branch,
            || { vec![16; ITEMS] }
        ),
        case!("ballot as memory order", Race, true, ITEMS, ballot_as_fence, sync_as_fence, || {
            ids().map(|i| i ^ 1).collect()
        }),
        case!("warp-synchronous code", Race, true, ITEMS, warp_synchronous, sync_as_fence, || {
            ids().map(|i| i ^ 1).collect()
        }),
        case!("missing sync_warp between rounds", Race, true, ITEMS, rounds_without_sync, rounds, || {
            ids().map(|i| (i / 32 * 32..i / 32 * 32 + 32).sum()).collect()
        }),
        case!("shuffle as memory order", Race, true, ITEMS, leader_by_shuffle, leader_by_sync, || {
            ids().map(|i| if i % 32 == 0 { 7 } else { 7 + i }).collect()
        }),
        case!(
            "activemask as mask",
            WarpMismatch | ExitedLane,
            true,
            ITEMS,
            activemask_in_branch,
            vote_for_mask,
            || { ids().map(|i| if i % 4 == 0 { 8 } else { 0 }).collect() }
        ),
        case!("odd segment width", BadArgument, true, ITEMS, odd_width, even_width, || {
            ids().map(|i| i ^ 8).collect()
        }),
    ]
}

#[test]
fn shuffles_of_each_type() {
    fn check<T: WarpShuffleValue + Default + PartialEq + Debug + 'static>(d: &Device, value: fn(u64) -> T) {
        let input: Vec<T> = (0..32).map(|i| value((i + 1u64).wrapping_mul(0x9E37_79B9_7F4A_7C15))).collect();
        let out = d.fresh::<T>(128);
        d.run::<warp_shuffles<T>>(1, (d.array(&input).slice(), out.slice_mut(), 3, 8));
        for (i, values) in d.read::<T>(out).unwrap().chunks(4).enumerate() {
            let up = if i % 8 >= 3 { i - 3 } else { i };
            let down = if i % 8 < 5 { i + 3 } else { i };
            assert_eq!(values, [input[i / 8 * 8 + 3], input[up], input[down], input[i ^ 3]], "thread {i}");
        }
    }
    under_all(|d| {
        check(d, |x| x as u8);
        check(d, |x| x as i16);
        check(d, |x| x as u32);
        check(d, |x| x as f32);
        check(d, |x| x as i64);
        check(d, |x| x as f64);
        check(d, |x| u128::from(x) << 64 | u128::from(x.rotate_left(7)));
        check(d, |x| !(i128::from(x) << 64));
    });
}

#[test]
fn matches_of_each_type() {
    fn check<T: WarpMatchValue + PartialEq + 'static>(d: &Device, value: fn(u32) -> T) {
        for (values, all) in [([3, 5, 3, 4], 0), ([5; 4], u32::MAX)] {
            let input: Vec<T> = (0..32).map(|i| value(values[i % 4])).collect();
            let out = d.fresh::<u32>(64);
            d.run::<warp_matches<T>>(1, (d.array(&input).slice(), out.slice_mut()));
            for (i, words) in d.read::<u32>(out).unwrap().chunks(2).enumerate() {
                let same = (0..32).filter(|&l| input[l] == input[i]).fold(0, |mask, l| mask | 1 << l);
                assert_eq!(words, [same, all], "thread {i}");
            }
        }
    }
    under_all(|d| {
        check(d, |x| x);
        check(d, |x| -(x as i32));
        check(d, |x| u64::from(x) << 40);
        check(d, |x| -(i64::from(x) << 40));
        check(d, |x| x as f32);
        check(d, |x| f64::from(x) * 1e300);
    });
}

#[test]
fn reductions_and_votes() {
    under_all(|d| {
        let input: Vec<i32> = (0..32).map(|i| 0x1357_9BDF_i32.wrapping_mul(i + 1)).collect();
        for mask in [u32::MAX, 0x000F_FFFF, 0x8000_0000, 0xAAAA_AAAA] {
            let out = d.zeros(6 * 32);
            d.run::<warp_reductions<i32>>(1, (d.array(&input).slice(), out.slice_mut(), mask));
            let chosen = || (0..32).filter(|lane| mask >> lane & 1 != 0).map(|lane| input[lane]);
            let of = |f: fn(i32, i32) -> i32| chosen().reduce(f).unwrap();
            let expected = [
                of(i32::wrapping_add),
                of(i32::min),
                of(i32::max),
                of(|a, b| a & b),
                of(|a, b| a | b),
                of(|a, b| a ^ b),
            ];
            let lane = mask.trailing_zeros() as usize;
            assert_eq!(d.read::<i32>(out).unwrap()[6 * lane..][..6], expected, "{mask:x}");
        }
        let unsigned: Vec<u32> = input.iter().map(|&x| x as u32).collect();
        let out = d.zeros(6 * 32);
        d.run::<warp_reductions<u32>>(1, (d.array(&unsigned).slice(), out.slice_mut(), u32::MAX));
        let least_and_largest = [*unsigned.iter().min().unwrap(), *unsigned.iter().max().unwrap()];
        assert_eq!(d.read::<u32>(out).unwrap()[1..3], least_and_largest);

        for predicates in [0, u32::MAX, 0x0F0F_0001] {
            let input: Vec<u32> = (0..32).map(|lane| predicates >> lane & 1).collect();
            let out = d.fresh::<u32>(96);
            d.run::<warp_votes>(1, (d.array(&input).slice(), out.slice_mut()));
            let expected = [predicates, (predicates != 0).into(), (predicates == u32::MAX).into()];
            assert_eq!(d.read::<u32>(out).unwrap(), expected.repeat(32));
        }
    });
}

#[test]
fn instructions_of_each_collective() {
    let Some(ptx) = ptx() else { return };
    let count = |kernel: &str, family: &str| ptx.opcodes(kernel, &[family]).len();
    for (name, words) in
        [("u8", 1), ("i16", 1), ("u32", 1), ("f32", 1), ("i64", 2), ("f64", 2), ("u128", 4), ("i128", 4)]
    {
        assert_eq!(count(&format!("warp_shuffles_{name}"), "shfl"), 4 * words, "{name}");
    }
    for (name, bits) in [("u32", 32), ("i32", 32), ("f32", 32), ("u64", 64), ("i64", 64), ("f64", 64)] {
        let opcodes = ptx.opcodes(&format!("warp_matches_{name}"), &["match"]);
        assert_eq!(opcodes, [format!("match.any.sync.b{bits}"), format!("match.all.sync.b{bits}")]);
    }
    let sums = ["redux.sync.add.s32", "redux.sync.min.s32", "redux.sync.max.s32"];
    let opcodes = ptx.opcodes("warp_reductions_i32", &["redux"]);
    assert!(
        opcodes.len() == 6 && sums.iter().all(|sum| opcodes.iter().any(|other| other == sum)),
        "{opcodes:?}"
    );
    assert_eq!(ptx.opcodes("warp_votes", &["vote"]).len(), 3);
}

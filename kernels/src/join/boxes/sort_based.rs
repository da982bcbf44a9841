//! All pairs of boxes by the sorted ends of boxes along an axis (Aghajarian, Puri, Prasad 2016, *GCMF: An efficient end-to-end spatial
//! join system over large polygonal datasets on GPGPU platform*, the sort-based filter, as Løvik 2020 describes it).
//!
//! The boxes of both sets have common numbers, the left set first. End `2 * i` is the low end of box `i`, end `2 * i + 1` its high end.
//! Ends are sorted by value, then low ends before high ends. Each box visits the low ends between its own two ends: an overlap is found
//! once, by the box whose low end comes first.

use super::geometry::Aabb;
use super::levels::grown;
use super::nested::BoxSets;
use super::output::PairOutput;
use crate::policy::{JOIN_THREADS, PER_ITEM_THREADS, SWEEP_TASK};
use crate::thread::coord::{Coord, Float};
use crate::thread::items::{own_item, strided};
use crate::warp::search::partition_point;
use cuda_std::prelude::*;

/// Writes the keys of the low ends of all boxes, then of their high ends, and the ends; a thread per box. A stable sort by the keys puts
/// the ends in order. Boxes are longer by `growth` at each side.
#[kernel(family = "research-join-boxes", block = PER_ITEM_THREADS)]
#[instances(C = [f32, f64])]
pub unsafe fn join_boxes_ends<C: Float>(
    sets: BoxSets<'_, C>,
    axis: u32,
    growth: f64,
    keys: SliceMut<<C as Coord>::Key>,
    ends: SliceMut<u32>,
) {
    let num_boxes = ends.len() / 2;
    let Some(i) = own_item(num_boxes) else { return };
    let (dims, [num_left, _]) = (sets.dims as usize, sets.lens());
    let (set, of) = if i < num_left { (sets.left, i) } else { (sets.right, i - num_left) };
    let coord = |corner: usize| set.load((2 * of + corner) * dims + axis as usize).to_f64();
    let (low, high) = grown(coord(0), coord(1), growth);
    // Rounding is monotone: ranges that meet still do.
    for (corner, x) in [low, high].into_iter().enumerate() {
        keys.store(corner * num_boxes + i, C::from_f64(x).key());
        ends.store(corner * num_boxes + i, (2 * i + corner) as u32);
    }
}

/// Writes the rank of each end: its position in the sorted ends; a thread per end.
#[kernel(family = "research-join-boxes", block = PER_ITEM_THREADS)]
pub unsafe fn join_boxes_ranks(ends: Slice<u32>, ranks: SliceMut<u32>) {
    let Some(i) = own_item(ends.len()) else { return };
    ranks.store(ends.load(i) as usize, i as u32);
}

/// Returns the ranks between the ends of a box, none if its high end comes first.
#[inline(always)]
unsafe fn ranks_between(ranks: Slice<'_, u32>, i: usize) -> (usize, usize) {
    let (begin, end) = (ranks.load(2 * i) as usize + 1, ranks.load(2 * i + 1) as usize);
    (begin, if begin < end { end } else { begin })
}

/// Writes the number of tasks of each box: the ranks between its ends in parts of [`SWEEP_TASK`]; a thread per box.
#[kernel(family = "research-join-boxes", block = PER_ITEM_THREADS)]
pub unsafe fn join_boxes_tasks(ranks: Slice<u32>, tasks: SliceMut<u32>) {
    let Some(i) = own_item(tasks.len()) else { return };
    let (begin, end) = ranks_between(ranks, i);
    tasks.store(i, (end - begin).div_ceil(SWEEP_TASK) as u32);
}

/// The sorted ends of the boxes of both sets, and the tasks of the boxes.
#[derive(Clone, Copy, KernelArgs)]
pub struct SortedEnds<'a> {
    /// The ends in order.
    pub ends: Slice<'a, u32>,
    /// The rank of each end.
    pub ranks: Slice<'a, u32>,
    /// The first task of each box, and the number of all tasks.
    pub tasks: Slice<'a, u64>,
}

/// Counts or writes the pairs of each task; a block takes every n-th task. Counts are 0 before.
#[kernel(family = "research-join-boxes", block = JOIN_THREADS, hot)]
#[instances(C = [f32, f64], D = [2, 3, 6])]
pub unsafe fn join_boxes_sweep<C: Float, const D: usize>(
    sets: BoxSets<'_, C>,
    sorted: SortedEnds<'_>,
    output: PairOutput<'_>,
) {
    let (dims, [num_left, _]) = (sets.dims as usize, sets.lens());
    let (test, pairing) = sets.test();
    let (num_boxes, thread) = (sorted.tasks.len() - 1, thread::thread_idx_x() as usize);
    let num_tasks = sorted.tasks.load(num_boxes) as usize;
    let mut count = 0_u32;
    for task in strided(thread::block_idx_x() as usize, num_tasks, thread::grid_dim_x() as usize) {
        // Each warp searches for the box of the task: the last one whose tasks begin at or before it.
        let i = partition_point::<32>(0, num_boxes, |i| sorted.tasks.load(i) <= task as u64) - 1;
        let is_left = i < num_left;
        let (own_set, own_at) = if is_left { (sets.left, i) } else { (sets.right, i - num_left) };
        let own = Aabb::<C, D>::load(own_set, own_at, dims);
        if !own.is_valid(dims) {
            continue;
        }
        let (begin, end) = ranks_between(sorted.ranks, i);
        let begin = begin + (task - sorted.tasks.load(i) as usize) * SWEEP_TASK;
        let end = if end - begin < SWEEP_TASK { end } else { begin + SWEEP_TASK };
        for rank in strided(begin + thread, end, JOIN_THREADS) {
            let end = sorted.ends.load(rank) as usize;
            let j = end / 2;
            if end & 1 != 0 || (j < num_left) == is_left {
                continue;
            }
            let (left_at, right_at) = if is_left { (i, j - num_left) } else { (j, i - num_left) };
            let (set, at) = if is_left { (sets.right, right_at) } else { (sets.left, left_at) };
            let other = Aabb::load(set, at, dims);
            let holds = if is_left { test.holds(&own, &other) } else { test.holds(&other, &own) };
            if other.is_valid(dims) && holds && pairing.includes(right_at as u32, left_at as u32) {
                count += 1;
                if !output.counts.is_empty() {
                    output.append(left_at as u32, right_at as u32);
                }
            }
        }
    }
    output.add_to_total(count);
}

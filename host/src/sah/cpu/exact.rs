//! The best plane of every node: all that touch a triangle's box are tried, from the root on (Wald, Havran 2006: On building fast kd-Trees
//! for Ray Tracing, and on doing that in O(N log N); here with a sort a node).

use super::super::host::Subtree;
use super::{Input, Item, MANY};
use kauri_kernels::sah::aabb::Aabb;
use kauri_kernels::sah::model::{Splits, leaf_cost};
use kauri_kernels::sah::node::MAX_DEPTH;
use rayon::prelude::*;

/// A plane, and what it costs to split by it.
#[derive(Clone, Copy)]
struct Candidate {
    cost: f32,
    axis: u32,
    plane: f32,
}

/// The tree over the triangles of a node.
pub(super) fn subtree(input: &Input<'_>, items: Vec<Item>, bounds: Aabb, depth: u32) -> Subtree {
    let leaf = |items: Vec<Item>| Subtree::Leaf(items.iter().map(|item| item.triangle).collect());
    let splits = Splits::new(bounds, input.options.step_cost);
    let best = |axis| best_of_axis(&splits, &items, axis);
    let candidates: Vec<_> = if items.len() > MANY {
        (0..3u32).into_par_iter().filter_map(best).collect()
    } else {
        (0..3).filter_map(best).collect()
    };
    let best = candidates.into_iter().min_by(|a, b| a.cost.total_cmp(&b.cost));
    let Some(Candidate { axis, plane, .. }) =
        best.filter(|best| best.cost < leaf_cost(items.len() as u32) && depth < MAX_DEPTH)
    else {
        return leaf(items);
    };
    let [below, above] = input.halves(&items, axis, plane);
    let boxes = bounds.halves(axis, plane);
    let is_large = items.len() > MANY / 8;
    drop(items);
    let child = |items, side: usize| subtree(input, items, boxes[side], depth + 1);
    let (below, above) = if is_large {
        rayon::join(|| child(below, 0), || child(above, 1))
    } else {
        (child(below, 0), child(above, 1))
    };
    Subtree::inner(axis, plane, below, above)
}

/// The plane across an axis that costs least, the lowest of several.
fn best_of_axis(splits: &Splits, items: &[Item], axis: u32) -> Option<Candidate> {
    let sorted = |of: &dyn Fn(&Item) -> Option<f32>| {
        let mut sorted: Vec<f32> = items.iter().filter_map(of).collect();
        sorted.sort_unstable_by(f32::total_cmp);
        sorted
    };
    let (low, high) =
        (|item: &Item| item.bounds.low[axis as usize], |item: &Item| item.bounds.high[axis as usize]);
    let lows = sorted(&|item| Some(low(item)));
    let highs = sorted(&|item| Some(high(item)));
    let flats = sorted(&|item| (low(item) == high(item)).then(|| low(item)));
    let (mut num_lows, mut num_flats, mut num_highs) = (0, 0, 0);
    let mut best: Option<Candidate> = None;
    let (mut from_lows, mut from_highs) = (lows.iter().peekable(), highs.iter().peekable());
    loop {
        // The next place where something begins or ends.
        let plane = match (from_lows.peek(), from_highs.peek()) {
            (Some(&&low), Some(&&high)) => low.min(high),
            (Some(&&low), None) => low,
            (None, Some(&&high)) => high,
            (None, None) => return best,
        };
        while from_lows.next_if(|&&low| low <= plane).is_some() {}
        while from_highs.next_if(|&&high| high <= plane).is_some() {}
        // In order of planes, so that each of these goes through its list once.
        let up_to = |list: &[f32], from: &mut usize, with: bool| {
            while list.get(*from).is_some_and(|&x| x < plane || with && x <= plane) {
                *from += 1;
            }
            *from as u32
        };
        let before = up_to(&flats, &mut num_flats, false);
        let flat = up_to(&flats, &mut num_flats, true) - before;
        let below = up_to(&lows, &mut num_lows, false) + flat;
        let above = items.len() as u32 - up_to(&highs, &mut num_highs, true);
        if splits.may_be(axis, plane) {
            let cost = splits.cost(axis, plane, below, above);
            if best.is_none_or(|best| cost < best.cost) {
                best = Some(Candidate { cost, axis, plane });
            }
        }
    }
}

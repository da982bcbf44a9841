//! The exact builder: tries every plane that touches the bounding box of a reference, in every node (Wald, Havran 2006: On building fast
//! kd-Trees for Ray Tracing, and on doing that in O(N log N); here with a sort per node).

use super::references::{BuildInput, PARALLEL_REFERENCES, Reference};
use crate::sah::host_tree::Subtree;
use kauri_kernels::sah::aabb::Aabb;
use kauri_kernels::sah::cost::{SplitCost, leaf_cost};
use kauri_kernels::sah::node::MAX_DEPTH;
use rayon::prelude::*;

/// A split plane with its cost.
#[derive(Clone, Copy)]
struct Candidate {
    cost: f32,
    axis: u32,
    plane: f32,
}

/// Builds the subtree of a node.
pub(super) fn subtree(
    input: &BuildInput<'_>,
    references: Vec<Reference>,
    bounds: Aabb,
    depth: u32,
) -> Subtree {
    let leaf = |references: Vec<Reference>| {
        Subtree::Leaf(references.iter().map(|reference| reference.triangle).collect())
    };
    let model = SplitCost::new(bounds, input.options.step_cost);
    let best = |axis| best_of_axis(&model, &references, axis);
    let candidates: Vec<_> = if references.len() > PARALLEL_REFERENCES {
        (0..3u32).into_par_iter().filter_map(best).collect()
    } else {
        (0..3).filter_map(best).collect()
    };
    let best = candidates.into_iter().min_by(|a, b| a.cost.total_cmp(&b.cost));
    let Some(Candidate { axis, plane, .. }) =
        best.filter(|best| best.cost < leaf_cost(references.len() as u32) && depth < MAX_DEPTH)
    else {
        return leaf(references);
    };
    let [below, above] = input.partition(&references, axis, plane);
    let boxes = bounds.split_at(axis, plane);
    let is_large = references.len() > PARALLEL_REFERENCES / 8;
    drop(references);
    let child = |references, side: usize| subtree(input, references, boxes[side], depth + 1);
    let (below, above) = if is_large {
        rayon::join(|| child(below, 0), || child(above, 1))
    } else {
        (child(below, 0), child(above, 1))
    };
    Subtree::inner(axis, plane, below, above)
}

/// Returns the cheapest plane of an axis, the lowest of equally cheap ones. Sweeps over the events in the order of planes: low ends,
/// high ends, and flat references, which lie in a plane.
fn best_of_axis(model: &SplitCost, references: &[Reference], axis: u32) -> Option<Candidate> {
    let sorted = |of: &dyn Fn(&Reference) -> Option<f32>| {
        let mut sorted: Vec<f32> = references.iter().filter_map(of).collect();
        sorted.sort_unstable_by(f32::total_cmp);
        sorted
    };
    let (low, high) = (
        |reference: &Reference| reference.bounds.low[axis as usize],
        |reference: &Reference| reference.bounds.high[axis as usize],
    );
    let lows = sorted(&|reference| Some(low(reference)));
    let highs = sorted(&|reference| Some(high(reference)));
    let flats = sorted(&|reference| (low(reference) == high(reference)).then(|| low(reference)));
    let (mut num_lows, mut num_flats, mut num_highs) = (0, 0, 0);
    let mut best: Option<Candidate> = None;
    let (mut from_lows, mut from_highs) = (lows.iter().peekable(), highs.iter().peekable());
    loop {
        // The next event.
        let plane = match (from_lows.peek(), from_highs.peek()) {
            (Some(&&low), Some(&&high)) => low.min(high),
            (Some(&&low), None) => low,
            (None, Some(&&high)) => high,
            (None, None) => return best,
        };
        while from_lows.next_if(|&&low| low <= plane).is_some() {}
        while from_highs.next_if(|&&high| high <= plane).is_some() {}
        // Planes are in order, so each list is traversed once.
        let advance = |list: &[f32], next: &mut usize, is_passed: &dyn Fn(f32) -> bool| {
            while list.get(*next).is_some_and(|&x| is_passed(x)) {
                *next += 1;
            }
            *next as u32
        };
        let (is_below, is_up_to) = (|x| x < plane, |x| x <= plane);
        let before = advance(&flats, &mut num_flats, &is_below);
        let flat = advance(&flats, &mut num_flats, &is_up_to) - before;
        let below = advance(&lows, &mut num_lows, &is_below) + flat;
        let above = references.len() as u32 - advance(&highs, &mut num_highs, &is_up_to);
        if model.is_inside(axis, plane) {
            let cost = model.cost(axis, plane, below, above);
            if best.is_none_or(|best| cost < best.cost) {
                best = Some(Candidate { cost, axis, plane });
            }
        }
    }
}

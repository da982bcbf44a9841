//! The exact builder: tries every plane that touches the bounding box of a reference, in every node (Wald, Havran 2006: On building fast
//! kd-Trees for Ray Tracing, and on doing that in O(N log N); here with a sort per node).

use super::references::{BuildInput, PARALLEL_REFERENCES, Reference};
use crate::parallel;
use crate::sah::host_tree::Subtree;
use kauri_kernels::rays::aabb::Aabb;
use kauri_kernels::sah::cost::{SplitCost, leaf_cost};
use kauri_kernels::sah::node::MAX_DEPTH;

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
    let candidates = if references.len() > PARALLEL_REFERENCES {
        parallel::map(3, 1, |axis| best(axis as u32))
    } else {
        (0..3).map(best).collect()
    };
    let best = candidates.into_iter().flatten().min_by(|a, b| a.cost.total_cmp(&b.cost));
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
        parallel::join(|| child(below, 0), || child(above, 1))
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
    // Numbers of events up to the last plane.
    let (mut num_lows, mut num_flats, mut num_highs) = (0, 0, 0);
    let mut best: Option<Candidate> = None;
    loop {
        let next = [lows.get(num_lows), highs.get(num_highs)].into_iter().flatten().copied();
        let Some(plane) = next.reduce(f32::min) else { return best };
        // Returns the number of events below the plane, and up to it.
        let pass = |events: &[f32], num: &mut usize| {
            let below = *num;
            *num += events[below..].iter().take_while(|&&x| x <= plane).count();
            [below, *num].map(|num| num as u32)
        };
        let [lows_below, _] = pass(&lows, &mut num_lows);
        let [flats_below, flats_up_to] = pass(&flats, &mut num_flats);
        let [_, highs_up_to] = pass(&highs, &mut num_highs);
        // Flat references in the plane are below it.
        let (below, above) = (lows_below + flats_up_to - flats_below, references.len() as u32 - highs_up_to);
        if model.is_inside(axis, plane) {
            let cost = model.cost(axis, plane, below, above);
            if best.is_none_or(|best| cost < best.cost) {
                best = Some(Candidate { cost, axis, plane });
            }
        }
    }
}

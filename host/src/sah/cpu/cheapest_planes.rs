//! The cheapest planes of large nodes.

use super::references::{PARALLEL_REFERENCES, Reference};
use crate::parallel;
use cuda_std::float::f32_to_key;
use kauri_kernels::sah::cost::SplitCost;
use kauri_kernels::sah::large_nodes::NO_PLANE;

/// Returns the cheapest plane of each axis, of all that touch the box of a reference, with its cost, as the GPU has them.
pub(super) fn cheapest_planes(model: &SplitCost, references: &[Reference]) -> [u64; 3] {
    let best = |axis: usize| cheapest_plane(model, references, axis as u32);
    if references.len() > PARALLEL_REFERENCES {
        let ((x, y), z) = parallel::join(|| parallel::join(|| best(0), || best(1)), || best(2));
        [x, y, z]
    } else {
        [0, 1, 2].map(best)
    }
}

/// Returns the cheapest plane of an axis, the lowest of equally cheap ones. Sweeps over the events in the order of planes: low ends,
/// high ends, and flat references, which lie in a plane.
fn cheapest_plane(model: &SplitCost, references: &[Reference], axis: u32) -> u64 {
    let sorted = |of: &dyn Fn(&Reference) -> Option<f32>| {
        let mut sorted: Vec<f32> = references.iter().filter_map(of).collect();
        sorted.sort_unstable_by(f32::total_cmp);
        sorted
    };
    let (low, high) = (
        |reference: &Reference| reference.bounds.low[axis as usize] + 0.0,
        |reference: &Reference| reference.bounds.high[axis as usize] + 0.0,
    );
    let lows = sorted(&|reference| Some(low(reference)));
    let highs = sorted(&|reference| Some(high(reference)));
    let flats = sorted(&|reference| (low(reference) == high(reference)).then(|| low(reference)));
    // Numbers of events up to the last plane.
    let (mut num_lows, mut num_flats, mut num_highs) = (0, 0, 0);
    let mut best = NO_PLANE;
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
        let cost = model.cost(axis, plane, below, above);
        if model.is_inside(axis, plane) && cost < f32::INFINITY {
            best = best.min(u64::from(cost.to_bits()) << 32 | u64::from(f32_to_key(plane)));
        }
    }
}

//! All pairs of boxes by a nested loop without shared memory: a thread per left box, and an atomic append per pair (Løvik 2020, *Top-k
//! spatial distance join on the GPU*, algorithm 2).

use super::geometry::Aabb;
use super::nested::BoxSets;
use super::output::PairOutput;
use crate::policy::JOIN_THREADS;
use crate::thread::coord::Float;
use crate::thread::items::own_item;
use cuda_std::prelude::*;

/// Counts or writes the pairs of each left box with all right boxes; a thread per left box. Counts are 0 before.
#[kernel(family = "research-join-boxes", block = JOIN_THREADS, hot)]
#[instances(C = [f32, f64], D = [2, 3, 6])]
pub unsafe fn join_boxes_nested_plain<C: Float, const D: usize>(
    sets: BoxSets<'_, C>,
    output: PairOutput<'_>,
) {
    let (dims, [num_left, num_right]) = (sets.dims as usize, sets.lens());
    let Some(i) = own_item(num_left) else { return };
    let own = Aabb::<C, D>::load(sets.left, i, dims);
    if !own.is_valid(dims) {
        return;
    }
    let (test, pairing) = sets.test();
    for j in 0..num_right {
        let other = Aabb::load(sets.right, j, dims);
        if other.is_valid(dims) && test.holds(&own, &other) && pairing.includes(j as u32, i as u32) {
            output.append(i as u32, j as u32);
        }
    }
}

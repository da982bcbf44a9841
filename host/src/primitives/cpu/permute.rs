//! Gather and scatter on the CPU; see [the GPU version](crate::primitives::permute).

use rayon::prelude::*;

/// Sets item i of the output to item `indices[i]` of the input. Items with an index out of range keep their value.
///
/// # Panics
/// Panics if output and indices differ in length.
pub fn gather<T: Copy + Send + Sync>(input: &[T], indices: &[u32], output: &mut [T]) {
    assert_eq!(indices.len(), output.len(), "each item needs one index");
    output.par_iter_mut().zip(indices).for_each(|(slot, &i)| {
        if let Some(item) = input.get(i as usize) {
            *slot = *item;
        }
    });
}

/// Sets item `indices[i]` of the output to item i of the input. Indices out of range are ignored; of equal indices the
/// last one wins.
///
/// # Panics
/// Panics if input and indices differ in length.
pub fn scatter<T: Copy>(input: &[T], indices: &[u32], output: &mut [T]) {
    assert_eq!(indices.len(), input.len(), "each item needs one index");
    for (item, &i) in input.iter().zip(indices) {
        if let Some(slot) = output.get_mut(i as usize) {
            *slot = *item;
        }
    }
}

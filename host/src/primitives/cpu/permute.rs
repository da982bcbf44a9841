//! Gather and scatter, see [the GPU's](crate::primitives::permute).

use rayon::prelude::*;

/// Sets item i of the output to item `indices[i]` of the input; where the index is out of range it keeps its value.
///
/// # Panics
/// If output and indices are not of one length.
pub fn gather<T: Copy + Send + Sync>(input: &[T], indices: &[u32], output: &mut [T]) {
    assert_eq!(indices.len(), output.len(), "an index an item");
    output.par_iter_mut().zip(indices).for_each(|(place, &i)| {
        if let Some(item) = input.get(i as usize) {
            *place = *item;
        }
    });
}

/// Sets item `indices[i]` of the output to item i of the input; indices out of range do nothing, and of equal ones the last
/// counts.
///
/// # Panics
/// If input and indices are not of one length.
pub fn scatter<T: Copy>(input: &[T], indices: &[u32], output: &mut [T]) {
    assert_eq!(indices.len(), input.len(), "an index an item");
    for (item, &i) in input.iter().zip(indices) {
        if let Some(place) = output.get_mut(i as usize) {
            *place = *item;
        }
    }
}

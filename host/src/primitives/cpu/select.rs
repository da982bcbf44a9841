//! Select and partition on the CPU; see [the GPU version](crate::primitives::select).

use kauri_kernels::thread::predicate::Predicate;
use kauri_kernels::thread::words::Words;
use rayon::prelude::*;

/// Items per task.
const CHUNK: usize = 1 << 14;

/// Returns the items whose flag is not 0, in input order.
///
/// # Panics
/// Panics if there are not as many flags as items.
pub fn flagged<T: Copy + Send + Sync>(input: &[T], flags: &[u8]) -> Vec<T> {
    partition_flagged(input, flags).0
}

/// Returns the items whose flag is not 0 and the other items, each in input order.
///
/// # Panics
/// Panics if there are not as many flags as items.
pub fn partition_flagged<T: Copy + Send + Sync>(input: &[T], flags: &[u8]) -> (Vec<T>, Vec<T>) {
    assert_eq!(input.len(), flags.len(), "each item needs one flag");
    split(input, |i, _| flags[i] != 0)
}

/// Returns the items that satisfy predicate `P`, in input order.
pub fn matching<T: Words, P: Predicate<T>>(input: &[T], bound: T) -> Vec<T> {
    partition::<T, P>(input, bound).0
}

/// Returns the items that satisfy predicate `P` and the other items, each in input order.
pub fn partition<T: Words, P: Predicate<T>>(input: &[T], bound: T) -> (Vec<T>, Vec<T>) {
    split(input, |_, item| P::holds(item, bound))
}

/// Returns the items for which `keeps` is true, given index and value, and the other items.
pub(super) fn split<T: Copy + Send + Sync>(
    input: &[T],
    keeps: impl Fn(usize, T) -> bool + Sync,
) -> (Vec<T>, Vec<T>) {
    let chunks = input.par_chunks(CHUNK).enumerate().map(|(chunk, items)| {
        let (mut kept, mut others) = (Vec::new(), Vec::new());
        for (i, &item) in items.iter().enumerate() {
            if keeps(chunk * CHUNK + i, item) { kept.push(item) } else { others.push(item) }
        }
        (kept, others)
    });
    let (kept, others): (Vec<_>, Vec<_>) = chunks.unzip();
    (kept.concat(), others.concat())
}

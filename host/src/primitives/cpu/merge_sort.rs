//! Merge sort on the CPU; see [the GPU version](crate::primitives::merge_sort).

use crate::primitives::merge::no_lookup;
use kauri_kernels::thread::order::{ByKey, Carried, NoValue, Order};
use kauri_kernels::thread::words::Words;
use rayon::prelude::*;
use std::cmp::Ordering;

/// Compares two pairs by order `O`.
pub(super) fn compare<K: Words, V: Carried, O: Order<K, V> + ByKey>(a: &(K, V), b: &(K, V)) -> Ordering {
    let lookup = no_lookup();
    // SAFETY: orders by key look up nothing.
    let (is_less, is_greater) = unsafe { (O::is_before(&lookup, *a, *b), O::is_before(&lookup, *b, *a)) };
    is_greater.cmp(&is_less)
}

/// Returns the keys in order.
pub fn sort_keys<K: Words, O: Order<K, NoValue> + ByKey>(keys: &[K]) -> Vec<K> {
    let mut sorted = keys.to_vec();
    sorted.par_sort_by(|&a, &b| compare::<K, NoValue, O>(&(a, NoValue), &(b, NoValue)));
    sorted
}

/// Returns the pairs in the order of their keys.
///
/// # Panics
/// Panics if there are not as many values as keys.
pub fn sort_pairs<K: Words, O: Order<K, u32> + ByKey>(keys: &[K], values: &[u32]) -> (Vec<K>, Vec<u32>) {
    assert_eq!(keys.len(), values.len(), "each key needs one value");
    let mut sorted: Vec<(K, u32)> = keys.iter().copied().zip(values.iter().copied()).collect();
    sorted.par_sort_by(compare::<K, u32, O>);
    sorted.into_iter().unzip()
}

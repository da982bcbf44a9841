//! Merge on the CPU; see [the GPU version](crate::primitives::merge).

use super::merge_sort::compare;
use kauri_kernels::thread::order::{ByKey, Carried, NoValue, Order};
use kauri_kernels::thread::words::Words;
use rayon::prelude::*;
use std::cmp::Ordering;

/// Output items per task.
const CHUNK: usize = 1 << 14;

/// Merges two sorted runs of keys.
pub fn merge_keys<K: Words, O: Order<K, NoValue> + ByKey>(first: &[K], second: &[K]) -> Vec<K> {
    merge(
        first.len(),
        second.len(),
        |i| (first[i], NoValue),
        |i| (second[i], NoValue),
        compare::<K, NoValue, O>,
    )
    .into_iter()
    .map(|(key, NoValue)| key)
    .collect()
}

/// Merges two sorted runs of (key, value) pairs.
///
/// # Panics
/// Panics if a run has not as many values as keys.
pub fn merge_pairs<K: Words, O: Order<K, u32> + ByKey>(
    first: (&[K], &[u32]),
    second: (&[K], &[u32]),
) -> (Vec<K>, Vec<u32>) {
    assert_eq!(first.0.len(), first.1.len(), "each key needs one value");
    assert_eq!(second.0.len(), second.1.len(), "each key needs one value");
    let item = |(keys, values): (&[K], &[u32]), i: usize| (keys[i], values[i]);
    merge(first.0.len(), second.0.len(), |i| item(first, i), |i| item(second, i), compare::<K, u32, O>)
        .into_iter()
        .unzip()
}

/// Merges in parallel: each task finds its part of the runs by merge path.
fn merge<K: Words, V: Carried>(
    first_len: usize,
    second_len: usize,
    first: impl Fn(usize) -> (K, V) + Sync,
    second: impl Fn(usize) -> (K, V) + Sync,
    compare: impl Fn(&(K, V), &(K, V)) -> Ordering + Sync,
) -> Vec<(K, V)> {
    let len = first_len + second_len;
    let first_precedes = |i: usize, j: usize| compare(&second(j), &first(i)) != Ordering::Less;
    let split =
        |diagonal| kauri_kernels::thread::merge_path::split(first_len, second_len, diagonal, first_precedes);
    let part = |chunk: usize| {
        let (begin, end) = (chunk * CHUNK, ((chunk + 1) * CHUNK).min(len));
        let mut i = split(begin);
        let mut j = begin - i;
        let mut merged = Vec::with_capacity(end - begin);
        while merged.len() < end - begin {
            let from_first = j == second_len || (i < first_len && first_precedes(i, j));
            merged.push(if from_first { first(i) } else { second(j) });
            (i, j) = if from_first { (i + 1, j) } else { (i, j + 1) };
        }
        merged
    };
    (0..len.div_ceil(CHUNK)).into_par_iter().flat_map_iter(part).collect()
}

//! Search on the CPU; see [the GPU version](crate::primitives::search).

use kauri_kernels::thread::radix_key::SortKey;
use rayon::prelude::*;

/// Returns, for each query, the number of items that are less.
pub fn lower_bound<T: SortKey>(sorted: &[T], queries: &[T]) -> Vec<u64> {
    let bound = |query: T::Bits| sorted.partition_point(|item| item.folded() < query) as u64;
    queries.par_iter().map(|query| bound(query.folded())).collect()
}

/// Returns, for each query, the number of items that are not greater.
pub fn upper_bound<T: SortKey>(sorted: &[T], queries: &[T]) -> Vec<u64> {
    let bound = |query: T::Bits| sorted.partition_point(|item| item.folded() <= query) as u64;
    queries.par_iter().map(|query| bound(query.folded())).collect()
}

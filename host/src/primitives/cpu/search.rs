//! Search, see [the GPU's](crate::primitives::search).

use super::merge_sort::compare;
use kauri_kernels::thread::order::{Ascending, NoValue, Order};
use kauri_kernels::thread::words::Words;
use rayon::prelude::*;

/// For each query the number of items that are less.
pub fn lower_bound<T: Words>(sorted: &[T], queries: &[T]) -> Vec<u64>
where
    Ascending: Order<T, NoValue>,
{
    let of = |query| sorted.partition_point(|&item| cmp(item, query).is_lt()) as u64;
    queries.par_iter().map(|&query| of(query)).collect()
}

/// For each query the number of items that are not greater.
pub fn upper_bound<T: Words>(sorted: &[T], queries: &[T]) -> Vec<u64>
where
    Ascending: Order<T, NoValue>,
{
    let of = |query| sorted.partition_point(|&item| cmp(item, query).is_le()) as u64;
    queries.par_iter().map(|&query| of(query)).collect()
}

fn cmp<T: Words>(a: T, b: T) -> std::cmp::Ordering
where
    Ascending: Order<T, NoValue>,
{
    compare::<T, NoValue, Ascending>(&(a, NoValue), &(b, NoValue))
}

//! Binary search for queries in a sorted array.

use crate::policy::PER_ITEM_THREADS;
use crate::thread::items::own_item;
use crate::thread::radix_key::SortKey;
use crate::thread::search::partition_point;
use cuda_std::prelude::*;

/// Writes, for each query, how many items are less (`lower`) and how many are not greater (`upper`). Either output may
/// be empty. A thread per query.
#[kernel(family = "primitives-search", block = PER_ITEM_THREADS, hot)]
#[instances(T = [u32, i32, u64, i64, f32, f64])]
pub unsafe fn primitives_search<T: SortKey>(
    sorted: Slice<T>,
    queries: Slice<T>,
    lower: SliceMut<u64>,
    upper: SliceMut<u64>,
) {
    let Some(i) = own_item(queries.len()) else { return };
    let search = Search { sorted, query: queries.load(i).folded() };
    let mut low = 0;
    if !lower.is_empty() {
        low = search.lower();
        lower.store(i, low as u64);
    }
    if !upper.is_empty() {
        upper.store(i, search.upper(low) as u64);
    }
}

/// The search for one query.
struct Search<'a, T: SortKey> {
    sorted: Slice<'a, T>,
    query: T::Bits,
}

impl<T: SortKey> Search<'_, T> {
    #[inline(always)]
    unsafe fn lower(&self) -> usize {
        partition_point(0, self.sorted.len(), |i| self.item(i) < self.query)
    }

    /// Returns the number of items that are not greater than the query, given that this is at least `low`.
    #[inline(always)]
    unsafe fn upper(&self, low: usize) -> usize {
        partition_point(low, self.sorted.len(), |i| self.item(i) <= self.query)
    }

    #[inline(always)]
    unsafe fn item(&self, i: usize) -> T::Bits {
        self.sorted.load(i).folded()
    }
}

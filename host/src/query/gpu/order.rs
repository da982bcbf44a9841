//! Sorts queries by start bucket, so that the queries of a warp are near each other, and lists the point that each query excludes.

use crate::device::{Layout, Region, Temp};
use crate::error::Result;
use crate::primitives::generate::iota_on;
use crate::primitives::pairs::Source;
use crate::primitives::permute::gather_on;
use crate::primitives::radix_sort::PairSort;
use crate::query::gpu::device_options::QueryView;
use crate::query::gpu::{BucketIndex, Locator};
use cuda_std::mem::Slice;
use kauri_kernels::policy::QUERIES;
use kauri_kernels::query::buckets::query_buckets;
use kauri_kernels::thread::coord::Coord;

/// The order in which kernels process queries.
#[derive(Clone, Copy)]
pub(crate) struct QueryOrder<'a> {
    /// The start buckets and numbers of the queries, sorted; `None` if queries are processed as they are.
    pub(crate) order: Option<Source<'a, u32, u32>>,
    /// The id of the point that each query excludes, in the processing order; empty if none does.
    pub(crate) excluded: Slice<'a, u32>,
}

/// Plan and scratch memory of a [`QueryOrder`].
#[derive(Default)]
pub(crate) struct QueryOrderPlan {
    /// The sort by start bucket, if it pays.
    order: Option<PairSort<u32, u32>>,
    /// If the queries exclude consecutive points: their ids, and the ids in the processing order.
    excluded: Option<[Region<u32>; 2]>,
}

impl QueryOrderPlan {
    /// Plans the order of queries, which are sorted unless they `are_ordered`.
    pub(crate) fn plan<C: Coord>(
        layout: &mut Layout,
        tree: &BucketIndex<C>,
        queries: QueryView<'_, C>,
        are_ordered: bool,
    ) -> Self {
        let num_queries = queries.len(tree.dims);
        // Query numbers are 32-bit.
        let is_worth_it = (QUERIES.ordered_from..=u32::MAX as usize).contains(&num_queries);
        let is_sorted = !are_ordered && is_worth_it && tree.levels() > 0;
        let order = is_sorted.then(|| PairSort::plan(layout, num_queries));
        let excluded = queries.first_excluded.map(|_| {
            let sorted = if order.is_some() { num_queries } else { 0 };
            [layout.reserve(num_queries), layout.reserve(sorted)]
        });
        Self { order, excluded }
    }

    /// Sorts the queries of the plan.
    ///
    /// # Safety
    /// Nothing else uses the queries until the stream has done the work.
    pub(crate) unsafe fn run<'a, C: Coord>(
        &self,
        temp: &Temp<'a>,
        tree: &BucketIndex<C>,
        queries: QueryView<'a, C>,
    ) -> Result<QueryOrder<'a>> {
        // SAFETY: passed on to the caller; the ids are the plan's own.
        unsafe {
            let sort = |sort| sort_queries(sort, temp, tree, queries.coords);
            let order = self.order.as_ref().map(sort).transpose()?;
            let excluded = match (queries.first_excluded, self.excluded) {
                (Some(first), Some(regions)) => {
                    let [ids, sorted] = regions.map(|region| temp.view(region));
                    iota_on(&temp.stream, first, ids)?;
                    match order {
                        None => ids.read_only(),
                        Some(order) => {
                            gather_on(&temp.stream, ids.read_only(), order.values, sorted)?;
                            sorted.read_only()
                        }
                    }
                }
                _ => queries.excluded,
            };
            Ok(QueryOrder { order, excluded })
        }
    }
}

/// Returns the start buckets and the numbers of queries, sorted.
///
/// # Safety
/// Nothing else uses the queries and the memory of the sort until the stream has done the work.
unsafe fn sort_queries<'a, C: Coord>(
    sort: &PairSort<u32, u32>,
    temp: &Temp<'a>,
    tree: &BucketIndex<C>,
    queries: Slice<'_, C>,
) -> Result<Source<'a, u32, u32>> {
    let levels = tree.levels();
    // SAFETY: passed on to the caller.
    unsafe {
        let (keys, values) = sort.run(temp, levels, |buckets, numbers| match &tree.locator {
            Locator::Other(other) => other.query_buckets(&temp.stream, queries, buckets, numbers),
            Locator::Planes(splits) => {
                let args = (splits.slice(), tree.split_axes(), queries, levels, buckets, numbers);
                temp.stream.launch_items::<query_buckets<C>>(numbers.len() as u64, args)
            }
        })?;
        Ok(Source { keys, values })
    }
}

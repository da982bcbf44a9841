//! Sorts queries by start bucket, so that the queries of a warp are near each other, and lists the point that each query excludes.

use crate::device::{Layout, Region, Temp};
use crate::error::Result;
use crate::primitives::generate::iota_on;
use crate::primitives::pairs::Source;
use crate::primitives::permute::gather_on;
use crate::primitives::radix_sort::PairSort;
use crate::query::gpu::device_options::QueryView;
use crate::query::gpu::{BucketIndex, Locator};
use cuda_std::mem::{Slice, SliceMut};
use kauri_kernels::query::buckets::query_buckets;
use kauri_kernels::thread::coord::Coord;

/// How queries are arranged for a kernel.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Arrangement {
    /// As they are.
    Given,
    /// As they are, with their start buckets: neighbors are near each other already.
    Located,
    /// Sorted by start bucket.
    Sorted,
}

/// The order in which kernels process queries.
#[derive(Clone, Copy)]
pub(crate) struct QueryOrder<'a> {
    /// The start buckets and numbers of the queries, in the processing order; `None` if no start buckets are known and that is the given one.
    pub(crate) order: Option<Source<'a, u32, u32>>,
    /// The id of the point that each query excludes, in the processing order; empty if none does.
    pub(crate) excluded: Slice<'a, u32>,
}

/// Memory for start buckets and numbers, and for their sort if they are sorted.
enum OrderPlan {
    Located([Region<u32>; 2]),
    Sorted(PairSort<u32, u32>),
}

/// Plan and scratch memory of a [`QueryOrder`].
#[derive(Default)]
pub(crate) struct QueryOrderPlan {
    /// The start buckets, if they are used.
    order: Option<OrderPlan>,
    /// If the queries exclude points: the ids if they are consecutive, and the ids in the processing order.
    excluded: Option<[Region<u32>; 2]>,
}

impl QueryOrderPlan {
    /// Plans the order of queries.
    pub(crate) fn plan<C: Coord>(
        layout: &mut Layout,
        tree: &BucketIndex<C>,
        queries: QueryView<'_, C>,
        arrangement: Arrangement,
    ) -> Self {
        let num_queries = queries.len(tree.dims);
        // Query numbers are 32-bit.
        let can_be_located = (1..=u32::MAX as usize).contains(&num_queries) && tree.levels() > 0;
        let order = match arrangement {
            Arrangement::Located if can_be_located => {
                Some(OrderPlan::Located([layout.reserve(num_queries), layout.reserve(num_queries)]))
            }
            Arrangement::Sorted if can_be_located => {
                Some(OrderPlan::Sorted(PairSort::plan(layout, num_queries)))
            }
            _ => None,
        };
        let len_if = |is_used| if is_used { num_queries } else { 0 };
        let excludes = queries.first_excluded.is_some() || !queries.excluded.is_empty();
        let excluded = excludes.then(|| {
            let consecutive = len_if(queries.first_excluded.is_some());
            [layout.reserve(consecutive), layout.reserve(len_if(order.is_some()))]
        });
        Self { order, excluded }
    }

    /// Locates the queries of the plan, and sorts them.
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
            let arrange = |order| arranged(order, temp, tree, queries.coords);
            let order = self.order.as_ref().map(arrange).transpose()?;
            let mut excluded = queries.excluded;
            if let Some(regions) = self.excluded {
                let [ids, sorted] = regions.map(|region| temp.view(region));
                if let Some(first) = queries.first_excluded {
                    iota_on(&temp.stream, first, ids)?;
                    excluded = ids.read_only();
                }
                if let Some(order) = order {
                    gather_on(&temp.stream, excluded, order.values, sorted)?;
                    excluded = sorted.read_only();
                }
            }
            Ok(QueryOrder { order, excluded })
        }
    }
}

/// Returns the start buckets and the numbers of queries, in the processing order.
///
/// # Safety
/// Nothing else uses the queries and the memory of the plan until the stream has done the work.
unsafe fn arranged<'a, C: Coord>(
    plan: &OrderPlan,
    temp: &Temp<'a>,
    tree: &BucketIndex<C>,
    queries: Slice<'_, C>,
) -> Result<Source<'a, u32, u32>> {
    let levels = tree.levels();
    let locate = |buckets: SliceMut<'_, u32>, numbers: SliceMut<'_, u32>| {
        // SAFETY: passed on to the caller.
        unsafe {
            match &tree.locator {
                Locator::Grid(grid) => grid.query_buckets(&temp.stream, queries, buckets, numbers),
                Locator::Other(other) => other.query_buckets(&temp.stream, queries, buckets, numbers),
                Locator::Planes(splits) => {
                    let args = (splits.slice(), tree.split_axes(), queries, levels, buckets, numbers);
                    temp.stream.launch_items::<query_buckets<C>>(numbers.len() as u64, args)
                }
            }
        }
    };
    match plan {
        &OrderPlan::Located(regions) => {
            let [buckets, numbers] = regions.map(|region| temp.view(region));
            locate(buckets, numbers)?;
            Ok(Source { keys: buckets.read_only(), values: numbers.read_only() })
        }
        OrderPlan::Sorted(sort) => {
            // SAFETY: passed on to the caller.
            let (keys, values) = unsafe { sort.run(temp, levels, locate) }?;
            Ok(Source { keys, values })
        }
    }
}

//! Queries in the order of the tree's buckets, so that those of a warp are near each other, and the point that each leaves out.

use crate::device::{Layout, Region, Stream, Temp};
use crate::error::Result;
use crate::primitives::generate::iota_on;
use crate::primitives::pairs::{Pairs, Source};
use crate::primitives::permute::gather_on;
use crate::primitives::radix_sort::{RadixSort, Shape, SortBy};
use crate::query::gpu::device_options::QueryView;
use crate::query::gpu::{BucketIndex, Locator};
use cuda_std::mem::Slice;
use kauri_kernels::policy::QUERIES;
use kauri_kernels::query::buckets::query_buckets;
use kauri_kernels::thread::coord::Coord;

/// How queries are gone through.
#[derive(Clone, Copy)]
pub(crate) struct QueryOrder<'a> {
    /// Their buckets and numbers in the order of the walk; nothing if that is their own order.
    pub(crate) order: Option<Source<'a, u32, u32>>,
    /// A point that each leaves out, by id, in the order of the walk; empty if none does.
    pub(crate) except: Slice<'a, u32>,
}

/// Temporary memory for that.
pub(crate) struct QueryOrderPlan {
    order: Option<Order>,
    /// If queries leave out points that follow each other: the ids of these, and the same in the order of the walk.
    except: Option<[Region<u32>; 2]>,
}

impl QueryOrderPlan {
    /// Plans queries, which are put in order unless they are in a good one.
    pub(crate) fn plan<C: Coord>(
        layout: &mut Layout,
        tree: &BucketIndex<C>,
        queries: QueryView<'_, C>,
        are_ordered: bool,
    ) -> Self {
        let num_queries = queries.len(tree.dims);
        let order = if are_ordered { None } else { Order::plan(layout, num_queries, tree.levels()) };
        let except = queries.first_left_out.map(|_| {
            let sorted = if order.is_some() { num_queries } else { 0 };
            [layout.reserve(num_queries), layout.reserve(sorted)]
        });
        Self { order, except }
    }

    /// How the queries of the plan are gone through.
    ///
    /// # Safety
    /// Nothing else uses the queries until the stream has done the work.
    pub(crate) unsafe fn run<'a, C: Coord>(
        &self,
        stream: &Stream,
        temp: &Temp<'a>,
        tree: &BucketIndex<C>,
        queries: QueryView<'a, C>,
    ) -> Result<QueryOrder<'a>> {
        // SAFETY: passed on to the caller; the ids are the plan's own.
        unsafe {
            let order =
                self.order.as_ref().map(|order| order.run(stream, temp, tree, queries.coords)).transpose()?;
            let except = match (queries.first_left_out, self.except) {
                (Some(first), Some(regions)) => {
                    let [ids, sorted] = regions.map(|region| temp.view(region));
                    iota_on(stream, first, ids)?;
                    match order {
                        None => ids.read_only(),
                        Some(order) => {
                            gather_on(stream, ids.read_only(), order.values, sorted)?;
                            sorted.read_only()
                        }
                    }
                }
                _ => queries.except,
            };
            Ok(QueryOrder { order, except })
        }
    }
}

/// Temporary memory of the order.
struct Order {
    /// The bucket of each query, and its number; twice, since sorting moves them to and fro.
    buckets: [Region<u32>; 2],
    numbers: [Region<u32>; 2],
    sort: RadixSort,
}

impl Order {
    /// Plans the order of `num_queries` queries to a tree of so many levels above its buckets, if it is worth the while.
    fn plan(layout: &mut Layout, num_queries: usize, levels: u32) -> Option<Self> {
        // Numbers of queries have 32 bits.
        let is_worth_it = (QUERIES.ordered_from..=u32::MAX as usize).contains(&num_queries);
        if !is_worth_it || levels == 0 {
            return None;
        }
        let [sort] = RadixSort::plan(layout, num_queries, [Shape::of::<u32, u32>(num_queries)]);
        let mut room = || [layout.reserve(num_queries), layout.reserve(num_queries)];
        Some(Self { buckets: room(), numbers: room(), sort })
    }

    /// The buckets and the numbers of the queries, of which there are as many as planned, in order.
    ///
    /// # Safety
    /// Nothing else uses the queries until the stream has done the work.
    unsafe fn run<'a, C: Coord>(
        &self,
        stream: &Stream,
        temp: &Temp<'a>,
        tree: &BucketIndex<C>,
        queries: Slice<'_, C>,
    ) -> Result<Source<'a, u32, u32>> {
        let levels = tree.levels();
        let [pairs, room] =
            [0, 1].map(|i| Pairs { keys: temp.view(self.buckets[i]), values: temp.view(self.numbers[i]) });
        // SAFETY: passed on to the caller.
        unsafe {
            let (buckets, numbers) = (pairs.keys, pairs.values);
            match &tree.locator {
                Locator::Other(other) => other.query_buckets(stream, queries, buckets, numbers)?,
                Locator::Planes(splits) => {
                    let (splits, axes, dims) = (splits.slice(), tree.axes.slice(), tree.dims as u32);
                    let args = (splits, axes, queries, dims, levels, buckets, numbers);
                    stream.launch_items::<query_buckets<C>>(numbers.len() as u64, args)?;
                }
            }
            let [sorted, _] =
                self.sort.run(stream, temp, SortBy::low_bits(levels), pairs.read_only(), [room, pairs])?;
            Ok(sorted.read_only())
        }
    }
}

//! The queries of a launch, and the traversal of each.

use super::buckets::Index;
use super::traversal::{BucketTraversal, Filter, TraversalAndRow, TraversalSmem};
use crate::thread::coord::{Coord, Float};
use crate::thread::measure::Norm;
use crate::thread::point::load_point;
use crate::thread::region::Measure;
use cuda_std::prelude::*;

/// Options of the queries in one word.
pub mod flags {
    /// The coordinates are in the order of `rows`; otherwise the coordinates of query `i` are at index `rows[i]`.
    pub const IN_ORDER: u32 = 1;
    /// The queries are the points of the index, in its order.
    pub const SELF_QUERY: u32 = 2;
    /// The queries are compared with every point.
    pub const BRUTE_FORCE: u32 = 4;
    /// Whole subtrees are counted without visiting their points: for counts of all points.
    pub const COUNT_SUBTREES: u32 = 8;
    /// The result has the points of another index already: nearest points are kept if they are better, and counts are added.
    pub const CONTINUES: u32 = 16;
    /// The norm is in the bits from this one on.
    pub const NORM_SHIFT: u32 = 5;
}

/// The queries of a launch and their options, in the order in which the threads answer them.
#[derive(Clone, Copy, KernelArgs)]
pub struct Queries<'a, C: Coord> {
    /// The coordinates of query after query.
    pub coords: Slice<'a, C>,
    /// The result row of each query; empty if that is the order of the queries.
    pub rows: Slice<'a, u32>,
    /// The bucket in which each query starts; empty if the buckets are not known.
    pub start_buckets: Slice<'a, u32>,
    /// The id of the point that each query leaves out; empty if no query leaves out a point.
    pub excluded: Slice<'a, u32>,
    /// A bit for each point that queries may find; empty if they may find all points.
    pub mask: Slice<'a, u32>,
    /// A bit for each id; a query that is a point whose bit is set finds nothing. Empty if no query is such a point.
    pub removed: Slice<'a, u32>,
    /// The id of the point that the query of row 0 is; used with `removed`.
    pub first_point: u32,
    /// The period of each axis; empty if no axis has one.
    pub periods: Slice<'a, <C as crate::thread::coord::Coord>::Distance>,
    /// See [`flags`].
    pub flags: u32,
    /// The largest distance, as [`Measure`] computes it, at which queries find a point.
    pub bound: f64,
}

impl<'a, C: Coord> Queries<'a, C> {
    /// Number of queries of `dims` dimensions.
    #[inline(always)]
    pub fn len(&self, dims: usize) -> usize {
        if self.rows.is_empty() { self.coords.len() / dims } else { self.rows.len() }
    }

    /// Returns the largest distance at which the query of a row finds a point: minus infinity if there is no query, or a removed point is it.
    #[inline(always)]
    pub(super) unsafe fn bound_of(&self, row: Option<usize>) -> C::Distance {
        let bound = C::Distance::from_f64(self.bound);
        let Some(row) = row else { return C::Distance::ZERO - C::Distance::INFINITY };
        if self.is_removed(row) { C::Distance::ZERO - C::Distance::INFINITY } else { bound }
    }

    /// True if the query of a row is a removed point.
    #[inline(always)]
    pub(super) unsafe fn is_removed(&self, row: usize) -> bool {
        let id = self.first_point as usize + row;
        id / 32 < self.removed.len() && self.removed.load(id / 32) >> (id % 32) & 1 != 0
    }

    /// Returns the traversal of query `i` and its result row, if there is a query `i`; `None` if the warp has no query at all. Each lane
    /// passes its own `i` unless the warp has `one_query`.
    #[inline(always)]
    pub(super) unsafe fn traversal<const D: usize>(
        &self,
        i: u64,
        one_query: bool,
        index: Index<'a, C>,
        smem: *mut TraversalSmem<C::Distance>,
    ) -> TraversalAndRow<'a, C, Measure<'a, C::Distance, D>, D> {
        let buckets = index.buckets();
        let num_queries = self.len(buckets.dims) as u64;
        let first = if one_query { i } else { i - u64::from(warp::lane_id()) };
        if first >= num_queries {
            return None;
        }
        // Lanes without a query take part in warp operations with the first query of the warp.
        let is_query = i < num_queries;
        let i = if is_query { i } else { first } as usize;
        let row = if self.rows.is_empty() { i } else { self.rows.load(i) as usize };
        let position = if self.flags & flags::IN_ORDER != 0 { i } else { row };
        let query = load_point(self.coords, position, buckets.dims);
        let norm = Norm::of(self.flags >> flags::NORM_SHIFT);
        let measure = Measure::new(query, buckets.dims, norm, self.periods);
        let excluded = if self.excluded.is_empty() { u32::MAX } else { self.excluded.load(i) };
        let (mut buckets, mut start_bucket) = (buckets, 0);
        if self.flags & flags::BRUTE_FORCE != 0 {
            // One bucket has all points.
            buckets.levels = 0;
        } else if self.flags & flags::SELF_QUERY != 0 {
            start_bucket = 1 << buckets.levels | buckets.bucket_of(i as u32);
        } else if !self.start_buckets.is_empty() {
            start_bucket = 1 << buckets.levels | self.start_buckets.load(i);
        }
        let filter = Filter { mask: self.mask, excluded };
        let traversal = BucketTraversal {
            buckets,
            boxes: index.boxes,
            least_ids: index.least_ids,
            region: measure,
            filter,
            start_bucket,
            smem,
        };
        Some((traversal, is_query.then_some(row)))
    }
}

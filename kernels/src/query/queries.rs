//! The queries of a launch, and the walk of each.

use super::buckets::Buckets;
use super::walk::{Filter, Walk, WalkAndRow, WalkSmem};
use crate::thread::coord::Coord;
use crate::thread::measure::Norm;
use crate::thread::point::load_point;
use crate::thread::region::Measure;
use cuda_std::prelude::*;

/// What is asked for beside the points, in one word.
pub mod flags {
    /// Queries lie in the order of `rows`; otherwise query `i` of the order is that of row `rows[i]`.
    pub const IN_ORDER: u32 = 1;
    /// They are the points of the tree in its order.
    pub const OWN: u32 = 2;
    /// They are compared with every point.
    pub const BRUTE_FORCE: u32 = 4;
    /// Points are only counted, and all of them may be taken: subtrees are counted without a look at their points.
    pub const COUNT_SUBTREES: u32 = 8;
    /// The norm is in the bits from here on.
    pub const NORM_SHIFT: u32 = 4;
}

/// The queries, and what they ask for.
#[derive(Clone, Copy)]
pub(super) struct Queries<'a, C> {
    pub(super) coords: Slice<'a, C>,
    /// The row of the result for each query in the order of the walk; empty if that is the order of the rows.
    pub(super) rows: Slice<'a, u32>,
    /// The bucket of each query, in the order of the walk; empty if they are not known.
    pub(super) homes: Slice<'a, u32>,
    /// The id of a point that each query, in the order of the walk, does not take; empty if it takes all.
    pub(super) except: Slice<'a, u32>,
    /// A bit a point that may be taken; empty if all may be.
    pub(super) mask: Slice<'a, u32>,
    pub(super) periods: Slice<'a, C>,
    pub(super) flags: u32,
}

impl<'a, C: Coord> Queries<'a, C> {
    /// Number of queries.
    #[inline(always)]
    pub(super) fn len(&self, dims: usize) -> usize {
        if self.rows.is_empty() { self.coords.len() / dims } else { self.rows.len() }
    }

    /// The walk of query `i` of the order and its row, if there is that query; nothing if the warp has no query at all. Lanes
    /// have a query each, which is not the case if the warp has `one_query`.
    #[inline(always)]
    pub(super) unsafe fn walk<const D: usize>(
        &self,
        i: u64,
        one_query: bool,
        buckets: Buckets<'a, C>,
        (boxes, least_ids): (Slice<'a, C>, Slice<'a, u32>),
        smem: *mut WalkSmem<C>,
    ) -> WalkAndRow<'a, C, Measure<'a, C, D>, D> {
        let num_queries = self.len(buckets.dims) as u64;
        let first = if one_query { i } else { i - u64::from(warp::lane_id()) };
        if first >= num_queries {
            return None;
        }
        // Lanes without a query go along with the warp's first one.
        let is_query = i < num_queries;
        let i = if is_query { i } else { first } as usize;
        let row = if self.rows.is_empty() { i } else { self.rows.load(i) as usize };
        let place = if self.flags & flags::IN_ORDER != 0 { i } else { row };
        let query = load_point(self.coords, place, buckets.dims);
        let norm = Norm::of(self.flags >> flags::NORM_SHIFT);
        let measure = Measure::new(query, buckets.dims, norm, self.periods);
        let except = if self.except.is_empty() { u32::MAX } else { self.except.load(i) };
        let (mut buckets, mut home) = (buckets, 0);
        if self.flags & flags::BRUTE_FORCE != 0 {
            // All points are one bucket.
            buckets.levels = 0;
        } else if self.flags & flags::OWN != 0 {
            home = 1 << buckets.levels | buckets.bucket_of(i as u32);
        } else if !self.homes.is_empty() {
            home = 1 << buckets.levels | self.homes.load(i);
        }
        let filter = Filter { mask: self.mask, except };
        let walk = Walk { buckets, boxes, least_ids, region: measure, filter, home, smem };
        Some((walk, is_query.then_some(row)))
    }
}

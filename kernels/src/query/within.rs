//! Range queries: counts or finds the points within a distance of each query, or in each box, by a traversal of the bucket index. The
//! points of a row are in the order of the tree.

use super::buckets::Index;
use super::queries::{
    Queries,
    flags::{CONTINUES, COUNT_SUBTREES},
};
use super::traversal::{BucketTraversal, Filter, THREADS, TraversalAndRow, TraversalSmem, Visitor};
use crate::policy::QUERIES;
use crate::thread::coord::{Coord, Float};
use crate::thread::measure::MAX_DIMS;
use crate::thread::point::load_point;
use crate::thread::region::Range;
use cuda_std::prelude::*;

/// Counts the points within the queries' bound of each query; one lane per query.
#[kernel(family = "query-within", block = THREADS, min_blocks = QUERIES.min_blocks(D, size_of::<<C as Coord>::Distance>()), shared = TraversalSmem<<C as Coord>::Distance>, hot)]
#[instances(C = [f32, f64, i32], D = [2, 3, 8])]
#[instance(f32, 4)]
pub unsafe fn query_count_within<C: Coord, const D: usize>(
    index: Index<'_, C>,
    queries: Queries<'_, C>,
    counts: SliceMut<u32>,
) {
    let i = thread::index_1d_u64();
    if let Some((mut traversal, row)) = queries.traversal::<D>(i, false, index, shared_mem()) {
        let bound = queries.bound_of(row);
        let counts_subtrees = D < MAX_DIMS && queries.flags & COUNT_SUBTREES != 0;
        let mut count = Count::new::<D>(bound, counts_subtrees);
        if counts_subtrees && traversal.filter.excluded != u32::MAX {
            // The excluded point is the query itself. Whole subtrees count it, so one is subtracted at the end.
            traversal.filter.excluded = u32::MAX;
            count.excludes_one = traversal.region.is_within_itself(bound);
        }
        traversal.run(&mut count);
        count.write(row, counts, queries.flags);
    }
}

/// Writes the ids of the points within the queries' bound of each query from its offset on, and their distances unless `result_dist2` is
/// empty; one lane per query. Each row has `before` points already, none if that is empty. Points beyond the capacity of the result are not
/// written.
#[kernel(family = "query-within", block = THREADS, min_blocks = QUERIES.min_blocks(D, size_of::<<C as Coord>::Distance>()), shared = TraversalSmem<<C as Coord>::Distance>, hot)]
#[instances(C = [f32, f64, i32], D = [2, 3, 8])]
#[instance(f32, 4)]
pub unsafe fn query_emit_within<C: Coord, const D: usize>(
    index: Index<'_, C>,
    queries: Queries<'_, C>,
    offsets: Slice<u64>,
    before: Slice<u32>,
    result_ids: SliceMut<u32>,
    result_dist2: SliceMut<<C as Coord>::Distance>,
) {
    let i = thread::index_1d_u64();
    if let Some((traversal, row)) = queries.traversal::<D>(i, false, index, shared_mem()) {
        let bound = queries.bound_of(row);
        traversal.run(&mut Emit::new(bound, row, offsets, before, result_ids, result_dist2));
    }
}

/// Counts the points in each box, borders included; one lane per box. A box is its least and then its greatest corner. The counts are added
/// to those that are there if `flags` has [`CONTINUES`].
#[kernel(family = "query-within", block = THREADS, min_blocks = QUERIES.min_blocks(D, size_of::<<C as Coord>::Distance>()), shared = TraversalSmem<<C as Coord>::Distance>, hot)]
#[instances(C = [f32, f64, i32], D = [2, 3, 8])]
pub unsafe fn query_count_in_boxes<C: Coord, const D: usize>(
    index: Index<'_, C>,
    corners: Slice<C>,
    mask: Slice<u32>,
    flags: u32,
    counts: SliceMut<u32>,
) {
    if let Some((traversal, row)) = box_traversal::<C, D>(index, corners, mask) {
        let bound = lane_bound(row.is_some(), C::Distance::ZERO);
        let mut count = Count::new::<D>(bound, mask.is_empty() && index.bucket_len == 0);
        traversal.run(&mut count);
        count.write(row, counts, flags);
    }
}

/// Writes the ids of the points in each box from the box's offset on, as [`query_emit_within`]; one lane per box.
#[kernel(family = "query-within", block = THREADS, min_blocks = QUERIES.min_blocks(D, size_of::<<C as Coord>::Distance>()), shared = TraversalSmem<<C as Coord>::Distance>, hot)]
#[instances(C = [f32, f64, i32], D = [2, 3, 8])]
pub unsafe fn query_emit_in_boxes<C: Coord, const D: usize>(
    index: Index<'_, C>,
    corners: Slice<C>,
    mask: Slice<u32>,
    offsets: Slice<u64>,
    before: Slice<u32>,
    result_ids: SliceMut<u32>,
) {
    if let Some((traversal, row)) = box_traversal::<C, D>(index, corners, mask) {
        let bound = lane_bound(row.is_some(), C::Distance::ZERO);
        traversal.run(&mut Emit::new(
            bound,
            row,
            offsets,
            before,
            result_ids,
            SliceMut::from_raw_parts(core::ptr::dangling_mut(), 0),
        ));
    }
}

/// Returns `bound` for a lane with a query, otherwise minus infinity, which no point is within.
#[inline(always)]
fn lane_bound<C: Float>(has_query: bool, bound: C) -> C {
    if has_query { bound } else { C::ZERO - C::INFINITY }
}

/// Returns the traversal of the thread's box and its number, if it has one; `None` if no lane of the warp has a box.
#[inline(always)]
unsafe fn box_traversal<'a, C: Coord, const D: usize>(
    index: Index<'a, C>,
    corners: Slice<'a, C>,
    mask: Slice<'a, u32>,
) -> TraversalAndRow<'a, C, Range<C::Distance, D>, D> {
    let buckets = index.buckets();
    let (i, num_boxes) = (thread::index_1d_u64() as usize, corners.len() / (2 * buckets.dims));
    let first = i - warp::lane_id() as usize;
    if first >= num_boxes {
        return None;
    }
    let own_box = if i < num_boxes { i } else { first };
    let dims = buckets.dims;
    let (mut low, high) =
        (load_point(corners, 2 * own_box, dims), load_point(corners, 2 * own_box + 1, dims));
    for axis in 0..D {
        // NaN would exclude nothing: make the box empty.
        if low[axis].is_nan() || high[axis].is_nan() {
            low[axis] = C::Distance::INFINITY;
        }
    }
    let filter = Filter { mask, excluded: u32::MAX };
    Some((
        BucketTraversal {
            buckets,
            boxes: index.boxes,
            least_ids: index.least_ids,
            region: Range { low, high, dims },
            filter,
            start_bucket: 0,
            smem: shared_mem(),
        },
        (i < num_boxes).then_some(i),
    ))
}

/// Counts the points that a lane finds.
struct Count<C> {
    bound: C,
    /// The bound if whole subtrees are counted; otherwise minus infinity.
    whole_subtree_bound: Option<C>,
    count: u32,
    /// One of the counted points is excluded.
    excludes_one: bool,
}

impl<C: Float> Visitor<C> for Count<C> {
    const ONE_QUERY_PER_WARP: bool = false;
    const NEAREST_FIRST: bool = false;

    #[inline(always)]
    fn bound(&self) -> C {
        self.bound
    }

    #[inline(always)]
    fn whole_subtree_bound(&self) -> Option<C> {
        self.whole_subtree_bound
    }

    #[inline(always)]
    fn count(&mut self, len: u32) {
        self.count += len;
    }

    #[inline(always)]
    unsafe fn offer(&mut self, is_accepted: bool, _: C, _: u32) {
        self.count += u32::from(is_accepted);
    }
}

impl<C: Float> Count<C> {
    #[inline(always)]
    fn new<const D: usize>(bound: C, counts_subtrees: bool) -> Self {
        // The general kernel has no registers left for the farthest corner of a box.
        let whole_subtree_bound = if D < MAX_DIMS { Some(lane_bound(counts_subtrees, bound)) } else { None };
        Self { bound, whole_subtree_bound, count: 0, excludes_one: false }
    }

    #[inline(always)]
    unsafe fn write(self, row: Option<usize>, counts: SliceMut<'_, u32>, flags: u32) {
        if let Some(row) = row
            && row < counts.len()
        {
            let before = if flags & CONTINUES != 0 { counts.load(row) } else { 0 };
            counts.store(row, (before + self.count).wrapping_sub(self.excludes_one.into()));
        }
    }
}

/// Writes the points that a lane finds.
struct Emit<'a, C> {
    bound: C,
    ids: SliceMut<'a, u32>,
    dist2: SliceMut<'a, C>,
    /// The index of the next point in the result.
    next: u64,
    /// The end of the row, or of the result if that is less.
    end: u64,
}

impl<'a, C: Float> Emit<'a, C> {
    #[inline(always)]
    unsafe fn new(
        bound: C,
        row: Option<usize>,
        offsets: Slice<'_, u64>,
        before: Slice<'_, u32>,
        ids: SliceMut<'a, u32>,
        dist2: SliceMut<'a, C>,
    ) -> Self {
        let (mut next, mut end) = (0, 0);
        if let Some(row) = row
            && row + 1 < offsets.len()
        {
            (next, end) = (offsets.load(row), offsets.load(row + 1));
            if row < before.len() {
                next += u64::from(before.load(row));
            }
        }
        let capacity = ids.len() as u64;
        Self { bound, ids, dist2, next, end: if end < capacity { end } else { capacity } }
    }
}

impl<C: Float> Visitor<C> for Emit<'_, C> {
    const ONE_QUERY_PER_WARP: bool = false;
    const NEAREST_FIRST: bool = false;

    #[inline(always)]
    fn bound(&self) -> C {
        self.bound
    }

    #[inline(always)]
    unsafe fn offer(&mut self, is_accepted: bool, distance: C, id: u32) {
        if is_accepted {
            if self.next < self.end {
                self.ids.store(self.next as usize, id);
                if !self.dist2.is_empty() {
                    self.dist2.store(self.next as usize, distance);
                }
            }
            self.next += 1;
        }
    }
}

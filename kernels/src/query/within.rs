//! The points within a distance of each query, or in each box: how many, then which; by a walk over the buckets. The
//! points of a row are in the order of the tree.

use super::buckets::Index;
use super::queries::{Queries, flags::COUNT_SUBTREES};
use super::walk::{Filter, THREADS, Visit, Walk, WalkAndRow, WalkSmem};
use crate::policy::QUERIES;
use crate::thread::coord::Coord;
use crate::thread::measure::MAX_DIMS;
use crate::thread::point::load_point;
use crate::thread::region::Range;
use cuda_std::prelude::*;

/// Counts the points within `bound` of each query; a lane a query.
#[kernel(family = "query-within", block = THREADS, min_blocks = QUERIES.min_blocks(D, size_of::<C>()), shared = WalkSmem<C>, hot)]
#[instances(C = [f32, f64], D = [2, 3, 8])]
#[instance(f32, 4)]
pub unsafe fn query_count_within<C: Coord, const D: usize>(
    index: Index<'_, C>,
    queries: Queries<'_, C>,
    counts: SliceMut<u32>,
) {
    let i = thread::index_1d_u64();
    if let Some((mut walk, row)) = queries.walk::<D>(i, false, index, shared_mem()) {
        let bound = bound_of(row.is_some(), C::from_f64(queries.bound));
        let counts_subtrees = D < MAX_DIMS && queries.flags & COUNT_SUBTREES != 0;
        let mut count = Count::new::<D>(bound, counts_subtrees);
        if counts_subtrees && walk.filter.except != u32::MAX {
            // The point that a query leaves out is the query itself. It is counted with its subtree, and is one too many.
            walk.filter.except = u32::MAX;
            count.leaves_out = walk.region.is_within_itself(bound);
        }
        walk.run(&mut count);
        count.write(row, counts);
    }
}

/// Writes the ids of the points within `bound` of each query, and unless there is no room at all their distances, from the
/// query's offset on, as far as there is room; a lane a query.
#[kernel(family = "query-within", block = THREADS, min_blocks = QUERIES.min_blocks(D, size_of::<C>()), shared = WalkSmem<C>, hot)]
#[instances(C = [f32, f64], D = [2, 3, 8])]
#[instance(f32, 4)]
pub unsafe fn query_emit_within<C: Coord, const D: usize>(
    index: Index<'_, C>,
    queries: Queries<'_, C>,
    offsets: Slice<u64>,
    result_ids: SliceMut<u32>,
    result_dist2: SliceMut<C>,
) {
    let i = thread::index_1d_u64();
    if let Some((walk, row)) = queries.walk::<D>(i, false, index, shared_mem()) {
        let bound = bound_of(row.is_some(), C::from_f64(queries.bound));
        walk.run(&mut Emit::new(bound, row, offsets, result_ids, result_dist2));
    }
}

/// Counts the points in each box, its border too; a lane a box, which is given as its least and then its greatest coordinates.
#[kernel(family = "query-within", block = THREADS, min_blocks = QUERIES.min_blocks(D, size_of::<C>()), shared = WalkSmem<C>, hot)]
#[instances(C = [f32, f64], D = [2, 3, 8])]
pub unsafe fn query_count_in_boxes<C: Coord, const D: usize>(
    index: Index<'_, C>,
    corners: Slice<C>,
    mask: Slice<u32>,
    counts: SliceMut<u32>,
) {
    if let Some((walk, row)) = walk_of_box::<C, D>(index, corners, mask) {
        let bound = bound_of(row.is_some(), C::ZERO);
        let mut count = Count::new::<D>(bound, mask.is_empty() && index.bucket_len == 0);
        walk.run(&mut count);
        count.write(row, counts);
    }
}

/// Writes the ids of the points in each box from the box's offset on, as far as there is room; a lane a box.
#[kernel(family = "query-within", block = THREADS, min_blocks = QUERIES.min_blocks(D, size_of::<C>()), shared = WalkSmem<C>, hot)]
#[instances(C = [f32, f64], D = [2, 3, 8])]
pub unsafe fn query_emit_in_boxes<C: Coord, const D: usize>(
    index: Index<'_, C>,
    corners: Slice<C>,
    mask: Slice<u32>,
    offsets: Slice<u64>,
    result_ids: SliceMut<u32>,
) {
    if let Some((walk, row)) = walk_of_box::<C, D>(index, corners, mask) {
        let bound = bound_of(row.is_some(), C::ZERO);
        walk.run(&mut Emit::new(
            bound,
            row,
            offsets,
            result_ids,
            SliceMut::from_raw_parts(core::ptr::dangling_mut(), 0),
        ));
    }
}

/// The bound of a lane, or, if it has no query, one that nothing is within.
#[inline(always)]
fn bound_of<C: Coord>(has_query: bool, bound: C) -> C {
    if has_query { bound } else { C::ZERO - C::INFINITY }
}

/// The walk of a thread's box and its number, if there is one; nothing if the warp has no box at all.
#[inline(always)]
unsafe fn walk_of_box<'a, C: Coord, const D: usize>(
    index: Index<'a, C>,
    corners: Slice<'a, C>,
    mask: Slice<'a, u32>,
) -> WalkAndRow<'a, C, Range<C, D>, D> {
    let buckets = index.buckets();
    let (i, num_boxes) = (thread::index_1d_u64() as usize, corners.len() / (2 * buckets.dims));
    let first = i - warp::lane_id() as usize;
    if first >= num_boxes {
        return None;
    }
    let own = if i < num_boxes { i } else { first };
    let dims = buckets.dims;
    let (mut low, high) = (load_point(corners, 2 * own, dims), load_point(corners, 2 * own + 1, dims));
    let mut axis = 0;
    while axis < D {
        // NaN would bound nothing: such a box has no points.
        if low[axis].is_nan() || high[axis].is_nan() {
            low[axis] = C::INFINITY;
        }
        axis += 1;
    }
    let filter = Filter { mask, except: u32::MAX };
    Some((
        Walk {
            buckets,
            boxes: index.boxes,
            least_ids: index.least_ids,
            region: Range { low, high, dims },
            filter,
            home: 0,
            smem: shared_mem(),
        },
        (i < num_boxes).then_some(i),
    ))
}

/// How many a lane meets.
struct Count<C> {
    bound: C,
    /// The bound if subtrees are counted as a whole; less than every distance if not.
    bound_of_all: Option<C>,
    count: u32,
    /// One of them does not count.
    leaves_out: bool,
}

impl<C: Coord> Visit<C> for Count<C> {
    const ONE_QUERY: bool = false;
    const NEAREST_FIRST: bool = false;

    #[inline(always)]
    fn bound(&self) -> C {
        self.bound
    }

    #[inline(always)]
    fn bound_of_all(&self) -> Option<C> {
        self.bound_of_all
    }

    #[inline(always)]
    fn count(&mut self, len: u32) {
        self.count += len;
    }

    #[inline(always)]
    unsafe fn offer(&mut self, is_taken: bool, _: C, _: u32) {
        self.count += u32::from(is_taken);
    }
}

impl<C: Coord> Count<C> {
    #[inline(always)]
    fn new<const D: usize>(bound: C, counts_subtrees: bool) -> Self {
        // With many dimensions there are not enough registers for the farthest corner of a box too.
        let bound_of_all = if D < MAX_DIMS { Some(bound_of(counts_subtrees, bound)) } else { None };
        Self { bound, bound_of_all, count: 0, leaves_out: false }
    }

    #[inline(always)]
    unsafe fn write(self, row: Option<usize>, counts: SliceMut<'_, u32>) {
        if let Some(row) = row
            && row < counts.len()
        {
            counts.store(row, self.count.wrapping_sub(self.leaves_out.into()));
        }
    }
}

/// Writes what a lane meets.
struct Emit<'a, C> {
    bound: C,
    ids: SliceMut<'a, u32>,
    dist2: SliceMut<'a, C>,
    /// Where the next goes.
    place: u64,
    /// Where the next row begins.
    end: u64,
}

impl<'a, C: Coord> Emit<'a, C> {
    #[inline(always)]
    unsafe fn new(
        bound: C,
        row: Option<usize>,
        offsets: Slice<'_, u64>,
        ids: SliceMut<'a, u32>,
        dist2: SliceMut<'a, C>,
    ) -> Self {
        let (mut place, mut end) = (0, 0);
        if let Some(row) = row
            && row + 1 < offsets.len()
        {
            (place, end) = (offsets.load(row), offsets.load(row + 1));
        }
        let room = ids.len() as u64;
        Self { bound, ids, dist2, place, end: if end < room { end } else { room } }
    }
}

impl<C: Coord> Visit<C> for Emit<'_, C> {
    const ONE_QUERY: bool = false;
    const NEAREST_FIRST: bool = false;

    #[inline(always)]
    fn bound(&self) -> C {
        self.bound
    }

    #[inline(always)]
    unsafe fn offer(&mut self, is_taken: bool, distance: C, id: u32) {
        if is_taken {
            if self.place < self.end {
                self.ids.store(self.place as usize, id);
                if !self.dist2.is_empty() {
                    self.dist2.store(self.place as usize, distance);
                }
            }
            self.place += 1;
        }
    }
}

//! Traversal of a bucket index: each lane of a warp with its own query, or all lanes with one query.
//!
//! A subtree is entered if its box is within the visitor's bound. If both children are, one is entered; a bit of the level marks its
//! sibling as pending, and shared memory holds the sibling's distance. The tree is implicit, so the path code gives the number of every
//! pending node and no stack is needed. Lanes descend until most of them are at a bucket; then these lanes scan their buckets (after
//! Aila, Laine 2009, *Understanding the Efficiency of Ray Traversal on GPUs*).

pub mod together;

use super::buckets::{BucketPoints, Index, NO_POINT};
use crate::block::tile::load_16;
use crate::policy::{BUCKET_LEVELS, QUERIES};
use crate::thread::coord::{Coord, Float};
use crate::thread::measure::MAX_DIMS;
use crate::thread::region::Region;
use cuda_std::prelude::*;

/// Threads of a block.
pub const THREADS: usize = QUERIES.threads;
/// Maximum number of levels above the buckets.
const MAX_LEVELS: usize = 32 - BUCKET_LEVELS as usize;

/// Receives the points that a traversal finds.
pub trait Visitor<C> {
    /// True if all lanes of a warp share one query and each lane takes another point; false if each lane has its own query.
    const ONE_QUERY_PER_WARP: bool;
    /// True if the nearer child is visited first and bounds shrink; false if points are visited in the order of the tree.
    const NEAREST_FIRST: bool;

    /// How many points around the query to visit first, so that the bound becomes small.
    #[inline(always)]
    fn min_start_points(&self) -> u32 {
        1
    }
    /// Returns the largest distance at which the lane accepts a point.
    fn bound(&self) -> C;
    /// Returns the id of the worst neighbor so far. A point at the distance of the bound is accepted only with a smaller id.
    ///
    /// # Safety
    /// All lanes of the warp call it if they share one query.
    #[inline(always)]
    unsafe fn worst_id(&self) -> u32 {
        u32::MAX
    }
    /// Returns the distance within which whole subtrees are counted without visiting their points, if they are.
    #[inline(always)]
    fn whole_subtree_bound(&self) -> Option<C> {
        None
    }
    /// Counts the points of a whole subtree.
    #[inline(always)]
    fn count(&mut self, _: u32) {}
    /// Takes a point at `distance` if `is_accepted`. At most [`GROUP`] points are offered between two calls of
    /// [`flush_if_full`](Self::flush_if_full).
    ///
    /// # Safety
    /// All lanes of the warp call it.
    unsafe fn offer(&mut self, is_accepted: bool, distance: C, id: u32);
    /// Makes sure that [`GROUP`] more points can be offered.
    ///
    /// # Safety
    /// All lanes of the warp call it.
    #[inline(always)]
    unsafe fn flush_if_full(&mut self) {}
}

/// Number of points that a lane loads together; their coordinates fill whole vectors of 16 bytes.
pub const GROUP: usize = 4;

/// The points that a query may find.
#[derive(Clone, Copy)]
pub struct Filter<'a> {
    /// A bit for each point, by id; empty if all points are accepted.
    pub mask: Slice<'a, u32>,
    /// The id of the point that the query excludes; `u32::MAX` if it excludes none.
    pub excluded: u32,
}

impl Filter<'_> {
    #[inline(always)]
    unsafe fn accepts(&self, id: u32) -> bool {
        id != self.excluded && self.has(id)
    }

    /// True if `id` is a point that some query may find.
    #[inline(always)]
    unsafe fn has(&self, id: u32) -> bool {
        let word = id as usize / 32;
        id != NO_POINT
            && (self.mask.is_empty()
                || (word < self.mask.len() && self.mask.load(word) >> (id % 32) & 1 != 0))
    }
}

/// The traversal of one query.
#[derive(Clone, Copy)]
pub struct BucketTraversal<'a, C: Coord, R, const D: usize> {
    /// The points in their buckets.
    pub buckets: BucketPoints<'a, C>,
    /// The bounding boxes of both children of each node above the buckets.
    pub boxes: Slice<'a, C>,
    /// The least id of each node's points, down to the buckets; not read in the order of the tree.
    pub least_ids: Slice<'a, u32>,
    /// The region of the query.
    pub region: R,
    /// The points that the query may find.
    pub filter: Filter<'a>,
    /// The path code of the bucket that contains the query; 0 if it is unknown.
    pub start_bucket: u32,
    /// Shared memory of the block.
    pub smem: *mut TraversalSmem<C::Distance>,
}

/// A lane's traversal and the result row of its query, if the lane has one; `None` if no lane of the warp has a query.
pub(super) type TraversalAndRow<'a, C, R, const D: usize> =
    Option<(BucketTraversal<'a, C, R, D>, Option<usize>)>;

/// Shared memory: the distance of the pending child for each level and thread.
#[repr(C, align(16))]
pub struct TraversalSmem<C> {
    pending: [[C; THREADS]; MAX_LEVELS],
}

/// The position of a traversal in the tree.
#[derive(Clone, Copy)]
struct Position {
    /// Path code of the node: 1 for the root; below the leading bit one bit for each level, 1 for right.
    code: u32,
    level: u32,
    /// Bit l is set if the sibling on the path below level l is pending.
    pending: u32,
    is_done: bool,
}

impl<'a, C: Coord, R: Region<C::Distance, D>, const D: usize> BucketTraversal<'a, C, R, D> {
    /// Returns the traversal of another index by the query, from its root.
    #[inline(always)]
    pub(super) fn of(&self, index: Index<'a, C>) -> Self {
        let (boxes, least_ids) = (index.boxes, index.least_ids);
        Self { buckets: index.buckets(), boxes, least_ids, start_bucket: 0, ..*self }
    }

    /// Offers the visitor every point within its bound.
    ///
    /// # Safety
    /// All lanes of the warp call it, with the same index.
    #[inline(always)]
    pub unsafe fn run<V: Visitor<C::Distance>>(&self, visitor: &mut V) {
        if self.buckets.ids.is_empty() {
            return;
        }
        // With one point a lane, two buckets are scanned together.
        let levels =
            if V::ONE_QUERY_PER_WARP { self.buckets.levels.saturating_sub(1) } else { self.buckets.levels };
        let is_active = visitor.bound() >= C::Distance::ZERO;
        let mut position = Position { code: 1, level: 0, pending: 0, is_done: !is_active };
        // Visit the start bucket first, if it is known; then the siblings on its path to the root.
        let mut is_start = V::NEAREST_FIRST && warp::warp_vote_any(warp::FULL_MASK, self.start_bucket != 0);
        if is_start {
            position.level = self.buckets.lowest_level_with(visitor.min_start_points(), levels);
            position.code = self.start_bucket >> (self.buckets.levels - position.level);
            position.is_done |= self.start_bucket == 0;
        }
        loop {
            if !is_start {
                self.descend(&mut position, levels, visitor);
            }
            let is_at_bucket = !position.is_done && (is_start || position.level == levels);
            if !warp::warp_vote_any(warp::FULL_MASK, is_at_bucket) {
                return;
            }
            let (mut begin, mut len) = (0, 0);
            if is_at_bucket {
                (begin, len) = self.buckets.run(position.code - (1 << position.level), position.level);
            }
            if V::ONE_QUERY_PER_WARP {
                self.visit_by_warp(begin, len, visitor);
            } else {
                self.visit_by_lanes(begin, len, visitor);
            }
            if is_at_bucket {
                if is_start {
                    self.push_siblings(&mut position, visitor.bound());
                }
                self.backtrack(&mut position, visitor);
            }
            is_start = false;
        }
    }

    /// Marks the siblings on the path from the root as pending where they are within the bound.
    #[inline(always)]
    unsafe fn push_siblings(&self, position: &mut Position, bound: C::Distance) {
        let mut level = 0;
        while level < position.level {
            let child = position.code >> (position.level - level - 1);
            let [distance, _] = self.distances_to_child(child / 2 - 1, 1 - child % 2);
            if distance <= bound {
                self.pending_distances().store(Self::pending_index(level), distance);
                position.pending |= 1 << level;
            }
            level += 1;
        }
    }

    /// Descends until most lanes are at a bucket or done.
    #[inline(always)]
    unsafe fn descend<V: Visitor<C::Distance>>(&self, position: &mut Position, levels: u32, visitor: &mut V) {
        loop {
            let is_descending = !position.is_done && position.level < levels;
            let descending = warp::warp_vote_ballot(warp::FULL_MASK, is_descending).count_ones();
            let is_at_bucket = !position.is_done && !is_descending;
            let are_few = !V::ONE_QUERY_PER_WARP && descending < QUERIES.searching_from;
            if descending == 0 || (are_few && warp::warp_vote_any(warp::FULL_MASK, is_at_bucket)) {
                return;
            }
            if is_descending {
                self.enter_child(position, visitor);
            }
        }
    }

    /// Enters a child that is within the visitor's bound, or backtracks if none is.
    #[inline(always)]
    unsafe fn enter_child<V: Visitor<C::Distance>>(&self, position: &mut Position, visitor: &mut V) {
        let ([left, left_farthest], [right, right_farthest]) = self.distances_to_children(position.code - 1);
        let (mut enters_left, mut enters_right) = (left <= visitor.bound(), right <= visitor.bound());
        if let Some(bound) = visitor.whole_subtree_bound() {
            let (child, level) = (2 * position.code - (2 << position.level), position.level + 1);
            if enters_left && left_farthest <= bound {
                visitor.count(self.buckets.run(child, level).1);
                enters_left = false;
            }
            if enters_right && right_farthest <= bound {
                visitor.count(self.buckets.run(child + 1, level).1);
                enters_right = false;
            }
        }
        if enters_left | enters_right {
            let right_first = V::NEAREST_FIRST && right < left;
            let right_is_next = enters_right && (!enters_left || right_first);
            if enters_left & enters_right {
                self.pending_distances()
                    .store(Self::pending_index(position.level), if right_is_next { left } else { right });
                position.pending |= 1 << position.level;
            }
            position.code = 2 * position.code + u32::from(right_is_next);
            position.level += 1;
        } else {
            self.backtrack(position, visitor);
        }
    }

    /// Goes to the deepest pending child that is still within the visitor's bound; without one the traversal is done.
    #[inline(always)]
    unsafe fn backtrack<V: Visitor<C::Distance>>(&self, position: &mut Position, visitor: &V) {
        position.is_done = true;
        while position.pending != 0 {
            let level = 31 - position.pending.leading_zeros();
            position.pending ^= 1 << level;
            let distance = self.pending_distances().load(Self::pending_index(level));
            let code = (position.code >> (position.level - level - 1)) ^ 1;
            if distance <= visitor.bound() && self.may_improve(code, distance, visitor) {
                position.code = code;
                position.level = level + 1;
                position.is_done = false;
                break;
            }
        }
    }

    /// False if no point of a subtree can replace the worst neighbor: none is nearer, and at the same distance all ids are greater. Keeps
    /// traversals short where many points have one position or one distance.
    #[inline(always)]
    unsafe fn may_improve<V: Visitor<C::Distance>>(
        &self,
        code: u32,
        distance: C::Distance,
        visitor: &V,
    ) -> bool {
        !V::NEAREST_FIRST
            || distance < visitor.bound()
            || self.least_ids.load(code as usize - 1) < visitor.worst_id()
    }

    #[inline(always)]
    fn pending_distances(&self) -> SharedSlice<'_, C::Distance> {
        shared_field!(self.smem, pending)
    }

    #[inline(always)]
    fn pending_index(level: u32) -> usize {
        level as usize * THREADS + thread::thread_idx_x() as usize
    }

    /// Returns the least and the greatest distance to the points of the left child of a node, and of the right child.
    #[inline(always)]
    unsafe fn distances_to_children(&self, node: u32) -> ([C::Distance; 2], [C::Distance; 2]) {
        if D == MAX_DIMS {
            return (self.distances_to_child(node, 0), self.distances_to_child(node, 1));
        }
        // The corners of both boxes are contiguous and aligned to 16 bytes.
        let mut corners = [[C::Distance::ZERO; D]; 4];
        let mut i = 0;
        while i < 4 * D {
            let coords = load_16(self.boxes, node as usize * 4 * D + i);
            for e in 0..C::PER_16 {
                corners[(i + e) / D][(i + e) % D] = coords[e].widen();
            }
            i += C::PER_16;
        }
        let [low, high, right_low, right_high] = corners;
        (self.distances_to_box(low, high), self.distances_to_box(right_low, right_high))
    }

    /// Returns the least and the greatest distance to the points of the left or the right child.
    #[inline(always)]
    unsafe fn distances_to_child(&self, node: u32, is_right: u32) -> [C::Distance; 2] {
        let dims = if D == MAX_DIMS { self.buckets.dims } else { D };
        let corners = self.boxes.part((2 * node + is_right) as usize * 2 * dims, 2 * dims);
        let (mut low, mut high) = ([C::Distance::ZERO; D], [C::Distance::ZERO; D]);
        for axis in 0..D {
            if D < MAX_DIMS || axis < dims {
                low[axis] = corners.load(axis).widen();
                high[axis] = corners.load(dims + axis).widen();
            }
        }
        self.distances_to_box(low, high)
    }

    #[inline(always)]
    unsafe fn distances_to_box(&self, low: [C::Distance; D], high: [C::Distance; D]) -> [C::Distance; 2] {
        [self.region.to_box(low, high), self.region.to_all_of_box(low, high)]
    }

    /// Offers a run of points to the warp, one point a lane at a time.
    #[inline(always)]
    unsafe fn visit_by_warp<V: Visitor<C::Distance>>(&self, begin: usize, len: u32, visitor: &mut V) {
        let mut first = 0;
        while first < len {
            let i = first + warp::lane_id();
            let slot = begin + if i < len { i } else { 0 } as usize;
            let (point, id) = (self.buckets.point::<D>(slot), self.buckets.ids.load(slot));
            let distance = self.region.to_point(point);
            let is_near = i < len && distance <= visitor.bound();
            if warp::warp_vote_any(warp::FULL_MASK, is_near) {
                visitor.offer(is_near && self.filter.accepts(id), distance, id);
            }
            first += 32;
        }
    }

    /// Offers each lane its run of points.
    #[inline(always)]
    unsafe fn visit_by_lanes<V: Visitor<C::Distance>>(&self, begin: usize, len: u32, visitor: &mut V) {
        // Start at a multiple of the group, so that coordinates are loaded as aligned vectors.
        let before = (begin % GROUP) as u32;
        let aligned = begin - before as usize;
        let mut first = 0;
        loop {
            let has_points = first < before + len;
            if !warp::warp_vote_any(warp::FULL_MASK, has_points) {
                break;
            }
            let mut distances = [C::Distance::NAN; GROUP];
            let mut nearest = C::Distance::NAN;
            if has_points {
                let points = self.buckets.group::<D>(aligned + first as usize);
                for i in 0..GROUP {
                    let distance = self.region.to_point(points[i]);
                    // Positions before the run wrap around. NaN is within no bound.
                    let is_inside = (first + i as u32).wrapping_sub(before) < len;
                    distances[i] = if is_inside { distance } else { C::Distance::NAN };
                    nearest = nearest.min(distances[i]);
                }
            }
            if warp::warp_vote_any(warp::FULL_MASK, nearest <= visitor.bound()) {
                self.offer_group(aligned + first as usize, distances, visitor);
                visitor.flush_if_full();
            }
            first += GROUP as u32;
        }
    }

    /// Offers a group of points with their distances.
    #[inline(always)]
    unsafe fn offer_group<V: Visitor<C::Distance>>(
        &self,
        first: usize,
        distances: [C::Distance; GROUP],
        visitor: &mut V,
    ) {
        for i in 0..GROUP {
            let is_near = distances[i] <= visitor.bound();
            let mut id = 0;
            if is_near {
                id = self.buckets.ids.load(first + i);
            }
            visitor.offer(is_near && self.filter.accepts(id), distances[i], id);
        }
    }
}

//! A walk through the tree: every lane with a query of its own and by its own way, or all lanes of a warp with one query.
//!
//! A subtree is entered if its box is near enough. Of two children that are both near enough one is entered; a bit of its level
//! remembers the other, and shared memory how far it was. In an implicit tree that is all there is to know about the way back.
//! Lanes search until most of them are at a bucket, then those look at theirs (after Aila, Laine 2009, *Understanding the
//! Efficiency of Ray Traversal on GPUs*).

use super::buckets::{Buckets, NO_POINT};
use crate::block::tile::load_16;
use crate::policy::{BUCKET_LEVELS, QUERIES};
use crate::thread::coord::Coord;
use crate::thread::measure::MAX_DIMS;
use crate::thread::region::Region;
use cuda_std::prelude::*;

/// Threads of a block of walks.
pub const THREADS: usize = QUERIES.threads;
/// Levels above the buckets at most.
const MAX_LEVELS: usize = 32 - BUCKET_LEVELS as usize;

/// What is done with the points that a walk meets.
pub trait Visit<C> {
    /// The lanes of a warp have one query together, and a point each; otherwise a query each, and points one after the other.
    const ONE_QUERY: bool;
    /// The nearer of two children comes first, and bounds shrink; otherwise points come in their order in the tree.
    const NEAREST_FIRST: bool;

    /// How many points should be met in one piece before others, where the query is, so that the bound is of use.
    #[inline(always)]
    fn first_points(&self) -> u32 {
        1
    }
    /// How far a point may be that the lane takes.
    fn bound(&self) -> C;
    /// At that distance its id is smaller than this one: that of the last of the nearest so far. All lanes call if they have one query.
    #[inline(always)]
    unsafe fn last_id(&self) -> u32 {
        u32::MAX
    }
    /// All points of a subtree that is nowhere farther than that are counted without a look at them.
    #[inline(always)]
    fn bound_of_all(&self) -> Option<C> {
        None
    }
    /// So many points of such a subtree.
    #[inline(always)]
    fn count(&mut self, _: u32) {}
    /// A point at that distance, if it is one that the lane takes. Since the visitor has [made room](Self::make_room) there are
    /// at most [`GROUP`] of them.
    ///
    /// # Safety
    /// All lanes call.
    unsafe fn offer(&mut self, is_taken: bool, distance: C, id: u32);
    /// Makes room for more.
    ///
    /// # Safety
    /// All lanes call.
    #[inline(always)]
    unsafe fn make_room(&mut self) {}
}

/// Points of a bucket that a lane looks at together; their coordinates are whole pieces of 16 bytes.
pub const GROUP: usize = 4;

/// Which points a lane may take.
#[derive(Clone, Copy)]
pub struct Filter<'a> {
    /// A bit a point, by id; empty if all may be taken.
    pub mask: Slice<'a, u32>,
    /// One that may not be.
    pub except: u32,
}

impl Filter<'_> {
    #[inline(always)]
    unsafe fn takes(&self, id: u32) -> bool {
        let word = id as usize / 32;
        id != self.except
            && id != NO_POINT
            && (self.mask.is_empty()
                || (word < self.mask.len() && self.mask.load(word) >> (id % 32) & 1 != 0))
    }
}

/// One query's walk.
#[derive(Clone, Copy)]
pub struct Walk<'a, C, R, const D: usize> {
    /// The points.
    pub buckets: Buckets<'a, C>,
    /// The boxes of the nodes.
    pub boxes: Slice<'a, C>,
    /// The least id of each node's points, down to the buckets; none if points come in their order.
    pub least_ids: Slice<'a, u32>,
    /// The query.
    pub region: R,
    /// What it takes.
    pub filter: Filter<'a>,
    /// The bucket where the query is, numbered as nodes are from 1 at the root; 0 if that is not known.
    pub home: u32,
    /// The block's.
    pub smem: *mut WalkSmem<C>,
}

/// A lane's walk and the row of its query, if it has one; nothing if no lane of the warp has.
pub(super) type WalkAndRow<'a, C, R, const D: usize> = Option<(Walk<'a, C, R, D>, Option<usize>)>;

/// Shared memory of walks: of each level and thread how far the child was that is yet to be entered.
#[repr(C, align(16))]
pub struct WalkSmem<C> {
    waiting: [[C; THREADS]; MAX_LEVELS],
}

/// Where a walk is.
#[derive(Clone, Copy)]
struct Place {
    /// Number of the node from 1 at the root: below the leading bit the way there, 1 for right.
    code: u32,
    level: u32,
    /// Bit l: of the node's ancestor on level l the other child is yet to be entered.
    waiting: u32,
    is_done: bool,
}

impl<C: Coord, R: Region<C, D>, const D: usize> Walk<'_, C, R, D> {
    /// Shows the visitor every point within its bound, and others.
    ///
    /// # Safety
    /// All lanes call, with the same tree.
    #[inline(always)]
    pub unsafe fn run<V: Visit<C>>(&self, visit: &mut V) {
        if self.buckets.ids.is_empty() {
            return;
        }
        // With a point a lane buckets may be larger.
        let levels = if V::ONE_QUERY { self.buckets.levels.saturating_sub(1) } else { self.buckets.levels };
        let is_active = visit.bound() >= C::ZERO;
        let mut place = Place { code: 1, level: 0, waiting: 0, is_done: !is_active };
        // Where the query is comes first, if that is known; then what is beside it on the way to the root.
        let mut is_home = V::NEAREST_FIRST && warp::warp_vote_any(warp::FULL_MASK, self.home != 0);
        if is_home {
            place.level = self.buckets.level_of(visit.first_points(), levels);
            place.code = self.home >> (self.buckets.levels - place.level);
            place.is_done |= self.home == 0;
        }
        loop {
            if !is_home {
                self.search(&mut place, levels, visit);
            }
            let is_there = !place.is_done && (is_home || place.level == levels);
            if !warp::warp_vote_any(warp::FULL_MASK, is_there) {
                return;
            }
            let (mut begin, mut len) = (0, 0);
            if is_there {
                (begin, len) = self.buckets.run(place.code - (1 << place.level), place.level);
            }
            if V::ONE_QUERY {
                self.show_to_warp(begin, len, visit);
            } else {
                self.show_to_lanes(begin, len, visit);
            }
            if is_there {
                if is_home {
                    self.look_back(&mut place, visit.bound());
                }
                self.back(&mut place, visit);
            }
            is_home = false;
        }
    }

    /// Remembers the other children on the way from the root that are near enough.
    #[inline(always)]
    unsafe fn look_back(&self, place: &mut Place, bound: C) {
        let mut level = 0;
        while level < place.level {
            let child = place.code >> (place.level - level - 1);
            let [distance, _] = self.distances_to_child(child / 2 - 1, 1 - child % 2);
            if distance <= bound {
                self.waiting().store(Self::waiting_place(level), distance);
                place.waiting |= 1 << level;
            }
            level += 1;
        }
    }

    /// Goes on until most lanes are at a bucket, or done.
    #[inline(always)]
    unsafe fn search<V: Visit<C>>(&self, place: &mut Place, levels: u32, visit: &mut V) {
        loop {
            let is_searching = !place.is_done && place.level < levels;
            let searching = warp::warp_vote_ballot(warp::FULL_MASK, is_searching).count_ones();
            let is_there = !place.is_done && !is_searching;
            let are_few = !V::ONE_QUERY && searching < QUERIES.searching_from;
            if searching == 0 || (are_few && warp::warp_vote_any(warp::FULL_MASK, is_there)) {
                return;
            }
            if is_searching {
                self.down(place, visit);
            }
        }
    }

    /// One step down to a child that may have points for the visitor, or back where there is none.
    #[inline(always)]
    unsafe fn down<V: Visit<C>>(&self, place: &mut Place, visit: &mut V) {
        let ([left, all_left], [right, all_right]) = self.distances_to_children(place.code - 1);
        let (mut takes_left, mut takes_right) = (left <= visit.bound(), right <= visit.bound());
        if let Some(bound) = visit.bound_of_all() {
            let (child, level) = (2 * place.code - (2 << place.level), place.level + 1);
            if takes_left && all_left <= bound {
                visit.count(self.buckets.run(child, level).1);
                takes_left = false;
            }
            if takes_right && all_right <= bound {
                visit.count(self.buckets.run(child + 1, level).1);
                takes_right = false;
            }
        }
        if takes_left | takes_right {
            let right_first = V::NEAREST_FIRST && right < left;
            let goes_right = takes_right && (!takes_left || right_first);
            if takes_left & takes_right {
                self.waiting().store(Self::waiting_place(place.level), if goes_right { left } else { right });
                place.waiting |= 1 << place.level;
            }
            place.code = 2 * place.code + u32::from(goes_right);
            place.level += 1;
        } else {
            self.back(place, visit);
        }
    }

    /// Back to the last child that was left aside and may have points for the visitor still; if there is none, the walk is done.
    #[inline(always)]
    unsafe fn back<V: Visit<C>>(&self, place: &mut Place, visit: &V) {
        place.is_done = true;
        while place.waiting != 0 {
            let level = 31 - place.waiting.leading_zeros();
            place.waiting ^= 1 << level;
            let distance = self.waiting().load(Self::waiting_place(level));
            let code = (place.code >> (place.level - level - 1)) ^ 1;
            if distance <= visit.bound() && self.may_be_among_nearest(code, distance, visit) {
                place.code = code;
                place.level = level + 1;
                place.is_done = false;
                break;
            }
        }
    }

    /// False if all points of a subtree are as far as the last of the nearest, or farther, and of greater ids: as many as there are at one
    /// place, or at one distance, a walk looks at few of them.
    #[inline(always)]
    unsafe fn may_be_among_nearest<V: Visit<C>>(&self, code: u32, distance: C, visit: &V) -> bool {
        !V::NEAREST_FIRST
            || distance < visit.bound()
            || self.least_ids.load(code as usize - 1) < visit.last_id()
    }

    #[inline(always)]
    fn waiting(&self) -> SharedSlice<'_, C> {
        shared_field!(self.smem, waiting)
    }

    #[inline(always)]
    fn waiting_place(level: u32) -> usize {
        level as usize * THREADS + thread::thread_idx_x() as usize
    }

    /// Of the left and the right child of a node how near and how far their points may be.
    #[inline(always)]
    unsafe fn distances_to_children(&self, node: u32) -> ([C; 2], [C; 2]) {
        if D == MAX_DIMS {
            return (self.distances_to_child(node, 0), self.distances_to_child(node, 1));
        }
        // Corners of both lie together, from a multiple of 16 bytes on.
        let mut corners = [[C::ZERO; D]; 4];
        let mut i = 0;
        while i < 4 * D {
            let coords = load_16(self.boxes, node as usize * 4 * D + i);
            let mut e = 0;
            while e < C::PER_16 {
                corners[(i + e) / D][(i + e) % D] = coords[e];
                e += 1;
            }
            i += C::PER_16;
        }
        let [low, high, right_low, right_high] = corners;
        (self.distances_to_box(low, high), self.distances_to_box(right_low, right_high))
    }

    /// The same of the left or right child.
    #[inline(always)]
    unsafe fn distances_to_child(&self, node: u32, is_right: u32) -> [C; 2] {
        let dims = if D == MAX_DIMS { self.buckets.dims } else { D };
        let corners = self.boxes.part((2 * node + is_right) as usize * 2 * dims, 2 * dims);
        let (mut low, mut high) = ([C::ZERO; D], [C::ZERO; D]);
        let mut axis = 0;
        while axis < D {
            if D < MAX_DIMS || axis < dims {
                low[axis] = corners.load(axis);
                high[axis] = corners.load(dims + axis);
            }
            axis += 1;
        }
        self.distances_to_box(low, high)
    }

    #[inline(always)]
    unsafe fn distances_to_box(&self, low: [C; D], high: [C; D]) -> [C; 2] {
        [self.region.to_box(low, high), self.region.to_all_of_box(low, high)]
    }

    /// Shows points to the lanes, one each at a time.
    #[inline(always)]
    unsafe fn show_to_warp<V: Visit<C>>(&self, begin: usize, len: u32, visit: &mut V) {
        let mut first = 0;
        while first < len {
            let i = first + warp::lane_id();
            let own = begin + if i < len { i } else { 0 } as usize;
            let (point, id) = (self.buckets.point::<D>(own), self.buckets.ids.load(own));
            let distance = self.region.to_point(point);
            let is_near = i < len && distance <= visit.bound();
            if warp::warp_vote_any(warp::FULL_MASK, is_near) {
                visit.offer(is_near && self.filter.takes(id), distance, id);
            }
            first += 32;
        }
    }

    /// Shows points to each lane.
    #[inline(always)]
    unsafe fn show_to_lanes<V: Visit<C>>(&self, begin: usize, len: u32, visit: &mut V) {
        // From a multiple of the group on, so that coordinates can be loaded by whole pieces.
        let before = (begin % GROUP) as u32;
        let aligned = begin - before as usize;
        let mut first = 0;
        loop {
            let has_points = first < before + len;
            if !warp::warp_vote_any(warp::FULL_MASK, has_points) {
                break;
            }
            let mut distances = [C::NAN; GROUP];
            let mut nearest = C::NAN;
            if has_points {
                let points = self.buckets.group::<D>(aligned + first as usize);
                let mut i = 0;
                while i < GROUP {
                    let distance = self.region.to_point(points[i]);
                    // Before the first it wraps around. What is not a number is not within any bound.
                    let is_inside = (first + i as u32).wrapping_sub(before) < len;
                    distances[i] = if is_inside { distance } else { C::NAN };
                    nearest = nearest.min(distances[i]);
                    i += 1;
                }
            }
            if warp::warp_vote_any(warp::FULL_MASK, nearest <= visit.bound()) {
                self.offer(aligned + first as usize, distances, visit);
                visit.make_room();
            }
            first += GROUP as u32;
        }
    }

    /// Offers a group of points at these distances.
    #[inline(always)]
    unsafe fn offer<V: Visit<C>>(&self, first: usize, distances: [C; GROUP], visit: &mut V) {
        let mut i = 0;
        while i < GROUP {
            let is_near = distances[i] <= visit.bound();
            let mut id = 0;
            if is_near {
                id = self.buckets.ids.load(first + i);
            }
            visit.offer(is_near && self.filter.takes(id), distances[i], id);
            i += 1;
        }
    }
}

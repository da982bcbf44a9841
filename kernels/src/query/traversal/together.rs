//! The search of a warp for the queries of all its lanes: whatever lane has nothing to do takes over work of the others.
//!
//! A query visits few nodes, but how many differs, so lanes that search on their own wait for each other most of the time. Here nodes to
//! open and buckets to visit are kept in two stacks of the warp, each with the lane of its query. All lanes
//!
//! 1. visit the start buckets of their own queries, so that the bounds become small;
//! 2. climb from there to the root, and put the siblings on the path that are within the bound on a stack;
//! 3. open the nodes of a stack, one each, and put the children within the bound of their query on a stack;
//! 4. visit the buckets of a stack, one each.
//!
//! A step is taken as soon as there is work for all lanes, the later steps first, so bounds shrink early and the stacks are short.

use super::{BucketTraversal, MAX_LEVELS};
use crate::query::buckets::NO_POINT;
use crate::query::traversal::GROUP;
use crate::thread::coord::{Coord, Float};
use crate::thread::region::{Measure, Region};
use cuda_std::prelude::*;

/// Most nodes of a stack. As few lanes open nodes as their children fit; the last [`MAX_DEPTH`] are for the path of a single one.
const NODES: usize = 256;
/// Most levels above the buckets.
const MAX_DEPTH: u32 = MAX_LEVELS as u32;
/// Most buckets of a stack: fewer than 32, and the children of 32 nodes.
const BUCKETS: usize = 96;

/// Shared memory of the warps of a block.
#[repr(C, align(16))]
pub struct TogetherSmem<C: Coord, const D: usize, const WARPS: usize> {
    queries: [[[C; 32]; D]; WARPS],
    excluded: [[u32; 32]; WARPS],
    bounds: [[C::Key; 32]; WARPS],
    worst_ids: [[u32; 32]; WARPS],
    nodes: [[u64; NODES]; WARPS],
    buckets: [[u64; BUCKETS]; WARPS],
}

/// The bound of each lane's query: the distance and the id of the worst of its best points.
#[derive(Clone, Copy)]
pub struct Bounds<'a, C: Float> {
    distances: SharedSlice<'a, C::Key>,
    ids: SharedSlice<'a, u32>,
}

impl<C: Float> Bounds<'_, C> {
    /// Returns the bound of the query of lane `of`.
    #[inline(always)]
    pub unsafe fn get(&self, of: u32) -> (C, u32) {
        (C::from_key(self.distances.load(of as usize)), self.ids.load(of as usize))
    }

    /// Sets the bound of the caller's query.
    #[inline(always)]
    pub unsafe fn set(&self, distance: C, id: u32) {
        let lane = warp::lane_id() as usize;
        self.distances.store(lane, distance.key());
        self.ids.store(lane, id);
    }

    /// Lowers the bound of the query of lane `of` to (`distance`, `id`), if that is less. All lanes call.
    #[inline(always)]
    pub unsafe fn lower(&self, of: u32, distance: C, id: u32) {
        let (of, key) = (of as usize, distance.key());
        let before = self.distances.load(of);
        warp::sync_warp(warp::FULL_MASK);
        self.distances.atomic_min(of, key, Ordering::Relaxed, Scope::Block);
        warp::sync_warp(warp::FULL_MASK);
        let is_least = self.distances.load(of) == key;
        if is_least && key < before {
            self.ids.atomic_exchange(of, u32::MAX, Ordering::Relaxed, Scope::Block);
        }
        warp::sync_warp(warp::FULL_MASK);
        if is_least {
            self.ids.atomic_min(of, id, Ordering::Relaxed, Scope::Block);
        }
        warp::sync_warp(warp::FULL_MASK);
    }
}

/// Keeps the best points of the queries of a warp. All lanes call each function.
pub trait KeepTogether<C: Float> {
    /// How many points around its query a lane visits first.
    #[inline(always)]
    fn min_start_points(&self) -> u32 {
        1
    }
    /// Begins a run of points for the query of lane `of`.
    unsafe fn begin(&mut self, bounds: Bounds<'_, C>, of: u32);
    /// Returns the largest distance at which a point of the run is accepted.
    fn bound(&self) -> C;
    /// Takes points of the run; those that are not accepted are at distance NaN.
    unsafe fn offer(&mut self, bounds: Bounds<'_, C>, of: u32, distances: [C; GROUP], ids: [u32; GROUP]);
    /// Ends the run.
    #[inline(always)]
    unsafe fn end(&mut self, _: Bounds<'_, C>, _: u32) {}
    /// Takes in all points so far, so that the bounds are as small as they can be.
    #[inline(always)]
    unsafe fn settle(&mut self, _: Bounds<'_, C>) {}
}

/// Work of a warp: path codes of nodes, each with the lane of its query.
struct Stack<'a> {
    items: SharedSlice<'a, u64>,
    len: u32,
}

impl Stack<'_> {
    /// Pushes the nodes of the lanes with `is_pushed`. All lanes call.
    #[inline(always)]
    unsafe fn push(&mut self, is_pushed: bool, code: u32, of: u32) {
        let pushed = warp::warp_vote_ballot(warp::FULL_MASK, is_pushed);
        if is_pushed {
            let before = (pushed & warp::lane_mask_lt()).count_ones();
            self.items.store((self.len + before) as usize, u64::from(code) << 32 | u64::from(of));
        }
        self.len += pushed.count_ones();
    }

    /// Pops up to `most` nodes, one for each lane. Returns the node of the lane, if there is one. All lanes call, and push after a
    /// [`sync_warp`](warp::sync_warp).
    #[inline(always)]
    unsafe fn pop(&mut self, most: u32) -> Option<(u32, u32)> {
        let popped = if self.len < most { self.len } else { most };
        self.len -= popped;
        if warp::lane_id() >= popped {
            return None;
        }
        let item = self.items.load((self.len + warp::lane_id()) as usize);
        Some(((item >> 32) as u32, item as u32))
    }
}

/// The search of a warp.
struct Search<'t, 'a, C: Coord, const D: usize> {
    traversal: &'t BucketTraversal<'a, C, Measure<'a, C::Distance, D>, D>,
    queries: SharedSlice<'a, C::Distance>,
    excluded: SharedSlice<'a, u32>,
    bounds: Bounds<'a, C::Distance>,
    nodes: Stack<'a>,
    buckets: Stack<'a>,
    /// The node that the lane climbs from, and its level.
    code: u32,
    level: u32,
    /// True while any lane is below the root.
    is_climbing: bool,
}

impl<'a, C: Coord, const D: usize> BucketTraversal<'a, C, Measure<'a, C::Distance, D>, D> {
    /// Offers every point within the bound of each lane's query, a distance and an id. A lane without a query has a negative distance.
    ///
    /// # Safety
    /// All lanes of the warp call it, with the same index.
    #[inline(always)]
    pub unsafe fn search_together<const WARPS: usize, K: KeepTogether<C::Distance>>(
        &self,
        bound: (C::Distance, u32),
        keep: &mut K,
        smem: *mut TogetherSmem<C::Distance, D, WARPS>,
    ) -> Bounds<'a, C::Distance> {
        let warp = thread::thread_idx_x() as usize / 32;
        let bounds = Bounds {
            distances: shared_field!(smem, bounds).part(warp * 32, 32),
            ids: shared_field!(smem, worst_ids).part(warp * 32, 32),
        };
        let mut search = Search {
            traversal: self,
            queries: shared_field!(smem, queries).part(warp * 32 * D, 32 * D),
            excluded: shared_field!(smem, excluded).part(warp * 32, 32),
            bounds,
            nodes: Stack { items: shared_field!(smem, nodes).part(warp * NODES, NODES), len: 0 },
            buckets: Stack { items: shared_field!(smem, buckets).part(warp * BUCKETS, BUCKETS), len: 0 },
            code: 1,
            level: 0,
            is_climbing: false,
        };
        search.start(bound, keep.min_start_points());
        search.run(keep);
        bounds
    }
}

impl<C: Coord, const D: usize> Search<'_, '_, C, D> {
    /// Stores the queries, and pushes where they start: the bucket if it is known, otherwise the root.
    #[inline(always)]
    unsafe fn start(&mut self, (bound, worst_id): (C::Distance, u32), min_points: u32) {
        let BucketTraversal { buckets, region, filter, start_bucket, .. } = self.traversal;
        let lane = warp::lane_id();
        for axis in 0..D {
            self.queries.store(axis * 32 + lane as usize, region.query()[axis]);
        }
        self.excluded.store(lane as usize, filter.excluded);
        self.bounds.set(bound, worst_id);
        let has_query = !buckets.ids.is_empty() && bound >= C::Distance::ZERO;
        if has_query && *start_bucket != 0 {
            self.level = buckets.lowest_level_with(min_points, buckets.levels);
            self.code = start_bucket >> (buckets.levels - self.level);
        }
        self.is_climbing = warp::warp_vote_any(warp::FULL_MASK, self.level > 0);
        let is_run = self.level > 0 || buckets.levels == 0;
        self.nodes.push(has_query && !is_run, self.code, lane);
        self.buckets.push(has_query && is_run, self.code, lane);
        warp::sync_warp(warp::FULL_MASK);
    }

    #[inline(always)]
    unsafe fn run<K: KeepTogether<C::Distance>>(&mut self, keep: &mut K) {
        let mut is_start = true;
        loop {
            if !is_start {
                while self.is_climbing && self.nodes.len < 32 && self.buckets.len < 32 {
                    self.climb();
                }
                while self.buckets.len < 32
                    && (self.nodes.len >= 32 || (!self.is_climbing && self.nodes.len > 0))
                {
                    self.open_nodes();
                }
            }
            let is_end = !is_start && !self.is_climbing && self.nodes.len == 0 && self.buckets.len <= 32;
            if is_start || is_end || self.buckets.len >= 32 {
                self.visit_buckets(keep);
            }
            if is_start || is_end {
                keep.settle(self.bounds);
            }
            if is_end {
                return;
            }
            is_start = false;
        }
    }

    /// Pushes a node or a bucket.
    #[inline(always)]
    unsafe fn push(&mut self, is_pushed: bool, code: u32, of: u32) {
        let is_bucket = code >> self.traversal.buckets.levels != 0;
        self.nodes.push(is_pushed && !is_bucket, code, of);
        self.buckets.push(is_pushed && is_bucket, code, of);
    }

    /// True if a node at `distance` may have a point that is better than the worst one.
    #[inline(always)]
    unsafe fn may_improve(
        &self,
        code: u32,
        distance: C::Distance,
        (bound, worst_id): (C::Distance, u32),
    ) -> bool {
        distance < bound || (distance == bound && self.traversal.least_ids.load(code as usize - 1) < worst_id)
    }

    /// Each lane goes to the parent of its node, and pushes the other child.
    #[inline(always)]
    unsafe fn climb(&mut self) {
        let (sibling, mut is_near) = (self.code ^ 1, false);
        if self.level > 0 {
            let [distance, _] = self.traversal.distances_to_child(self.code / 2 - 1, sibling % 2);
            is_near = self.may_improve(sibling, distance, self.bounds.get(warp::lane_id()));
            (self.code, self.level) = (self.code / 2, self.level - 1);
        }
        self.push(is_near, sibling, warp::lane_id());
        warp::sync_warp(warp::FULL_MASK);
        self.is_climbing = warp::warp_vote_any(warp::FULL_MASK, self.level > 0);
    }

    /// Returns the measure of the query of a lane.
    #[inline(always)]
    unsafe fn measure(&self, of: u32) -> Measure<'_, C::Distance, D> {
        let mut query = [C::Distance::ZERO; D];
        for axis in 0..D {
            query[axis] = self.queries.load(axis * 32 + of as usize);
        }
        self.traversal.region.with_query(query)
    }

    /// Opens a node each.
    #[inline(always)]
    unsafe fn open_nodes(&mut self) {
        let room = (NODES as u32 - MAX_DEPTH).saturating_sub(self.nodes.len);
        let opened = self.nodes.pop(room.clamp(1, 32));
        let ((code, of), is_opened) = (opened.unwrap_or((1, 0)), opened.is_some());
        let (mut near, mut far) = ((false, 2 * code), (false, 2 * code + 1));
        if is_opened {
            let traversal = BucketTraversal { region: self.measure(of), ..*self.traversal };
            let ([left, _], [right, _]) = traversal.distances_to_children(code - 1);
            let bound = self.bounds.get(of);
            near.0 = self.may_improve(2 * code, left, bound);
            far.0 = self.may_improve(2 * code + 1, right, bound);
            if right < left {
                (near, far) = (far, near);
            }
        }
        warp::sync_warp(warp::FULL_MASK);
        self.push(far.0, far.1, of);
        self.push(near.0, near.1, of);
        warp::sync_warp(warp::FULL_MASK);
    }

    /// Visits a bucket each.
    #[inline(always)]
    unsafe fn visit_buckets<K: KeepTogether<C::Distance>>(&mut self, keep: &mut K) {
        let buckets = &self.traversal.buckets;
        let visited = self.buckets.pop(32);
        let (code, of) = visited.unwrap_or((1, 0));
        let (mut begin, mut len) = (0, 0);
        if visited.is_some() {
            let level = 31 - code.leading_zeros();
            (begin, len) = buckets.run(code - (1 << level), level);
        }
        let (measure, excluded) = (self.measure(of), self.excluded.load(of as usize));
        keep.begin(self.bounds, of);
        // Start at a multiple of the group, so that coordinates are loaded as aligned vectors.
        let before = (begin % GROUP) as u32;
        let aligned = begin - before as usize;
        let mut first = 0;
        while warp::warp_vote_any(warp::FULL_MASK, first < before + len) {
            let mut distances = [C::Distance::NAN; GROUP];
            let mut nearest = C::Distance::NAN;
            if first < before + len {
                let points = buckets.group::<D>(aligned + first as usize);
                for i in 0..GROUP {
                    let distance = measure.to_point(points[i]);
                    // Positions before the run wrap around. NaN is within no bound.
                    let is_inside = (first + i as u32).wrapping_sub(before) < len;
                    distances[i] = if is_inside { distance } else { C::Distance::NAN };
                    nearest = nearest.min(distances[i]);
                }
            }
            if warp::warp_vote_any(warp::FULL_MASK, nearest <= keep.bound()) {
                let mut ids = [NO_POINT; GROUP];
                for i in 0..GROUP {
                    if distances[i] <= keep.bound() {
                        ids[i] = buckets.ids.load(aligned + first as usize + i);
                    }
                }
                for i in 0..GROUP {
                    if ids[i] == NO_POINT || ids[i] == excluded {
                        distances[i] = C::Distance::NAN;
                    }
                }
                if !self.traversal.filter.mask.is_empty() {
                    for i in 0..GROUP {
                        if !self.traversal.filter.has(ids[i]) {
                            distances[i] = C::Distance::NAN;
                        }
                    }
                }
                keep.offer(self.bounds, of, distances, ids);
            }
            first += GROUP as u32;
        }
        keep.end(self.bounds, of);
        // Before work is pushed again.
        warp::sync_warp(warp::FULL_MASK);
    }
}

//! A warp's walk through the tree: its lanes have queries of their own, which are near each other, and go together to every
//! bucket that one of them needs; or they have one query, and a point each.
//!
//! A subtree is entered if its box is near enough for a lane. There is no stack: of two children that are both needed one is
//! entered, and a bit a level remembers the other (after Laine 2010, *Restart Trail for Stackless BVH Traversal*, without
//! the restart, for in an implicit tree the way up is arithmetic).

use super::buckets::Buckets;
use super::left_balanced::full_tree;
use crate::thread::coord::Coord;
use crate::thread::measure::{MAX_DIMS, Region};
use crate::warp::shuffle::shuffle_idx;
use cuda_std::prelude::*;

/// What the lanes of a warp do with the points that they meet.
pub trait Visit<C> {
    /// The lanes have one query together, and a point each; otherwise a query each, and one point together.
    const ONE_QUERY: bool;
    /// The nearer of two children comes first, and bounds shrink; otherwise points come in their order in the tree.
    const NEAREST_FIRST: bool;

    /// How far a point may be that the lane takes.
    fn bound(&self) -> C;
    /// A point at that distance, if it is one that the lane takes. All lanes call.
    ///
    /// # Safety
    /// All lanes call.
    unsafe fn offer(&mut self, is_taken: bool, distance: C, id: u32);
    /// A bucket has been seen. All lanes call.
    ///
    /// # Safety
    /// All lanes call.
    #[inline(always)]
    unsafe fn end_bucket(&mut self) {}
}

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
            && (self.mask.is_empty()
                || (word < self.mask.len() && self.mask.load(word) >> (id % 32) & 1 != 0))
    }
}

/// One warp's walk.
#[derive(Clone, Copy)]
pub struct Walk<'a, C, R, const D: usize> {
    /// The points.
    pub buckets: Buckets<'a, C>,
    /// The boxes of the nodes.
    pub boxes: Slice<'a, C>,
    /// The lane's query.
    pub region: R,
    /// What it takes.
    pub filter: Filter<'a>,
}

impl<C: Coord, R: Region<C, D>, const D: usize> Walk<'_, C, R, D> {
    /// Shows the visitor every point within its bound, and others.
    ///
    /// # Safety
    /// All lanes call, with the same tree.
    #[inline(always)]
    pub unsafe fn run<V: Visit<C>>(&self, visit: &mut V) {
        let levels = self.buckets.levels;
        if self.buckets.ids.is_empty() {
            return;
        }
        // Bit l: the sibling of the node's ancestor on level l is yet to be seen.
        let (mut node, mut level, mut waiting) = (0_u32, 0_u32, 0_u32);
        loop {
            if level == levels {
                self.bucket(node - full_tree(levels), visit);
                visit.end_bucket();
            } else {
                let (left, right) = (self.to_child(node, 0), self.to_child(node, 1));
                let (any_left, any_right) = (any(left <= visit.bound()), any(right <= visit.bound()));
                if any_left | any_right {
                    let mut goes_right = any_right;
                    if any_left & any_right {
                        goes_right = V::NEAREST_FIRST && is_right_nearer(left, right);
                        waiting |= 2 << level;
                    }
                    node = 2 * node + 1 + u32::from(goes_right);
                    level += 1;
                    continue;
                }
            }
            loop {
                if waiting == 0 {
                    return;
                }
                let up = 31 - waiting.leading_zeros();
                waiting ^= 1 << up;
                node = (((node + 1) >> (level - up)) ^ 1) - 1;
                level = up;
                // The bounds may have shrunk since.
                if !V::NEAREST_FIRST || any(self.to_child((node - 1) / 2, 1 - node % 2) <= visit.bound()) {
                    break;
                }
            }
        }
    }

    /// Distance to the left or right child of a node.
    #[inline(always)]
    unsafe fn to_child(&self, node: u32, is_right: u32) -> C {
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
        self.region.to_box(low, high)
    }

    /// Shows the points of a bucket.
    #[inline(always)]
    unsafe fn bucket<V: Visit<C>>(&self, bucket: u32, visit: &mut V) {
        let (begin, len) = self.buckets.bucket(bucket);
        let lane = warp::lane_id();
        let own = begin + if lane < len { lane as usize } else { 0 };
        let (point, id) = (self.buckets.point::<D>(own), self.buckets.ids.load(own));
        if V::ONE_QUERY {
            let distance = self.region.to_point(point);
            let is_near = lane < len && distance <= visit.bound();
            if any(is_near) {
                visit.offer(is_near && self.filter.takes(id), distance, id);
            }
            return;
        }
        let mut i = 0;
        while i < len {
            let mut shown = point;
            let mut axis = 0;
            while axis < D {
                shown[axis] = shuffle_idx(point[axis], i);
                axis += 1;
            }
            let distance = self.region.to_point(shown);
            let is_near = distance <= visit.bound();
            if any(is_near) {
                let id = shuffle_idx(id, i);
                visit.offer(is_near && self.filter.takes(id), distance, id);
            }
            i += 1;
        }
    }
}

/// True if more lanes are nearer to the right.
#[inline(always)]
unsafe fn is_right_nearer<C: Coord>(left: C, right: C) -> bool {
    let lefts = warp::warp_vote_ballot(warp::FULL_MASK, left < right);
    let rights = warp::warp_vote_ballot(warp::FULL_MASK, right < left);
    rights.count_ones() > lefts.count_ones()
}

#[inline(always)]
unsafe fn any(is: bool) -> bool {
    warp::warp_vote_any(warp::FULL_MASK, is)
}

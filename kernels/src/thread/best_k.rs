//! The k nearest neighbors of one query, kept as a heap in a row of device memory, for any k.

use crate::thread::coord::Float;
use cuda_std::prelude::*;

/// A max-heap over (squared distance, id), whose storage is the query's row of the result.
///
/// The root is the worst of the kept neighbors. [`finish`](Self::finish) turns the row into the result: sorted, and
/// padded with infinity and `u32::MAX`.
pub struct BestK<'a, C> {
    dist2: SliceMut<'a, C>,
    ids: SliceMut<'a, u32>,
    len: usize,
    /// The squared distance that a candidate must not exceed.
    bound: C,
}

impl<'a, C: Float> BestK<'a, C> {
    /// Creates an empty heap in a row of the result. Both views have k elements, k > 0. Candidates beyond `bound` are
    /// rejected.
    #[inline(always)]
    pub fn new(dist2: SliceMut<'a, C>, ids: SliceMut<'a, u32>, bound: C) -> Self {
        Self { dist2, ids, len: 0, bound }
    }

    /// Takes the candidates that [`finish`](Self::finish) has left in the row.
    ///
    /// # Safety
    /// No other thread accesses the row, which `finish` has written.
    #[inline(always)]
    pub unsafe fn resume(&mut self) {
        while self.len < self.ids.len() && self.ids.load(self.len) != u32::MAX {
            self.len += 1;
        }
        // Backwards, so that no candidate is worse than its parent.
        for i in 0..self.len / 2 {
            let other = self.len - 1 - i;
            let (dist2, id) = (self.dist2.load(i), self.ids.load(i));
            self.put(i, self.dist2.load(other), self.ids.load(other));
            self.put(other, dist2, id);
        }
        if self.len == self.ids.len() {
            self.bound = self.dist2.load(0);
        }
    }

    /// Returns the k-th best squared distance so far, or the initial bound while there are fewer than k candidates. A
    /// candidate at exactly this distance can still win by a smaller id.
    #[inline(always)]
    pub fn bound(&self) -> C {
        self.bound
    }

    /// Returns the id of the k-th best candidate so far, or `u32::MAX` while there are fewer than k.
    ///
    /// # Safety
    /// No other thread accesses the row.
    #[inline(always)]
    pub unsafe fn worst_id(&self) -> u32 {
        if self.len < self.ids.len() { u32::MAX } else { self.ids.load(0) }
    }

    /// Adds a candidate if it belongs to the k best.
    ///
    /// # Safety
    /// No other thread accesses the row.
    #[inline(always)]
    pub unsafe fn offer(&mut self, dist2: C, id: u32) {
        if self.len < self.ids.len() {
            self.sift_up(self.len, dist2, id);
            self.len += 1;
            if self.len == self.ids.len() {
                self.bound = self.dist2.load(0);
            }
        } else if before((dist2, id), (self.bound, self.ids.load(0))) {
            self.sift_down(self.len, dist2, id);
            self.bound = self.dist2.load(0);
        }
    }

    /// Sorts the row and pads it to k entries.
    ///
    /// # Safety
    /// As [`offer`](Self::offer).
    #[inline(always)]
    pub unsafe fn finish(self) {
        let mut end = self.len;
        while end > 1 {
            end -= 1;
            let (dist2, id) = (self.dist2.load(end), self.ids.load(end));
            self.put(end, self.dist2.load(0), self.ids.load(0));
            self.sift_down(end, dist2, id);
        }
        for i in self.len..self.ids.len() {
            self.put(i, C::INFINITY, u32::MAX);
        }
    }

    #[inline(always)]
    unsafe fn put(&self, i: usize, dist2: C, id: u32) {
        self.dist2.store(i, dist2);
        self.ids.store(i, id);
    }

    /// Moves `hole` up until an item fits, and stores the item there.
    #[inline(always)]
    unsafe fn sift_up(&self, mut hole: usize, dist2: C, id: u32) {
        while hole > 0 {
            let parent = (hole - 1) / 2;
            let (parent_dist2, parent_id) = (self.dist2.load(parent), self.ids.load(parent));
            if !before((parent_dist2, parent_id), (dist2, id)) {
                break;
            }
            self.put(hole, parent_dist2, parent_id);
            hole = parent;
        }
        self.put(hole, dist2, id);
    }

    /// Moves a hole down from the root of a heap of `end` items until an item fits, and stores the item there.
    #[inline(always)]
    unsafe fn sift_down(&self, end: usize, dist2: C, id: u32) {
        let mut hole = 0;
        loop {
            let mut child = 2 * hole + 1;
            if child >= end {
                break;
            }
            let mut worse = (self.dist2.load(child), self.ids.load(child));
            if child + 1 < end {
                let right = (self.dist2.load(child + 1), self.ids.load(child + 1));
                if before(worse, right) {
                    worse = right;
                    child += 1;
                }
            }
            if !before((dist2, id), worse) {
                break;
            }
            self.put(hole, worse.0, worse.1);
            hole = child;
        }
        self.put(hole, dist2, id);
    }
}

/// Returns true if neighbor `a` precedes `b`: by distance, then by id.
#[inline(always)]
pub fn before<C: Float>(a: (C, u32), b: (C, u32)) -> bool {
    a.0 < b.0 || (a.0 == b.0 && a.1 < b.1)
}

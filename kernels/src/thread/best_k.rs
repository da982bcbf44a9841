//! The k nearest neighbors of one query, kept as a heap in a row of device memory, for any k.

use super::coord::Coord;
use super::heap::MaxHeap;
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

impl<'a, C: Coord> BestK<'a, C> {
    /// Creates an empty heap in a row of the result. Both views have k elements, k > 0. Candidates beyond `bound` are
    /// rejected.
    #[inline(always)]
    pub fn new(dist2: SliceMut<'a, C>, ids: SliceMut<'a, u32>, bound: C) -> Self {
        Self { dist2, ids, len: 0, bound }
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
            self.sift_up(self.len, (dist2, id));
            self.len += 1;
            if self.len == self.ids.len() {
                self.bound = self.dist2.load(0);
            }
        } else if Self::is_before((dist2, id), (self.bound, self.ids.load(0))) {
            self.sift_down(self.len, (dist2, id));
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
            let last = self.load(end);
            self.store(end, self.load(0));
            self.sift_down(end, last);
        }
        for i in self.len..self.ids.len() {
            self.store(i, (C::INFINITY, u32::MAX));
        }
    }
}

impl<C: Coord> MaxHeap for BestK<'_, C> {
    type Item = (C, u32);

    #[inline(always)]
    unsafe fn load(&self, i: usize) -> (C, u32) {
        (self.dist2.load(i), self.ids.load(i))
    }
    #[inline(always)]
    unsafe fn store(&self, i: usize, (dist2, id): (C, u32)) {
        self.dist2.store(i, dist2);
        self.ids.store(i, id);
    }
    #[inline(always)]
    fn is_before(a: (C, u32), b: (C, u32)) -> bool {
        a.0 < b.0 || (a.0 == b.0 && a.1 < b.1)
    }
}

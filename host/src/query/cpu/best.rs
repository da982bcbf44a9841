//! Keeping the k best of the points offered, by (distance, id).

use kauri_kernels::thread::coord::{Coord, Float};
use std::collections::BinaryHeap;

/// The k best so far, by (distance, id).
pub(crate) trait Best<C: Float> {
    /// The distance of the worst of the best points; while there are fewer than k, the largest accepted distance.
    fn worst(&self) -> C;
    /// The id of the worst of the best points; while there are fewer than k, the largest id.
    fn worst_id(&self) -> u32;
    /// True if a point at `distance` with `id` can be among the best points.
    #[inline(always)]
    fn may_take(&self, distance: C, id: u32) -> bool {
        let worst = self.worst();
        distance < worst || (distance == worst && id < self.worst_id())
    }
    /// Takes a point if it is among the best. Its distance is at most [`Best::worst`].
    fn offer(&mut self, distance: C, id: u32);
}

/// A row of the result that is kept sorted. It starts as padding, which comes after every point.
pub(crate) struct SortedRow<'a, C> {
    pub(crate) ids: &'a mut [u32],
    pub(crate) distances: &'a mut [C],
    /// The largest accepted distance.
    pub(crate) bound: C,
}

impl<C: Float> Best<C> for SortedRow<'_, C> {
    #[inline(always)]
    fn worst(&self) -> C {
        self.distances[self.distances.len() - 1].min(self.bound)
    }

    #[inline(always)]
    fn worst_id(&self) -> u32 {
        self.ids[self.ids.len() - 1]
    }

    #[inline(always)]
    fn offer(&mut self, distance: C, id: u32) {
        let mut slot = self.ids.len() - 1;
        if distance == self.distances[slot] && id > self.ids[slot] {
            return;
        }
        while slot > 0 {
            let (before, before_id) = (self.distances[slot - 1], self.ids[slot - 1]);
            if before < distance || (before == distance && before_id < id) {
                break;
            }
            (self.distances[slot], self.ids[slot]) = (before, before_id);
            slot -= 1;
        }
        (self.distances[slot], self.ids[slot]) = (distance, id);
    }
}

/// A heap of at most `len` candidates, the worst on top.
pub(crate) struct BoundedHeap<C: Float> {
    pub(crate) heap: BinaryHeap<Candidate<C>>,
    pub(crate) len: usize,
    pub(crate) bound: C,
}

impl<C: Float> Best<C> for BoundedHeap<C> {
    #[inline(always)]
    fn worst(&self) -> C {
        if self.heap.len() < self.len {
            self.bound
        } else {
            self.heap.peek().map_or(self.bound, |&(key, _)| C::from_key(key))
        }
    }

    #[inline(always)]
    fn worst_id(&self) -> u32 {
        if self.heap.len() < self.len { u32::MAX } else { self.heap.peek().map_or(u32::MAX, |&(_, id)| id) }
    }

    fn offer(&mut self, distance: C, id: u32) {
        let candidate = (distance.key(), id);
        if self.heap.len() < self.len {
            self.heap.push(candidate);
        } else if let Some(mut top) = self.heap.peek_mut()
            && candidate < *top
        {
            *top = candidate;
        }
    }
}

impl<C: Float> BoundedHeap<C> {
    /// Writes the candidates in order to the front of a row and returns the empty heap with its memory.
    pub(crate) fn write(self, ids: &mut [u32], distances: &mut [C]) -> BinaryHeap<Candidate<C>> {
        let mut sorted = self.heap.into_sorted_vec();
        for (&(key, found), (id, distance)) in sorted.iter().zip(ids.iter_mut().zip(distances)) {
            (*id, *distance) = (found, C::from_key(key));
        }
        sorted.clear();
        sorted.into()
    }
}

/// The key of a distance, and an id: points found, ordered by (distance, id).
pub(crate) type Candidate<C> = (<C as Coord>::Key, u32);

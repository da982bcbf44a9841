//! Keeping the k best of the points offered, by (distance, id).

use kauri_kernels::thread::coord::{Coord, Float};
use std::collections::BinaryHeap;

/// The k best so far, by (distance, id).
pub(crate) trait Best<C: Float> {
    /// True if only one point is kept.
    const IS_ONE: bool;
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

/// The best point alone.
pub(crate) struct Nearest<C> {
    pub(crate) id: u32,
    pub(crate) distance: C,
    /// The largest accepted distance, or the distance of the best point.
    worst: C,
}

impl<C: Float> Nearest<C> {
    /// Starts with padding; `bound` is the largest accepted distance.
    pub(crate) fn new(bound: C) -> Self {
        Self { id: u32::MAX, distance: C::INFINITY, worst: bound }
    }
}

impl<C: Float> Best<C> for Nearest<C> {
    const IS_ONE: bool = true;

    #[inline(always)]
    fn worst(&self) -> C {
        self.worst
    }

    #[inline(always)]
    fn worst_id(&self) -> u32 {
        self.id
    }

    #[inline(always)]
    fn offer(&mut self, distance: C, id: u32) {
        if distance < self.distance || id < self.id {
            *self = Self { id, distance, worst: distance };
        }
    }
}

/// Up to this `k` the best points are kept as a sorted row; shifting a short row beats a heap.
pub(crate) const MAX_SORTED_K: usize = 64;

/// A sorted row of up to [`MAX_SORTED_K`] points. It starts as padding, which comes after every point.
pub(crate) struct SortedRow<C> {
    ids: [u32; MAX_SORTED_K],
    distances: [C; MAX_SORTED_K],
    len: usize,
    /// The largest accepted distance.
    bound: C,
    worst: C,
}

impl<C: Float> SortedRow<C> {
    pub(crate) fn new() -> Self {
        let (ids, distances) = ([u32::MAX; MAX_SORTED_K], [C::INFINITY; MAX_SORTED_K]);
        Self { ids, distances, len: 0, bound: C::ZERO, worst: C::ZERO }
    }

    /// Starts a row of `len` entries, at least one; `bound` is the largest accepted distance.
    pub(crate) fn start(&mut self, len: usize, bound: C) {
        self.ids[..len].fill(u32::MAX);
        self.distances[..len].fill(C::INFINITY);
        (self.len, self.bound, self.worst) = (len, bound, bound);
    }

    /// Returns the ids and the distances of the row.
    pub(crate) fn get(&self) -> (&[u32], &[C]) {
        (&self.ids[..self.len], &self.distances[..self.len])
    }
}

impl<C: Float> Best<C> for SortedRow<C> {
    const IS_ONE: bool = false;

    #[inline(always)]
    fn worst(&self) -> C {
        self.worst
    }

    #[inline(always)]
    fn worst_id(&self) -> u32 {
        self.ids[self.len - 1]
    }

    #[inline(always)]
    fn offer(&mut self, distance: C, id: u32) {
        let Self { ids, distances, .. } = self;
        let last = (self.len - 1) % MAX_SORTED_K;
        if distance == distances[last] && id > ids[last] {
            return;
        }
        let mut slot = last;
        while slot > 0 && distances[slot - 1] > distance {
            (distances[slot], ids[slot]) = (distances[slot - 1], ids[slot - 1]);
            slot -= 1;
        }
        while slot > 0 && distances[slot - 1] == distance && ids[slot - 1] > id {
            (distances[slot], ids[slot]) = (distances[slot - 1], ids[slot - 1]);
            slot -= 1;
        }
        (distances[slot], ids[slot]) = (distance, id);
        let worst = distances[last];
        self.worst = if worst < self.bound { worst } else { self.bound };
    }
}

/// A heap of at most `len` candidates, the worst on top.
pub(crate) struct BoundedHeap<C: Float> {
    pub(crate) heap: BinaryHeap<Candidate<C>>,
    pub(crate) len: usize,
    pub(crate) bound: C,
}

impl<C: Float> Best<C> for BoundedHeap<C> {
    const IS_ONE: bool = false;

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

//! Nearest neighbors on the CPU: every query walks the tree on its own, many at a time.

use kauri_kernels::thread::coord::Coord;
use std::collections::BinaryHeap;
use std::mem::MaybeUninit;

use crate::error::Result;
use crate::memory::Parts;
use crate::query::cpu::best::{Best, BoundedHeap, Candidate, SortedRow};
use crate::query::cpu::order::{self, Order};
use crate::query::cpu::traversal::{Rules, Traversable};

/// Up to this k the best are kept as a sorted row; shifting a short row beats a heap.
const MAX_SORTED_K: usize = 64;

/// What is asked for.
#[derive(Clone)]
pub(crate) struct NearestQuery<'a, C, const D: usize> {
    pub(crate) rules: Rules<'a, C, D>,
    pub(crate) k: usize,
    /// Query `i` leaves out this point and `i` on.
    pub(crate) first_left_out: Option<u32>,
}

impl<C: Coord, const D: usize> NearestQuery<'_, C, D> {
    /// True if there is nothing beside the k nearest, up to a distance.
    fn is_plain(&self) -> bool {
        self.rules.are_plain() && self.first_left_out.is_none()
    }
}

/// Fills rows of `k` neighbors into the two vectors, which come empty and with room for them.
pub(crate) fn nearest<C: Coord, const D: usize>(
    tree: impl Traversable<C, D>,
    queries: &[[C; D]],
    asked: &NearestQuery<'_, C, D>,
    mut ids: Vec<u32>,
    mut distances: Vec<C>,
) -> Result<(Vec<u32>, Vec<C>)> {
    let k = asked.k;
    let entries = queries.len() * k;
    if entries == 0 {
        return Ok((ids, distances));
    }
    let id_rows = Parts::new(&mut ids.spare_capacity_mut()[..entries]);
    let distance_rows = Parts::new(&mut distances.spare_capacity_mut()[..entries]);
    for rows in order::blocks(queries.len(), order::MAX_ORDERED) {
        Order::new(tree, rows, |row| &queries[row])?.map(|_, rows| {
            let mut search = Search::new(tree, asked);
            for row in rows.iter() {
                let entries = row * k..(row + 1) * k;
                // SAFETY: an order has every row once, so no two threads write the same, and there are as many as queries.
                let (ids, distances) =
                    unsafe { (id_rows.part(entries.clone()), distance_rows.part(entries)) };
                search.run(&queries[row], row, ids, distances);
            }
        });
    }
    // SAFETY: all of the rows have been written, and the slices above have shown that the capacity is there.
    unsafe {
        ids.set_len(entries);
        distances.set_len(entries);
    }
    Ok((ids, distances))
}

/// Writes the nearest points of one query over padding.
pub(crate) fn nearest_of_one<C: Coord, const D: usize>(
    tree: impl Traversable<C, D>,
    query: &[C; D],
    asked: &NearestQuery<'_, C, D>,
    ids: &mut [u32],
    distances: &mut [C],
) {
    Search::new(tree, asked).find(query, 0, ids, distances);
}

/// What one thread needs for its queries.
struct Search<'a, C: Coord, T: Traversable<C, D>, const D: usize> {
    tree: T,
    asked: &'a NearestQuery<'a, C, D>,
    stack: T::Stack,
    heap: BinaryHeap<Candidate<C>>,
}

impl<'a, C: Coord, T: Traversable<C, D>, const D: usize> Search<'a, C, T, D> {
    fn new(tree: T, asked: &'a NearestQuery<'a, C, D>) -> Self {
        Self { tree, asked, stack: T::Stack::default(), heap: BinaryHeap::new() }
    }

    /// Writes the row of a query, to its end.
    fn run(
        &mut self,
        query: &[C; D],
        number: usize,
        ids: &mut [MaybeUninit<u32>],
        distances: &mut [MaybeUninit<C>],
    ) {
        self.find(query, number, fill(ids, u32::MAX), fill(distances, C::INFINITY));
    }

    /// Writes the nearest points of a query over the padding of its row.
    fn find(&mut self, query: &[C; D], number: usize, ids: &mut [u32], distances: &mut [C]) {
        let (k, bound) = (self.asked.k, self.asked.rules.wanted.bound);
        let except = self.asked.first_left_out.map_or(u32::MAX, |first| first + number as u32);
        if k <= MAX_SORTED_K {
            self.walk(query, except, &mut SortedRow { ids, distances, bound });
        } else {
            let len = k.min(self.tree.points().len());
            let mut best = BoundedHeap { heap: std::mem::take(&mut self.heap), len, bound };
            self.walk(query, except, &mut best);
            self.heap = best.write(ids, distances);
        }
    }

    fn walk(&mut self, query: &[C; D], except: u32, best: &mut impl Best<C>) {
        let rules = &self.asked.rules;
        if self.asked.is_plain() {
            self.tree.nearest::<_, true>(rules, query, except, &mut self.stack, best);
        } else {
            self.tree.nearest::<_, false>(rules, query, except, &mut self.stack, best);
        }
    }
}

/// Writes `value` everywhere.
fn fill<T: Copy>(slice: &mut [MaybeUninit<T>], value: T) -> &mut [T] {
    for entry in slice.iter_mut() {
        entry.write(value);
    }
    // SAFETY: every entry has just been written.
    unsafe { slice.assume_init_mut() }
}

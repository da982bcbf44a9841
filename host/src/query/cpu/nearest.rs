//! Nearest queries on the CPU: one traversal per query, many in parallel.

use kauri_kernels::thread::coord::Coord;
use std::collections::BinaryHeap;
use std::mem::MaybeUninit;

use crate::error::Result;
use crate::memory::Parts;
use crate::query::cpu::best::{Best, BoundedHeap, Candidate, SortedRow};
use crate::query::cpu::order::{self, Order};
use crate::query::cpu::traversal::{Rules, Traversable};

/// Up to this `k` the best points are kept as a sorted row; shifting a short row beats a heap.
const MAX_SORTED_K: usize = 64;

/// The parameters of nearest queries.
#[derive(Clone)]
pub(crate) struct NearestQuery<'a, C, const D: usize> {
    pub(crate) rules: Rules<'a, C, D>,
    pub(crate) k: usize,
    /// Query `i` excludes the point with this id plus `i`.
    pub(crate) first_excluded: Option<u32>,
}

impl<C: Coord, const D: usize> NearestQuery<'_, C, D> {
    /// True for the default options, apart from a largest distance.
    fn is_plain(&self) -> bool {
        self.rules.are_plain() && self.first_excluded.is_none()
    }
}

/// Writes rows of `k` neighbors to the two vectors, which are empty and have the capacity.
pub(crate) fn nearest<C: Coord, const D: usize>(
    tree: impl Traversable<C, D>,
    queries: &[[C; D]],
    nearest_query: &NearestQuery<'_, C, D>,
    mut ids: Vec<u32>,
    mut distances: Vec<C>,
) -> Result<(Vec<u32>, Vec<C>)> {
    let k = nearest_query.k;
    let entries = queries.len() * k;
    if entries == 0 {
        return Ok((ids, distances));
    }
    let id_rows = Parts::new(&mut ids.spare_capacity_mut()[..entries]);
    let distance_rows = Parts::new(&mut distances.spare_capacity_mut()[..entries]);
    for rows in order::blocks(queries.len(), order::MAX_ORDERED) {
        Order::new(tree, rows, |row| &queries[row])?.map(|_, rows| {
            let mut search = Search::new(tree, nearest_query);
            for row in rows.iter() {
                let entries = row * k..(row + 1) * k;
                // SAFETY: an order has every row once, so no two threads write the same, and there are as many as queries.
                let (ids, distances) =
                    unsafe { (id_rows.part(entries.clone()), distance_rows.part(entries)) };
                search.run(&queries[row], row, ids, distances);
            }
        });
    }
    // SAFETY: every row has been written, and the slices above show that the capacity is there.
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
    nearest_query: &NearestQuery<'_, C, D>,
    ids: &mut [u32],
    distances: &mut [C],
) {
    Search::new(tree, nearest_query).find(query, 0, ids, distances);
}

/// The working memory of one thread.
struct Search<'a, C: Coord, T: Traversable<C, D>, const D: usize> {
    tree: T,
    nearest_query: &'a NearestQuery<'a, C, D>,
    stack: T::Stack,
    heap: BinaryHeap<Candidate<C>>,
}

impl<'a, C: Coord, T: Traversable<C, D>, const D: usize> Search<'a, C, T, D> {
    fn new(tree: T, nearest_query: &'a NearestQuery<'a, C, D>) -> Self {
        Self { tree, nearest_query, stack: T::Stack::default(), heap: BinaryHeap::new() }
    }

    /// Writes the row of a query, with padding.
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
        let (k, bound) = (self.nearest_query.k, self.nearest_query.rules.options.bound);
        let excluded = self.nearest_query.first_excluded.map_or(u32::MAX, |first| first + number as u32);
        if k <= MAX_SORTED_K {
            self.traverse(query, excluded, &mut SortedRow { ids, distances, bound });
        } else {
            let len = k.min(self.tree.points().len());
            let mut best = BoundedHeap { heap: std::mem::take(&mut self.heap), len, bound };
            self.traverse(query, excluded, &mut best);
            self.heap = best.write(ids, distances);
        }
    }

    fn traverse(&mut self, query: &[C; D], excluded: u32, best: &mut impl Best<C>) {
        let rules = &self.nearest_query.rules;
        if self.nearest_query.is_plain() {
            self.tree.nearest::<_, true>(rules, query, excluded, &mut self.stack, best);
        } else {
            self.tree.nearest::<_, false>(rules, query, excluded, &mut self.stack, best);
        }
    }
}

/// Initializes a slice with `value`.
fn fill<T: Copy>(slice: &mut [MaybeUninit<T>], value: T) -> &mut [T] {
    for entry in slice.iter_mut() {
        entry.write(value);
    }
    // SAFETY: every entry has just been written.
    unsafe { slice.assume_init_mut() }
}

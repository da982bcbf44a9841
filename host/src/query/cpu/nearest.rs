//! Nearest queries on the CPU: one traversal per query, many in parallel.

use kauri_kernels::thread::coord::{Coord, Float};
use std::collections::BinaryHeap;
use std::mem::MaybeUninit;
use std::ops::Range;

use crate::error::Result;
use crate::memory::Parts;
use crate::parallel::Ranges;
use crate::query::backend::NearestRows;
use crate::query::cpu::best::{Best, BoundedHeap, Candidate, MAX_SORTED_K, Nearest, SortedRow};
use crate::query::cpu::order::{self, Order, Rows};
use crate::query::cpu::queries::PointQueries;
use crate::query::cpu::rules::PointQuery;
use crate::query::cpu::traversal::Traversable;

/// Writes rows of the `k` nearest points to the two vectors, which are empty and have the capacity.
pub(crate) fn nearest<C: Coord, const D: usize>(
    tree: impl Traversable<C, D>,
    queries: &PointQueries<'_, C, D>,
    k: usize,
    rows: NearestRows<C::Distance>,
) -> Result<NearestRows<C::Distance>> {
    let start_bucket = |query: usize| tree.start_bucket(&queries.points[query]);
    let order = |rows| Order::new(tree.num_points(), rows, &start_bucket);
    write_rows(queries.points.len(), k, rows, &order, &|batch, ids, distances| {
        let mut search = Search::new(tree, queries, k);
        order::load(batch.iter().map(|row| &queries.points[row]));
        for row in batch.iter() {
            let entries = row * k..(row + 1) * k;
            // SAFETY: an order has every row once, so no two threads write the same row; there are `k` entries for each row.
            let (ids, distances) = unsafe { (ids.part(entries.clone()), distances.part(entries)) };
            search.find(row, ids, distances);
        }
    })
}

/// Writes the ids and the distances of a batch of rows.
type FindRows<'a, C> = dyn Fn(Rows<'_>, &Parts<'_, u32>, &Parts<'_, C>) + Sync + 'a;

/// Writes rows of `k` neighbors in the order that `order` returns for some rows; `find` writes the rows of a batch.
fn write_rows<C: Float>(
    num_rows: usize,
    k: usize,
    (mut ids, mut distances): NearestRows<C>,
    order: &dyn Fn(Range<usize>) -> Result<Order>,
    find: &FindRows<'_, C>,
) -> Result<NearestRows<C>> {
    let entries = num_rows * k;
    if entries == 0 {
        return Ok((ids, distances));
    }
    let id_slots = Parts::new(&mut ids.spare_capacity_mut()[..entries]);
    let distance_slots = Parts::new(&mut distances.spare_capacity_mut()[..entries]);
    for rows in Ranges::new(num_rows, order::MAX_ORDERED).iter() {
        order(rows)?.for_each(&|_, batch| find(batch, &id_slots, &distance_slots));
    }
    // SAFETY: every row has been written, and the slices above show that the capacity is there.
    unsafe {
        ids.set_len(entries);
        distances.set_len(entries);
    }
    Ok((ids, distances))
}

/// Writes the nearest points of the first query.
pub(crate) fn nearest_of_one<C: Coord, const D: usize>(
    tree: impl Traversable<C, D>,
    queries: &PointQueries<'_, C, D>,
    k: usize,
    ids: &mut [u32],
    distances: &mut [C::Distance],
) {
    // SAFETY: a search initializes entries and leaves none uninitialized.
    let (ids, distances) = unsafe { (as_uninit(ids), as_uninit(distances)) };
    Search::new(tree, queries, k).find(0, ids, distances);
}

/// The working memory of one thread.
struct Search<'a, C: Coord, T: Traversable<C, D>, const D: usize> {
    tree: T,
    queries: &'a PointQueries<'a, C, D>,
    k: usize,
    stack: T::Stack,
    row: SortedRow<C::Distance>,
    heap: BinaryHeap<Candidate<C::Distance>>,
}

impl<'a, C: Coord, T: Traversable<C, D>, const D: usize> Search<'a, C, T, D> {
    fn new(tree: T, queries: &'a PointQueries<'a, C, D>, k: usize) -> Self {
        Self { tree, queries, k, stack: T::Stack::default(), row: SortedRow::new(), heap: BinaryHeap::new() }
    }

    /// Writes the nearest points of a query to its row.
    #[inline(never)]
    fn find(&mut self, row: usize, ids: &mut [MaybeUninit<u32>], distances: &mut [MaybeUninit<C::Distance>]) {
        let Self { tree, queries, k, stack, .. } = self;
        let (query, bound) = (queries.get(row), queries.rules.options.bound);
        if !queries.finds(row) {
            fill(ids, u32::MAX);
            fill(distances, C::Distance::INFINITY);
        } else if let ([id], [distance]) = (&mut *ids, &mut *distances) {
            let mut best = Nearest::new(bound);
            traverse(*tree, queries, query, stack, &mut best);
            id.write(best.id);
            distance.write(best.distance);
        } else if *k <= MAX_SORTED_K {
            self.row.start(*k, bound);
            traverse(*tree, queries, query, stack, &mut self.row);
            let (found_ids, found_distances) = self.row.get();
            ids.write_copy_of_slice(found_ids);
            distances.write_copy_of_slice(found_distances);
        } else {
            let len = tree.num_points().min(*k);
            let mut best = BoundedHeap { heap: std::mem::take(&mut self.heap), len, bound };
            traverse(*tree, queries, query, stack, &mut best);
            self.heap = best.write(fill(ids, u32::MAX), fill(distances, C::Distance::INFINITY));
        }
    }
}

/// Offers the points of a tree to `best`.
pub(crate) fn traverse<C: Coord, T: Traversable<C, D>, const D: usize>(
    tree: T,
    queries: &PointQueries<'_, C, D>,
    query: PointQuery<'_, C, D>,
    stack: &mut T::Stack,
    best: &mut impl Best<C::Distance>,
) {
    if queries.are_plain() {
        tree.nearest::<_, true>(query, stack, best);
    } else {
        tree.nearest::<_, false>(query, stack, best);
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

/// Views initialized items as items that are written.
///
/// # Safety
/// No item is made uninitialized through the result.
unsafe fn as_uninit<T: Copy>(items: &mut [T]) -> &mut [MaybeUninit<T>] {
    // SAFETY: both types have one layout; the rest is passed on to the caller.
    unsafe { &mut *(std::ptr::from_mut(items) as *mut [MaybeUninit<T>]) }
}

//! Nearest neighbours on the CPU: every query walks the tree on its own, many at a time.
//!
//! Queries that follow each other in memory may be far apart in space, and then every one of them reads its part of the
//! tree from distant memory. So large sets of queries are answered in the order of the tree's cells. For 1e6 random
//! queries in 1e6 points, `f64`, k = 5, that makes the whole call 1.8 times faster, in 2-D and in 3-D.

use kauri_kernels::kdtree::left_balanced::num_levels;
use kauri_kernels::thread::coord::Coord;
use rayon::prelude::*;
use std::collections::BinaryHeap;
use std::marker::PhantomData;
use std::mem::MaybeUninit;

use super::best::{Best, BoundedHeap, Candidate, SortedRow};
use super::walk::{Nodes, Rules, Stack, descend, walk};
use crate::error::Result;
use crate::memory;

/// Up to this many queries are answered on the calling thread.
const SEQUENTIAL: usize = 8;
/// Queries of one task at most.
const MAX_BATCH: usize = 256;
/// Queries are ordered where there are at least this many, and as many points.
const MIN_ORDERED: usize = 4096;
/// Queries that are ordered together; this bounds the memory of the order to 32 MiB.
const MAX_ORDERED: usize = 1 << 22;
/// Levels of the cells that queries are ordered by. The nodes above fit in a core's cache.
const MAX_ORDER_LEVELS: u32 = 15;
/// Up to this k the best are kept as a sorted row; shifting a short row beats a heap.
const MAX_SORTED_K: usize = 64;

/// What is asked for.
pub(super) struct Asked<'a, C, const D: usize> {
    pub(super) rules: Rules<'a, C, D>,
    pub(super) k: usize,
    /// Query `i` leaves out point `i`.
    pub(super) except_itself: bool,
}

impl<C: Coord, const D: usize> Asked<'_, C, D> {
    /// True if there is nothing beside the k nearest, up to a distance.
    fn is_plain(&self) -> bool {
        self.rules.wanted.is_euclidean() && self.rules.wanted.mask.is_none() && !self.except_itself
    }
}

/// Fills rows of `k` neighbours into the two vectors, which come empty and with room for them.
pub(super) fn nearest<C: Coord, const D: usize>(
    tree: Nodes<'_, C, D>,
    queries: &[[C; D]],
    asked: &Asked<'_, C, D>,
    mut ids: Vec<u32>,
    mut distances: Vec<C>,
) -> Result<(Vec<u32>, Vec<C>)> {
    let k = asked.k;
    let entries = queries.len() * k;
    if entries == 0 {
        return Ok((ids, distances));
    }
    let id_rows = &mut ids.spare_capacity_mut()[..entries];
    let distance_rows = &mut distances.spare_capacity_mut()[..entries];
    if queries.len() <= SEQUENTIAL {
        Search::new(tree, asked).run(queries, 0, id_rows, distance_rows);
    } else if queries.len() < MIN_ORDERED || tree.points.len() < MIN_ORDERED {
        let batch = batch_len(queries.len());
        queries
            .par_chunks(batch)
            .zip(id_rows.par_chunks_mut(batch * k))
            .zip(distance_rows.par_chunks_mut(batch * k))
            .enumerate()
            .for_each_init(
                || Search::new(tree, asked),
                |search, (i, ((queries, ids), distances))| search.run(queries, i * batch, ids, distances),
            );
    } else {
        let blocks = id_rows.chunks_mut(MAX_ORDERED * k).zip(distance_rows.chunks_mut(MAX_ORDERED * k));
        for (i, (queries, (ids, distances))) in queries.chunks(MAX_ORDERED).zip(blocks).enumerate() {
            nearest_in_order(tree, queries, i * MAX_ORDERED, asked, ids, distances)?;
        }
    }
    // SAFETY: all of the rows have been written, and the slices above have shown that the capacity is there.
    unsafe {
        ids.set_len(entries);
        distances.set_len(entries);
    }
    Ok((ids, distances))
}

/// Writes all rows of `queries`, of which the first is number `first`, in the order of the tree's cells.
fn nearest_in_order<C: Coord, const D: usize>(
    tree: Nodes<'_, C, D>,
    queries: &[[C; D]],
    first: usize,
    asked: &Asked<'_, C, D>,
    ids: &mut [MaybeUninit<u32>],
    distances: &mut [MaybeUninit<C>],
) -> Result<()> {
    let order = cell_order(tree, queries)?;
    let (ids, distances) = (Rows::new(ids, asked.k), Rows::new(distances, asked.k));
    order.par_chunks(batch_len(queries.len())).for_each_init(
        || Search::new(tree, asked),
        |search, batch| {
            for &query in batch {
                let query = query as u32 as usize;
                // SAFETY: the order names every query once, so no two threads write the same row, and there are as many
                // rows as queries.
                let (ids, distances) = unsafe { (ids.row(query), distances.row(query)) };
                search.run(&queries[query..=query], first + query, ids, distances);
            }
        },
    );
    Ok(())
}

/// The queries by the cell they are in: the cell in the high half, the query in the low half. At most [`MAX_ORDERED`].
fn cell_order<C: Coord, const D: usize>(tree: Nodes<'_, C, D>, queries: &[[C; D]]) -> Result<Vec<u64>> {
    let levels = MAX_ORDER_LEVELS.min(num_levels(tree.points.len() as u32) - 1);
    let mut order = memory::vec_with_capacity(queries.len(), "order of the queries")?;
    let cell = |(i, query): (usize, &[C; D])| (descend(tree, query, levels) as u64) << 32 | i as u64;
    queries.par_iter().enumerate().map(cell).collect_into_vec(&mut order);
    order.par_sort_unstable();
    Ok(order)
}

/// Small enough for every thread to get several batches.
fn batch_len(queries: usize) -> usize {
    (queries / (8 * rayon::current_num_threads())).clamp(1, MAX_BATCH)
}

/// The rows of a matrix, written by several threads.
struct Rows<'a, T> {
    start: *mut MaybeUninit<T>,
    rows: usize,
    k: usize,
    matrix: PhantomData<&'a mut [MaybeUninit<T>]>,
}

// SAFETY: a shared `Rows` gives access only through `row`, whose caller keeps threads to different rows.
unsafe impl<T: Send> Sync for Rows<'_, T> {}

impl<'a, T> Rows<'a, T> {
    fn new(matrix: &'a mut [MaybeUninit<T>], k: usize) -> Self {
        Self { start: matrix.as_mut_ptr(), rows: matrix.len() / k, k, matrix: PhantomData }
    }

    /// # Safety
    /// `row` is a row of the matrix, and no other reference to it is in use.
    #[allow(clippy::mut_from_ref)]
    unsafe fn row(&self, row: usize) -> &'a mut [MaybeUninit<T>] {
        debug_assert!(row < self.rows);
        // SAFETY: the row is inside the matrix, which is borrowed for 'a, and the caller has it alone.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(row * self.k), self.k) }
    }
}

/// What one thread needs for its queries.
struct Search<'a, C: Coord, const D: usize> {
    tree: Nodes<'a, C, D>,
    asked: &'a Asked<'a, C, D>,
    stack: Stack<C, D>,
    heap: BinaryHeap<Candidate<C>>,
}

impl<'a, C: Coord, const D: usize> Search<'a, C, D> {
    fn new(tree: Nodes<'a, C, D>, asked: &'a Asked<'a, C, D>) -> Self {
        Self { tree, asked, stack: Stack::new(), heap: BinaryHeap::new() }
    }

    /// Writes the rows of `queries`, of which the first is number `first`, all of them to the end.
    fn run(
        &mut self,
        queries: &[[C; D]],
        first: usize,
        ids: &mut [MaybeUninit<u32>],
        distances: &mut [MaybeUninit<C>],
    ) {
        let (k, bound) = (self.asked.k, self.asked.rules.wanted.bound);
        let ids = fill(ids, u32::MAX);
        let distances = fill(distances, C::INFINITY);
        let rows = ids.chunks_exact_mut(k).zip(distances.chunks_exact_mut(k));
        for ((query, number), (ids, distances)) in queries.iter().zip(first..).zip(rows) {
            let except = if self.asked.except_itself { number as u32 } else { u32::MAX };
            if k <= MAX_SORTED_K {
                self.walk(query, except, &mut SortedRow { ids, distances, bound });
            } else {
                let len = k.min(self.tree.points.len());
                let mut best = BoundedHeap { heap: std::mem::take(&mut self.heap), len, bound };
                self.walk(query, except, &mut best);
                self.heap = best.write(ids, distances);
            }
        }
    }

    fn walk(&mut self, query: &[C; D], except: u32, best: &mut impl Best<C>) {
        let rules = &self.asked.rules;
        if self.asked.is_plain() {
            walk::<C, D, true>(self.tree, rules, query, except, &mut self.stack, best);
        } else {
            walk::<C, D, false>(self.tree, rules, query, except, &mut self.stack, best);
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

//! Rows of a result, by many threads in the order of the tree's cells.
//!
//! Queries that follow each other in memory may be far apart in space, and then every one of them reads its part of the tree
//! from distant memory. So large sets of queries are answered in the order of the tree's cells. For 1e6 random queries in 1e6
//! points, `f64`, k = 5, that makes the whole call 1.8 times faster, in 2-D and in 3-D.

use kauri_kernels::thread::coord::Coord;
use rayon::prelude::*;
use std::ops::Range;

use crate::error::Result;
use crate::memory;
use crate::query::cpu::traversal::Traversable;

/// Up to this many rows are made on the calling thread.
const SEQUENTIAL: usize = 8;
/// Rows of one task at most.
const MAX_BATCH: usize = 256;
/// Rows are ordered where there are at least this many, and as many points.
const MIN_ORDERED: usize = 4096;
/// Rows that are ordered together at most; this bounds the memory of the order to 32 MiB.
pub(crate) const MAX_ORDERED: usize = 1 << 22;

/// All rows, in blocks of at most so many, that have an order each.
pub(crate) fn blocks(num_rows: usize, max: usize) -> impl Iterator<Item = Range<usize>> {
    (0..num_rows).step_by(max).map(move |begin| begin..num_rows.min(begin + max))
}

/// Some rows, and the order in which they are made.
pub(crate) struct Order {
    /// The first row.
    begin: usize,
    /// The cell of each in the high half, if they are enough to go by it, and its place among the rows in the low half.
    by_cell: Vec<u64>,
}

impl Order {
    /// Of rows that look at the tree around a place each; at most [`MAX_ORDERED`].
    pub(crate) fn new<'a, C: Coord, const D: usize>(
        tree: impl Traversable<C, D>,
        rows: Range<usize>,
        place: impl Fn(usize) -> &'a [C; D] + Sync,
    ) -> Result<Self> {
        debug_assert!(rows.len() <= MAX_ORDERED);
        let (begin, rows) = (rows.start, 0..rows.len() as u64);
        let mut by_cell = memory::vec_with_capacity(rows.end as usize, "order of the queries")?;
        if rows.end < MIN_ORDERED as u64 || tree.points().len() < MIN_ORDERED {
            by_cell.extend(rows);
        } else {
            let cell = |i: usize| u64::from(tree.start_bucket(place(begin + i))) << 32 | i as u64;
            (0..rows.end as usize).into_par_iter().map(cell).collect_into_vec(&mut by_cell);
            by_cell.par_sort_unstable();
        }
        Ok(Self { begin, by_cell })
    }

    /// What is made of each batch of rows, which are the same every time; on the calling thread if rows are few.
    pub(crate) fn map<R: Send>(&self, make: impl Fn(usize, Rows<'_>) -> R + Sync) -> Vec<R> {
        let make = |(i, by_cell)| make(i, Rows { begin: self.begin, by_cell });
        if self.by_cell.len() <= SEQUENTIAL {
            self.by_cell.chunks(SEQUENTIAL).enumerate().map(make).collect()
        } else {
            // Small enough for every thread to get several.
            let batch = (self.by_cell.len() / (8 * rayon::current_num_threads())).clamp(1, MAX_BATCH);
            self.by_cell.par_chunks(batch).enumerate().map(make).collect()
        }
    }
}

/// The rows of a batch.
#[derive(Clone, Copy)]
pub(crate) struct Rows<'a> {
    begin: usize,
    by_cell: &'a [u64],
}

impl Rows<'_> {
    pub(crate) fn len(&self) -> usize {
        self.by_cell.len()
    }

    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = usize> {
        self.by_cell.iter().map(|&row| self.begin + row as u32 as usize)
    }
}

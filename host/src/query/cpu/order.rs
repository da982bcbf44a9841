//! Processes the rows of a result on many threads in the order of the tree's cells.
//!
//! Consecutive queries may be far apart in space; then each of them reads another part of the tree from memory. Large sets of queries are
//! therefore processed by start bucket. For 1e6 random queries in 1e6 points, `f64`, k = 5, that makes the whole call 1.8 times faster,
//! in 2-D and in 3-D.

use kauri_kernels::thread::coord::Coord;
use rayon::prelude::*;
use std::ops::Range;

use crate::error::Result;
use crate::memory;
use crate::query::cpu::traversal::Traversable;

/// Up to this many rows are processed on the calling thread.
const SEQUENTIAL: usize = 8;
/// Maximum rows of one task.
const MAX_BATCH: usize = 256;
/// Rows are sorted if there are at least this many rows and points.
const MIN_ORDERED: usize = 4096;
/// Maximum rows that are sorted together; this limits the memory of the order to 32 MiB.
pub(crate) const MAX_ORDERED: usize = 1 << 22;

/// Splits the rows into blocks of at most `max`, each with its own order.
pub(crate) fn blocks(num_rows: usize, max: usize) -> impl Iterator<Item = Range<usize>> {
    (0..num_rows).step_by(max).map(move |begin| begin..num_rows.min(begin + max))
}

/// Some rows, and the order in which they are processed.
pub(crate) struct Order {
    /// The first row.
    begin: usize,
    /// For each row its start bucket in the high half if the rows are sorted, otherwise 0, and its position among the rows in the low half.
    by_cell: Vec<u64>,
}

impl Order {
    /// Orders at most [`MAX_ORDERED`] rows, each of which reads the tree around the location that `location` returns.
    pub(crate) fn new<'a, C: Coord, const D: usize>(
        tree: impl Traversable<C, D>,
        rows: Range<usize>,
        location: impl Fn(usize) -> &'a [C; D] + Sync,
    ) -> Result<Self> {
        debug_assert!(rows.len() <= MAX_ORDERED);
        let (begin, rows) = (rows.start, 0..rows.len() as u64);
        let mut by_cell = memory::vec_with_capacity(rows.end as usize, "order of the queries")?;
        if rows.end < MIN_ORDERED as u64 || tree.points().len() < MIN_ORDERED {
            by_cell.extend(rows);
        } else {
            let cell = |i: usize| u64::from(tree.start_bucket(location(begin + i))) << 32 | i as u64;
            (0..rows.end as usize).into_par_iter().map(cell).collect_into_vec(&mut by_cell);
            by_cell.par_sort_unstable();
        }
        Ok(Self { begin, by_cell })
    }

    /// Calls `make` for each batch of rows and returns the results; on the calling thread if rows are few. Batches are the same in every
    /// call.
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

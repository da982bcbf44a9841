//! Processes the rows of a result on many threads in the order of the tree's cells.
//!
//! Consecutive queries may be far apart in space; then each of them reads another part of the tree from memory. Large sets of queries are
//! therefore processed by start bucket, which makes the whole call faster.

use rayon::prelude::*;
use std::hint::black_box;
use std::ops::Range;

use kauri_kernels::thread::coord::Coord;

use crate::error::Result;
use crate::memory;
use crate::parallel::{self, Ranges};

/// Up to this many rows are processed on the calling thread.
const SEQUENTIAL: usize = 8;
/// Maximum rows of one task.
const MAX_BATCH: usize = 256;
/// Rows are sorted if there are at least this many rows and points.
const MIN_ORDERED: usize = 4096;
/// Maximum rows that are sorted together; this limits the memory of the order to 32 MiB.
pub(crate) const MAX_ORDERED: usize = 1 << 22;

/// Some rows, and the order in which they are processed.
pub(crate) struct Order {
    /// The first row.
    begin: usize,
    /// For each row its start bucket in the high half if the rows are sorted, otherwise 0, and its position among the rows in the low half.
    by_cell: Vec<u64>,
    batches: Ranges,
}

impl Order {
    /// Orders at most [`MAX_ORDERED`] rows of queries to a tree of `num_points` points; `start_bucket` returns the start bucket of a row.
    pub(crate) fn new(
        num_points: usize,
        rows: Range<usize>,
        start_bucket: &(dyn Fn(usize) -> u32 + Sync),
    ) -> Result<Self> {
        debug_assert!(rows.len() <= MAX_ORDERED);
        let (begin, len) = (rows.start, rows.len());
        let mut by_cell = memory::vec_with_capacity(len, "order of the queries")?;
        if len < MIN_ORDERED || num_points < MIN_ORDERED {
            by_cell.extend(0..len as u64);
        } else {
            let cell = |i: usize| u64::from(start_bucket(begin + i)) << 32 | i as u64;
            parallel::extend(&mut by_cell, len, MAX_BATCH, cell);
            by_cell.par_sort_unstable();
        }
        // Small enough for every thread to get several batches.
        let batches =
            if len <= SEQUENTIAL { Ranges::new(len, SEQUENTIAL) } else { Ranges::even(len, MAX_BATCH) };
        Ok(Self { begin, by_cell, batches })
    }

    /// Number of batches of rows.
    pub(crate) fn num_batches(&self) -> usize {
        self.batches.num()
    }

    /// Calls `task` for each batch of rows with its number; on the calling thread if rows are few.
    pub(crate) fn for_each(&self, task: &(dyn Fn(usize, Rows<'_>) + Sync)) {
        parallel::for_each(self.batches.num(), &|i| {
            task(i, Rows { begin: self.begin, by_cell: &self.by_cell[self.batches.get(i)] });
        });
    }
}

/// Loads the queries of a batch into the cache. They are far apart in memory: here their loads overlap, whereas each query of a
/// traversal would wait for its own.
pub(crate) fn load<'a, C: Coord, const D: usize>(queries: impl Iterator<Item = &'a [C; D]>) {
    black_box(queries.fold(true, |all, query| all & (query[0] <= C::ZERO)));
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

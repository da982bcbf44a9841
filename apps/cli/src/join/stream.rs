//! Converts the batches of a join to batches of a table of pairs.

use rayon::prelude::*;
use std::ops::ControlFlow;

use crate::tables::Item;
use kauri::io::{Pairs, TakePairs};
use kauri::{Batches, Error, Result};

/// Pairs in a batch, unless a single row has more.
pub(super) const PAIRS: usize = 1 << 18;

/// Returns batches of [`PAIRS`] items, or of one row if `most_of_row` is larger; an item has `item_bytes`.
pub(super) fn batches(most_of_row: usize, item_bytes: u64) -> Batches<'static> {
    Batches::new().bytes(item_bytes.saturating_mul(PAIRS.max(most_of_row) as u64))
}

/// Returns the distances of pairs of rows.
pub(super) fn distances<T: Item>([left, right]: [&[T]; 2], rows: &[[u32; 2]]) -> Vec<f64> {
    rows.par_iter().map(|&[l, r]| left[l as usize].distance(&right[r as usize])).collect()
}

/// Collects the pairs of a batch and passes them on with their distances.
pub(super) struct PairStream<'p, 't, 'f, T> {
    sets: [&'p [T]; 2],
    has_distances: bool,
    take: &'t mut TakePairs<'f>,
    pub(super) rows: Vec<[u32; 2]>,
    has_batch: bool,
    result: Result<()>,
}

impl<'p, 't, 'f, T: Item> PairStream<'p, 't, 'f, T> {
    pub(super) fn new(sets: [&'p [T]; 2], has_distances: bool, take: &'t mut TakePairs<'f>) -> Self {
        Self { sets, has_distances, take, rows: Vec::new(), has_batch: false, result: Ok(()) }
    }

    /// Passes on the pairs in `rows` and clears it.
    pub(super) fn flush(&mut self) -> ControlFlow<()> {
        let distances = self.has_distances.then(|| distances(self.sets, &self.rows));
        self.result = (self.take)(Pairs { rows: &self.rows, distances: distances.as_deref(), scores: None });
        self.has_batch = true;
        self.rows.clear();
        if self.result.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    }

    /// Returns the error that ended the stream: that of the receiver of the pairs, or that of the join.
    pub(super) fn end<R>(mut self, joined: Result<R, Error>) -> Result<()> {
        if joined.is_ok() && !self.has_batch {
            // A table without pairs has columns, too.
            let _ = self.flush();
        }
        self.result.and(joined.map(drop))
    }
}

//! Converts the batches of a join to batches of a table of pairs.

use rayon::prelude::*;
use std::ops::ControlFlow;

use kauri::io::{Pairs, TakePairs};
use kauri::{Batches, Error, LonLat, Result};

/// Pairs in a batch, unless a single row has more.
pub(super) const PAIRS: usize = 1 << 18;

/// Returns batches of [`PAIRS`] items, or of one row if `most_of_row` is larger; an item has `item_bytes`.
pub(super) fn batches(most_of_row: usize, item_bytes: u64) -> Batches<'static> {
    Batches::new().bytes(item_bytes.saturating_mul(PAIRS.max(most_of_row) as u64))
}

/// Collects the pairs of a batch and passes them on with their distances.
pub(super) struct PairStream<'p, 't, 'f> {
    points: [&'p [LonLat]; 2],
    take: &'t mut TakePairs<'f>,
    pub(super) rows: Vec<[u32; 2]>,
    meters: Vec<f64>,
    result: Result<()>,
}

impl<'p, 't, 'f> PairStream<'p, 't, 'f> {
    pub(super) fn new(points: [&'p [LonLat]; 2], take: &'t mut TakePairs<'f>) -> Self {
        Self { points, take, rows: Vec::new(), meters: Vec::new(), result: Ok(()) }
    }

    /// Passes on the pairs in `rows` and clears it.
    pub(super) fn flush(&mut self) -> ControlFlow<()> {
        let [left, right] = self.points;
        let meters = |&[l, r]: &[u32; 2]| left[l as usize].meters_to(&right[r as usize]);
        self.rows.par_iter().map(meters).collect_into_vec(&mut self.meters);
        self.result = (self.take)(Pairs { rows: &self.rows, meters: &self.meters, scores: None });
        self.rows.clear();
        if self.result.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    }

    /// Returns the error that ended the stream: that of the receiver of the pairs, or that of the join.
    pub(super) fn end<T>(self, joined: Result<T, Error>) -> Result<()> {
        self.result.and(joined.map(drop))
    }
}

//! Converts the batches of a join to batches of a table of pairs.

use rayon::prelude::*;
use std::ops::ControlFlow;

use crate::items::Item;
use crate::tables::JoinTable;
use kauri::io::{NO_ROW, Pairs, TakePairs};
use kauri::{Batches, Error, Result};

/// Pairs in a batch, unless a single row has more.
pub(super) const PAIRS: usize = 1 << 18;

/// Returns batches of [`PAIRS`] items, or of one row if `most_of_row` is larger; an item has `item_bytes`.
pub(super) fn batches(most_of_row: usize, item_bytes: u64) -> Batches<'static> {
    Batches::new().bytes(item_bytes.saturating_mul(PAIRS.max(most_of_row) as u64))
}

/// Returns the distances of pairs of items, NaN if there is no right item.
pub(super) fn distances<T: Item>(tables: [&JoinTable<T>; 2], items: &[[u32; 2]]) -> Vec<f64> {
    let [left, right] = tables.map(|table| &table.items);
    let distance = |&[l, r]: &[u32; 2]| match r {
        NO_ROW => f64::NAN,
        r => left[l as usize].distance(&right[r as usize]),
    };
    items.par_iter().map(distance).collect()
}

/// Returns the rows of pairs of items.
pub(super) fn rows<T: Item>([left, right]: [&JoinTable<T>; 2], items: &[[u32; 2]]) -> Vec<[u32; 2]> {
    let right_row = |item| if item == NO_ROW { NO_ROW } else { right.row(item) };
    items.iter().map(|&[l, r]| [left.row(l), right_row(r)]).collect()
}

/// Collects the pairs of a batch and passes them on with their distances.
pub(super) struct PairStream<'p, 't, 'f, T> {
    tables: [&'p JoinTable<T>; 2],
    has_distances: bool,
    take: &'t mut TakePairs<'f>,
    /// The left and the right item of each pair; [`NO_ROW`] if there is no right item.
    pub(super) items: Vec<[u32; 2]>,
    has_batch: bool,
    result: Result<()>,
}

impl<'p, 't, 'f, T: Item> PairStream<'p, 't, 'f, T> {
    pub(super) fn new(
        tables: [&'p JoinTable<T>; 2],
        has_distances: bool,
        take: &'t mut TakePairs<'f>,
    ) -> Self {
        Self { tables, has_distances, take, items: Vec::new(), has_batch: false, result: Ok(()) }
    }

    /// Passes on the pairs of `items` and clears it.
    pub(super) fn flush(&mut self) -> ControlFlow<()> {
        let distances = self.has_distances.then(|| distances(self.tables, &self.items));
        let rows = rows(self.tables, &self.items);
        self.result = (self.take)(Pairs { rows: &rows, distances: distances.as_deref(), scores: None });
        self.has_batch = true;
        self.items.clear();
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

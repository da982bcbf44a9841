//! Rows of ids, the result of a join that finds all pairs.

use std::ops::{ControlFlow, Range};

/// Callback for a batch of rows: the number of the first row, the offsets, the ids.
pub(super) type VisitRows<'s> = dyn FnMut(usize, &[u64], &[u32]) -> ControlFlow<()> + 's;

/// A result of [`DistanceJoin`](super::DistanceJoin): for each point of one set a row with the ids of the points near it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JoinedRows {
    offsets: Vec<u64>,
    ids: Vec<u32>,
}

impl JoinedRows {
    pub(super) fn new(offsets: Vec<u64>, ids: Vec<u32>) -> Self {
        Self { offsets, ids }
    }

    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// True if there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns where each row begins in [`ids`](Self::ids), and where the last row ends.
    pub fn offsets(&self) -> &[u64] {
        &self.offsets
    }

    /// Returns the ids of all rows, row after row.
    pub fn ids(&self) -> &[u32] {
        &self.ids
    }

    /// Returns the ids of row `row`.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn row(&self, row: usize) -> &[u32] {
        &self.ids[self.offsets[row] as usize..self.offsets[row + 1] as usize]
    }

    /// Returns offsets and ids.
    pub fn into_parts(self) -> (Vec<u64>, Vec<u32>) {
        (self.offsets, self.ids)
    }
}

/// A batch of consecutive rows of a result. Row numbers are those of the whole result.
#[derive(Clone, Copy, Debug)]
pub struct RowsBatch<'a> {
    first_row: usize,
    offsets: &'a [u64],
    ids: &'a [u32],
}

impl<'a> RowsBatch<'a> {
    pub(super) fn new(first_row: usize, offsets: &'a [u64], ids: &'a [u32]) -> Self {
        Self { first_row, offsets, ids }
    }

    /// Returns the rows of the batch.
    pub fn rows(&self) -> Range<usize> {
        self.first_row..self.first_row + self.offsets.len() - 1
    }

    /// Returns where each row of the batch begins in [`ids`](Self::ids), and where the last row ends.
    pub fn offsets(&self) -> &'a [u64] {
        self.offsets
    }

    /// Returns the ids of all rows of the batch, row after row.
    pub fn ids(&self) -> &'a [u32] {
        self.ids
    }

    /// Returns the ids of row `row` of the whole result.
    ///
    /// # Panics
    /// If the row is not in the batch.
    pub fn row(&self, row: usize) -> &'a [u32] {
        let rows = self.rows();
        assert!(rows.contains(&row), "row {row} of a batch of the rows {rows:?}");
        let row = row - self.first_row;
        &self.ids[self.offsets[row] as usize..self.offsets[row + 1] as usize]
    }
}

//! Splits the rows of a result into batches of whole rows.
//!
//! The length of a row is known only after its items have been counted, so rows are counted in ranges. The leading rows of a range that
//! fit become a batch; the other rows are counted again as part of the next range. The length of a range follows from the rows before it
//! and does not depend on the device, so every device produces the same batches.

use crate::error::{Error, Result};
use crate::parallel::Ranges;
use std::ops::Range;

/// A range has at most this many times the rows of the previous batch, which bounds how often a row is counted on average.
const GROWTH: usize = 4;
/// Items per row that the first range assumes.
const INITIAL_ITEMS_PER_ROW: u64 = 32;
/// The part of a batch, in 32nds, that rows of the expected length are to fill.
const FILL_32NDS: u64 = 30;

/// The limits of one batch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Bytes of the items.
    pub(crate) bytes: u64,
    /// Number of rows, at least one.
    pub(crate) rows: usize,
}

impl Limits {
    /// Returns how many items of `item_bytes` bytes fit.
    fn items(&self, item_bytes: u64) -> u64 {
        self.bytes / item_bytes
    }

    /// Returns the error for a row that exceeds a whole batch.
    fn too_large(&self, row: usize, count: u64, item_bytes: u64) -> Error {
        Error::RowTooLarge {
            row: row as u64,
            count,
            bytes: count.saturating_mul(item_bytes),
            most: self.bytes,
        }
    }
}

/// Splits the rows of a result, from the first on, into batches.
#[derive(Debug)]
pub(crate) struct RowSplitter {
    limits: Limits,
    item_bytes: u64,
    /// Rows that belong to no batch yet.
    remaining: Range<usize>,
    /// Number of rows to count next.
    next_len: usize,
    /// A number of rows and the number of their items: the remaining rows are assumed to be alike.
    sample: (u64, u64),
}

impl RowSplitter {
    /// Starts with all `num_rows` rows, whose items have `item_bytes` bytes each.
    pub(crate) fn new(num_rows: usize, item_bytes: u64, limits: Limits) -> Self {
        let next_len =
            usize::try_from(limits.items(item_bytes) / INITIAL_ITEMS_PER_ROW).unwrap_or(usize::MAX);
        let (next_len, sample) = (next_len.clamp(1, limits.rows), (1, INITIAL_ITEMS_PER_ROW));
        Self { limits, item_bytes, remaining: 0..num_rows, next_len, sample }
    }

    /// Assumes rows of the average length of a sample: (rows, items).
    pub(crate) fn with_sample(mut self, sample: (u64, u64)) -> Self {
        if sample.0 > 0 {
            self.sample = sample;
            self.next_len = self.rows_that_fill_a_batch().clamp(1, self.limits.rows);
        }
        self
    }

    /// Returns how many rows of the expected length fill a batch almost.
    fn rows_that_fill_a_batch(&self) -> usize {
        let (rows, items) = self.sample;
        // Rows times items fit in 128 bits.
        let target = u128::from(self.max_items()) * u128::from(FILL_32NDS) / 32;
        let num_rows = (u128::from(rows) * target).checked_div(items.into()).unwrap_or(u128::MAX);
        usize::try_from(num_rows).unwrap_or(usize::MAX)
    }

    /// Returns the rows to count next, or `None` after the last row.
    pub(crate) fn next_range(&self) -> Option<Range<usize>> {
        let Range { start, end } = self.remaining;
        (start < end).then(|| start..end.min(start.saturating_add(self.next_len)))
    }

    /// Returns how many items to allocate for `num_rows` rows, no more than a batch may have.
    pub(crate) fn expected_items(&self, num_rows: usize) -> u64 {
        let (rows, items) = self.sample;
        // An eighth more than the sample predicts, and at least one per row.
        let expected = num_rows as u128 * u128::from(items) / u128::from(rows);
        let likely = (expected + expected / 8).max(num_rows as u128);
        u64::try_from(likely).unwrap_or(u64::MAX).min(self.max_items())
    }

    /// Returns the most items that a batch may have.
    pub(crate) fn max_items(&self) -> u64 {
        self.limits.items(self.item_bytes)
    }

    /// Returns how many rows of the current range fit in a batch, from the offsets of the rows and the end of the last.
    ///
    /// # Errors
    /// [`Error::RowTooLarge`] if the first row does not fit.
    pub(crate) fn rows_that_fit(&self, offsets: &[u64]) -> Result<usize> {
        let max_items = self.max_items();
        match offsets.partition_point(|&offset| offset <= max_items) - 1 {
            0 => Err(self.limits.too_large(self.remaining.start, offsets[1], self.item_bytes)),
            rows => Ok(rows),
        }
    }

    /// Returns how many of `num_rows` counted rows fit in a batch, and the number of their items. Calls `offsets` only if some rows do
    /// not fit.
    ///
    /// # Errors
    /// The errors of [`rows_that_fit`](Self::rows_that_fit) and of `offsets`.
    pub(crate) fn fit(
        &self,
        num_rows: usize,
        total: u64,
        offsets: impl FnOnce() -> Result<Vec<u64>>,
    ) -> Result<(usize, u64)> {
        if total <= self.max_items() {
            return Ok((num_rows, total));
        }
        let offsets = offsets()?;
        let num_rows = self.rows_that_fit(&offsets)?;
        Ok((num_rows, offsets[num_rows]))
    }

    /// Moves past a batch of `rows` rows with `items` items.
    pub(crate) fn advance(&mut self, rows: usize, items: u64) {
        self.remaining.start += rows;
        self.sample = (rows as u64, items);
        self.next_len =
            self.rows_that_fill_a_batch().min(rows.saturating_mul(GROWTH)).clamp(1, self.limits.rows);
    }
}

/// Splits rows of exactly `count` items into batches; returns the rows of each batch.
///
/// # Errors
/// [`Error::RowTooLarge`] if there is a row and it does not fit in a batch.
pub(crate) fn split_equal_rows(
    num_rows: usize,
    count: usize,
    item_bytes: u64,
    limits: Limits,
) -> Result<impl Iterator<Item = Range<usize>>> {
    let fit = limits.items(item_bytes).checked_div(count as u64).unwrap_or(u64::MAX);
    if fit == 0 && num_rows > 0 {
        return Err(limits.too_large(0, count as u64, item_bytes));
    }
    let step = usize::try_from(fit).unwrap_or(usize::MAX).clamp(1, limits.rows);
    Ok(Ranges::new(num_rows, step).iter())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the batches of rows with these counts, and how many rows were counted.
    fn split(counts: &[u64], item_bytes: u64, limits: Limits) -> Result<(Vec<Range<usize>>, usize)> {
        let mut rows = RowSplitter::new(counts.len(), item_bytes, limits);
        let (mut batches, mut num_counted) = (Vec::new(), 0);
        while let Some(part) = rows.next_range() {
            num_counted += part.len();
            let mut offsets = vec![0];
            for &count in &counts[part.clone()] {
                offsets.push(offsets.last().unwrap() + count);
            }
            let fit = rows.rows_that_fit(&offsets)?;
            assert!(fit <= part.len() && fit <= limits.rows);
            assert!(offsets[fit] * item_bytes <= limits.bytes);
            // A row is left out only if it does not fit.
            assert!(fit == part.len() || offsets[fit + 1] * item_bytes > limits.bytes);
            rows.advance(fit, offsets[fit]);
            batches.push(part.start..part.start + fit);
        }
        Ok((batches, num_counted))
    }

    #[test]
    fn batches_follow_each_other_and_fit() {
        let uneven: Vec<u64> = (0..5000u64).map(|row| if row % 700 < 3 { 400 } else { row % 5 }).collect();
        let none = vec![0; 5000];
        let huge = vec![1 << 33; 40];
        for counts in [uneven, none, huge, vec![7], Vec::new()] {
            let largest = counts.iter().copied().max().unwrap_or(0);
            for bytes in [8 * largest, 8 * largest + 7, 80 * largest, u64::MAX] {
                for most_rows in [1, 2, 1000, usize::MAX] {
                    let limits = Limits { bytes, rows: most_rows };
                    let (batches, num_counted) = split(&counts, 8, limits).unwrap();
                    let mut end = 0;
                    for batch in &batches {
                        assert!(batch.start == end && !batch.is_empty());
                        end = batch.end;
                    }
                    assert_eq!(end, counts.len());
                    assert!(num_counted <= (GROWTH + 1) * counts.len());
                }
            }
        }
    }

    #[test]
    fn equal_rows_fill_batches() {
        let limits = Limits { bytes: 32_000, rows: usize::MAX };
        let (batches, num_counted) = split(&[20; 10_000], 8, limits).unwrap();
        // 200 rows fit.
        assert!(batches.len() <= 10_000 / 187 + 3, "{} batches", batches.len());
        assert!(num_counted <= 10_000 + 200);
    }

    #[test]
    fn the_previous_batch_predicts_the_next() {
        let mut rows = RowSplitter::new(100, 8, Limits { bytes: 8000, rows: usize::MAX });
        assert_eq!(rows.expected_items(10), 320 + 40);
        assert_eq!(rows.expected_items(100), 1000);
        rows.advance(4, 32);
        assert_eq!(rows.expected_items(16), 128 + 16);
        rows.advance(16, 0);
        assert_eq!(rows.expected_items(7), 7);
        let rows = RowSplitter::new(usize::MAX, 1, Limits { bytes: u64::MAX, rows: usize::MAX });
        assert_eq!(rows.expected_items(usize::MAX), u64::MAX);
    }

    #[test]
    fn a_row_that_is_too_large_is_named() {
        let limits = Limits { bytes: 4 * (1 << 33), rows: 1000 };
        let counts = [5, 0, (1 << 33) + 1, 5];
        let error = split(&counts, 4, limits).unwrap_err();
        let Error::RowTooLarge { row, count, bytes, most } = error else { panic!("{error}") };
        assert_eq!((row, count, bytes, most), (2, (1 << 33) + 1, 4 * ((1 << 33) + 1), limits.bytes));
    }

    #[test]
    fn equal_rows_are_split_evenly() {
        let limits = Limits { bytes: 100, rows: 1000 };
        let batches: Vec<_> = split_equal_rows(7, 4, 8, limits).unwrap().collect();
        assert_eq!(batches, [0..3, 3..6, 6..7]);
        assert!(split_equal_rows(0, 13, 8, limits).unwrap().next().is_none());
        assert!(matches!(
            split_equal_rows(1, 13, 8, limits).err(),
            Some(Error::RowTooLarge { row: 0, count: 13, bytes: 104, most: 100 })
        ));
        // Any number of empty rows fits, up to the limit of rows.
        let all: Vec<_> = split_equal_rows(2500, 0, 8, limits).unwrap().map(|rows| rows.len()).collect();
        assert_eq!(all, [1000, 1000, 500]);
    }
}

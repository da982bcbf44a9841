//! Where results are cut into batches: rows as long as they come, whole rows in each.
//!
//! How many points a row has is known when it has been counted, and rows are counted in parts. Of a part the rows that fit go into
//! a batch; the others are counted again with the next part. How long a part is follows from the rows before it, and from nothing
//! of the device: batches are the same everywhere.

use crate::error::{Error, Result};
use std::ops::Range;

/// A part may have so many times the rows of the batch before it: rows are counted at most so many times, on average.
const GROWTH: usize = 4;
/// So many items a row are expected at first.
const EXPECTED: u64 = 32;
/// So much of the room, in parts of 32, is to be filled by rows like those before.
const FILLED: u64 = 30;

/// What a batch may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Bytes of its items.
    pub(crate) bytes: u64,
    /// Rows, at least one.
    pub(crate) rows: usize,
}

impl Limits {
    /// Items of so many bytes that fit.
    fn items(&self, item_bytes: u64) -> u64 {
        self.bytes / item_bytes
    }

    /// The error of a row that does not fit into any batch.
    fn too_large(&self, row: usize, count: u64, item_bytes: u64) -> Error {
        Error::RowTooLarge {
            row: row as u64,
            count,
            bytes: count.saturating_mul(item_bytes),
            most: self.bytes,
        }
    }
}

/// The rows of a result, from the first on.
#[derive(Debug)]
pub(crate) struct Rows {
    limits: Limits,
    item_bytes: u64,
    /// The rows that are in no batch so far.
    rest: Range<usize>,
    /// How many of them to count next.
    guess: usize,
    /// Some rows, and their items: the others are expected to be like these.
    alike: (u64, u64),
}

impl Rows {
    /// So many rows of items of that many bytes.
    pub(crate) fn new(num_rows: usize, item_bytes: u64, limits: Limits) -> Self {
        let guess = usize::try_from(limits.items(item_bytes) / EXPECTED).unwrap_or(usize::MAX);
        let (guess, alike) = (guess.clamp(1, limits.rows), (1, EXPECTED));
        Self { limits, item_bytes, rest: 0..num_rows, guess, alike }
    }

    /// The same rows, which are expected to be like some of them that have so many items.
    pub(crate) fn expecting(mut self, alike: (u64, u64)) -> Self {
        if alike.0 > 0 {
            self.alike = alike;
            self.guess = self.rows_that_fill().clamp(1, self.limits.rows);
        }
        self
    }

    /// How many rows are likely to fill a batch, with a little room left.
    fn rows_that_fill(&self) -> usize {
        let (rows, items) = self.alike;
        // In 128 bits nothing overflows: rows times items.
        let wanted = u128::from(self.most_items()) * u128::from(FILLED) / 32;
        let alike = (u128::from(rows) * wanted).checked_div(items.into()).unwrap_or(u128::MAX);
        usize::try_from(alike).unwrap_or(usize::MAX)
    }

    /// The rows to count next; nothing behind the last.
    pub(crate) fn next_part(&self) -> Option<Range<usize>> {
        let Range { start, end } = self.rest;
        (start < end).then(|| start..end.min(start.saturating_add(self.guess)))
    }

    /// How many items so many rows are likely to have at most; no more than a batch may have.
    pub(crate) fn likely_items(&self, num_rows: usize) -> u64 {
        let (rows, items) = self.alike;
        // An eighth more than the rows before, and at least one a row.
        let alike = num_rows as u128 * u128::from(items) / u128::from(rows);
        let likely = (alike + alike / 8).max(num_rows as u128);
        u64::try_from(likely).unwrap_or(u64::MAX).min(self.most_items())
    }

    /// Most items of a batch.
    pub(crate) fn most_items(&self) -> u64 {
        self.limits.items(self.item_bytes)
    }

    /// How many rows of the next part make a batch, by where each begins and the last ends.
    ///
    /// # Errors
    /// [`Error::RowTooLarge`] if that is not even the first.
    pub(crate) fn that_fit(&self, offsets: &[u64]) -> Result<usize> {
        let most = self.most_items();
        match offsets.partition_point(|&offset| offset <= most) - 1 {
            0 => Err(self.limits.too_large(self.rest.start, offsets[1], self.item_bytes)),
            rows => Ok(rows),
        }
    }

    /// Of a part of so many rows that have so many items, how many rows make a batch, and their items. The offsets are read only if not
    /// all do.
    ///
    /// # Errors
    /// As [`that_fit`](Self::that_fit), and that of the offsets.
    pub(crate) fn fit(
        &self,
        num_rows: usize,
        total: u64,
        offsets: impl FnOnce() -> Result<Vec<u64>>,
    ) -> Result<(usize, u64)> {
        if total <= self.most_items() {
            return Ok((num_rows, total));
        }
        let offsets = offsets()?;
        let num_rows = self.that_fit(&offsets)?;
        Ok((num_rows, offsets[num_rows]))
    }

    /// So many rows with so many items are in a batch.
    pub(crate) fn took(&mut self, rows: usize, items: u64) {
        self.rest.start += rows;
        self.alike = (rows as u64, items);
        self.guess = self.rows_that_fill().min(rows.saturating_mul(GROWTH)).clamp(1, self.limits.rows);
    }
}

/// The rows of each batch, of rows that all have `count` items of so many bytes.
///
/// # Errors
/// [`Error::RowTooLarge`] if there is a row and no batch has room for it.
pub(crate) fn equal_rows(
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
    Ok((0..num_rows).step_by(step).map(move |begin| begin..num_rows.min(begin.saturating_add(step))))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The batches of rows of those counts, and how many rows were counted.
    fn cut(counts: &[u64], item_bytes: u64, limits: Limits) -> Result<(Vec<Range<usize>>, usize)> {
        let mut rows = Rows::new(counts.len(), item_bytes, limits);
        let (mut batches, mut num_counted) = (Vec::new(), 0);
        while let Some(part) = rows.next_part() {
            num_counted += part.len();
            let mut offsets = vec![0];
            for &count in &counts[part.clone()] {
                offsets.push(offsets.last().unwrap() + count);
            }
            let fit = rows.that_fit(&offsets)?;
            assert!(fit <= part.len() && fit <= limits.rows);
            assert!(offsets[fit] * item_bytes <= limits.bytes);
            // A row is left out only if it does not fit.
            assert!(fit == part.len() || offsets[fit + 1] * item_bytes > limits.bytes);
            rows.took(fit, offsets[fit]);
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
                    let (batches, num_counted) = cut(&counts, 8, limits).unwrap();
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
    fn rows_alike_fill_batches() {
        let limits = Limits { bytes: 32_000, rows: usize::MAX };
        let (batches, num_counted) = cut(&[20; 10_000], 8, limits).unwrap();
        // 200 rows fit.
        assert!(batches.len() <= 10_000 / 187 + 3, "{} batches", batches.len());
        assert!(num_counted <= 10_000 + 200);
    }

    #[test]
    fn rows_are_expected_to_be_like_those_before() {
        let mut rows = Rows::new(100, 8, Limits { bytes: 8000, rows: usize::MAX });
        assert_eq!(rows.likely_items(10), 320 + 40);
        assert_eq!(rows.likely_items(100), 1000);
        rows.took(4, 32);
        assert_eq!(rows.likely_items(16), 128 + 16);
        rows.took(16, 0);
        assert_eq!(rows.likely_items(7), 7);
        let rows = Rows::new(usize::MAX, 1, Limits { bytes: u64::MAX, rows: usize::MAX });
        assert_eq!(rows.likely_items(usize::MAX), u64::MAX);
    }

    #[test]
    fn a_row_that_is_too_large_is_named() {
        let limits = Limits { bytes: 4 * (1 << 33), rows: 1000 };
        let counts = [5, 0, (1 << 33) + 1, 5];
        let error = cut(&counts, 4, limits).unwrap_err();
        let Error::RowTooLarge { row, count, bytes, most } = error else { panic!("{error}") };
        assert_eq!((row, count, bytes, most), (2, (1 << 33) + 1, 4 * ((1 << 33) + 1), limits.bytes));
    }

    #[test]
    fn equal_rows_are_cut_evenly() {
        let limits = Limits { bytes: 100, rows: 1000 };
        let batches: Vec<_> = equal_rows(7, 4, 8, limits).unwrap().collect();
        assert_eq!(batches, [0..3, 3..6, 6..7]);
        assert!(equal_rows(0, 13, 8, limits).unwrap().next().is_none());
        assert!(matches!(
            equal_rows(1, 13, 8, limits).err(),
            Some(Error::RowTooLarge { row: 0, count: 13, bytes: 104, most: 100 })
        ));
        // Rows of nothing fit, as many as there may be.
        let all: Vec<_> = equal_rows(2500, 0, 8, limits).unwrap().map(|rows| rows.len()).collect();
        assert_eq!(all, [1000, 1000, 500]);
    }
}

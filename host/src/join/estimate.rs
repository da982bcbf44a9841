//! How many pairs a join is likely to have, by those of a uniform sample of its rows (Gowanlock, Karsin 2018, *GPU accelerated self-join
//! for the distance similarity metric*).

use super::Near;
use crate::error::Result;
use crate::memory;
use kauri_kernels::join::cells::Pairing;

/// Rows that are counted before batches are made.
pub(super) const ROWS: usize = 1 << 12;

/// Every so many-th row of a join.
pub(super) struct Sample<C> {
    /// The coordinates of their points.
    pub(super) coords: Vec<C>,
    num_rows: u64,
    pairing: Pairing,
}

impl<C: Copy> Sample<C> {
    /// About `most` rows, or all.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`](crate::Error::OutOfMemory).
    pub(super) fn new(dims: usize, rows_of: &[C], most: usize, near: &Near<C>) -> Result<Self> {
        let stride = (rows_of.len() / dims).div_ceil(most.max(1)).max(1);
        let strides = rows_of.chunks(dims * stride);
        let mut coords = memory::vec_with_capacity(strides.len() * dims, "a sample of a join")?;
        strides.for_each(|points| coords.extend_from_slice(&points[..dims]));
        let num_rows = (coords.len() / dims) as u64;
        Ok(Self { coords, num_rows, pairing: near.pairing })
    }

    /// What is near the points of the sample, of which nobody knows that they are of the set.
    pub(super) fn near(&self, near: &Near<C>) -> Near<C> {
        Near { pairing: Pairing::All, ..*near }
    }

    /// Rows, and how many items so many are likely to have, by the pairs that were counted with all points.
    pub(super) fn rows_with_items(&self, count: u64) -> (u64, u64) {
        // Every point is near itself, and of two points one is the lesser.
        let items = match self.pairing {
            Pairing::All | Pairing::Turned => count,
            Pairing::Both => count.saturating_sub(self.num_rows),
            Pairing::Once => count.saturating_sub(self.num_rows).div_ceil(2),
        };
        (self.num_rows, items)
    }

    /// How many pairs all rows are likely to have.
    pub(super) fn of_all(&self, count: u64, num_rows: usize) -> u64 {
        let (rows, items) = self.rows_with_items(count);
        let all = u128::from(items) * num_rows as u128;
        u64::try_from(all.checked_div(rows.into()).unwrap_or(0)).unwrap_or(u64::MAX)
    }
}

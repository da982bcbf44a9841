//! Estimates the number of pairs of a join from the pairs of a uniform sample of its rows (Gowanlock, Karsin 2018, *GPU accelerated
//! self-join for the distance similarity metric*).

use crate::error::Result;
use crate::memory;
use kauri_kernels::join::cells::Pairing;

/// Rows of the sample that is counted before the first batch.
pub(super) const ROWS: usize = 1 << 12;

/// A sample of the rows of a join at a fixed stride.
pub(super) struct Sample<C> {
    /// The coordinates of the items of the rows.
    pub(super) coords: Vec<C>,
    num_rows: u64,
    pairing: Pairing,
}

impl<C: Copy> Sample<C> {
    /// Takes about `max_rows` rows of items that have `width` coordinates, or all if there are no more.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`](crate::Error::OutOfMemory).
    pub(super) fn new(probe: &[C], width: usize, max_rows: usize, pairing: Pairing) -> Result<Self> {
        let stride = (probe.len() / width).div_ceil(max_rows.max(1)).max(1);
        let strides = probe.chunks(width * stride);
        let mut coords = memory::vec_with_capacity(strides.len() * width, "a sample of a join")?;
        strides.for_each(|items| coords.extend_from_slice(&items[..width]));
        let num_rows = (coords.len() / width) as u64;
        Ok(Self { coords, num_rows, pairing })
    }

    /// Returns the number of rows of the sample and of their pairs, from the `count` of pairs with all items of the set.
    pub(super) fn rows_with_items(&self, count: u64) -> (u64, u64) {
        // In a self join every item has been counted with itself, and one half of the other pairs has the smaller id first.
        let items = match self.pairing {
            Pairing::All | Pairing::Swapped => count,
            Pairing::Both => count.saturating_sub(self.num_rows),
            Pairing::Once => count.saturating_sub(self.num_rows).div_ceil(2),
        };
        (self.num_rows, items)
    }

    /// Extrapolates the `count` of pairs of the sample to `num_rows` rows.
    pub(super) fn extrapolate(&self, count: u64, num_rows: usize) -> u64 {
        let (rows, items) = self.rows_with_items(count);
        let all = u128::from(items) * num_rows as u128;
        u64::try_from(all.checked_div(rows.into()).unwrap_or(0)).unwrap_or(u64::MAX)
    }
}

//! The rows of a range query, within a distance or in boxes, as backends make them.

use kauri_kernels::thread::coord::Float;

use crate::error::Result;
use crate::memory::{self, Parts};
use crate::parallel::Ranges;

/// Maximum number of rows that a task sorts.
const TASK_ROWS: usize = 256;

/// Returns the offsets of rows with these lengths.
pub(crate) fn offsets_of(lens: impl ExactSizeIterator<Item = u64>) -> Result<Vec<u64>> {
    let mut offsets = memory::vec_with_capacity(lens.len() + 1, "offsets of rows")?;
    offsets.push(0);
    append_offsets(&mut offsets, lens);
    Ok(offsets)
}

/// Appends the end of each row with these lengths to offsets, which have the capacity and end where the first of these rows begins.
pub(crate) fn append_offsets(offsets: &mut Vec<u64>, lens: impl Iterator<Item = u64>) {
    let mut end = offsets.last().copied().unwrap_or(0);
    offsets.extend(lens.map(|len| {
        end += len;
        end
    }));
}

/// The points found by each query or in each box, in host memory.
#[derive(Clone)]
pub struct RangeResult<C> {
    /// Where each row begins, and where the last one ends.
    pub offsets: Vec<u64>,
    pub ids: Vec<u32>,
    /// Empty for boxes.
    pub dist2: Vec<C>,
}

impl<C: Float> RangeResult<C> {
    /// Borrows the rows, to sort them.
    pub(crate) fn rows_mut(&mut self) -> RangeResultMut<'_, C> {
        RangeResultMut { offsets: &self.offsets, ids: &mut self.ids, dist2: &mut self.dist2 }
    }
}

/// Mutable rows of points found, in memory of the caller.
pub struct RangeResultMut<'a, C> {
    /// Where each row begins, and where the last one ends.
    pub offsets: &'a [u64],
    pub ids: &'a mut [u32],
    /// Empty for boxes.
    pub dist2: &'a mut [C],
}

impl<C: Float> RangeResultMut<'_, C> {
    /// Sorts each row by (distance, id).
    pub(crate) fn sort(&mut self) {
        let end = self.offsets.last().map_or(0, |&end| end as usize);
        assert!(
            self.offsets.is_sorted() && end <= self.ids.len() && end <= self.dist2.len(),
            "rows of points"
        );
        let (ids, dist2) = (Parts::of_initialized(self.ids), Parts::of_initialized(self.dist2));
        let num_rows = self.offsets.len().saturating_sub(1);
        Ranges::even(num_rows, TASK_ROWS).for_each(&|rows| {
            let mut sorted = Vec::new();
            for ends in self.offsets[rows.start..=rows.end].windows(2) {
                let row = ends[0] as usize..ends[1] as usize;
                // SAFETY: rows are within both arrays, and do not overlap.
                let (ids, dist2) =
                    unsafe { (ids.part(row.clone()).assume_init_mut(), dist2.part(row).assume_init_mut()) };
                sorted.clear();
                sorted.extend(dist2.iter().map(|distance| distance.key()).zip(ids.iter().copied()));
                sorted.sort_unstable();
                for ((key, id), (to_id, to_dist2)) in sorted.iter().zip(ids.iter_mut().zip(dist2)) {
                    (*to_id, *to_dist2) = (*id, C::from_key(*key));
                }
            }
        });
    }
}

//! The rows of a range query, within a distance or in boxes, as backends make them.

use kauri_kernels::thread::coord::Coord;
use rayon::prelude::*;

/// Appends the end of each row with these lengths to offsets, which have the capacity and end where the first of these rows begins.
pub(crate) fn append_offsets(offsets: &mut Vec<u64>, counts: &[u32]) {
    let mut end = offsets.last().copied().unwrap_or(0);
    offsets.extend(counts.iter().map(|&count| {
        end += u64::from(count);
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

impl<C: Coord> RangeResult<C> {
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

impl<C: Coord> RangeResultMut<'_, C> {
    /// Splits the result into the ids and distances of each row.
    fn split(&mut self) -> Vec<(&mut [u32], &mut [C])> {
        let (mut rest_ids, mut rest_dist2) = (&mut *self.ids, &mut *self.dist2);
        let row = |ends: &[u64]| {
            let len = (ends[1] - ends[0]) as usize;
            let (ids, later_ids) = std::mem::take(&mut rest_ids).split_at_mut(len);
            let (dist2, later_dist2) = std::mem::take(&mut rest_dist2).split_at_mut(len);
            (rest_ids, rest_dist2) = (later_ids, later_dist2);
            (ids, dist2)
        };
        self.offsets.windows(2).map(row).collect()
    }

    /// Sorts each row by (distance, id).
    pub(crate) fn sort(&mut self) {
        self.split().into_par_iter().for_each_init(Vec::new, |row, (ids, dist2)| {
            row.clear();
            row.extend(dist2.iter().map(|distance| distance.key()).zip(ids.iter().copied()));
            row.sort_unstable();
            for ((key, id), (to_id, to_dist2)) in row.iter().zip(ids.iter_mut().zip(dist2)) {
                (*to_id, *to_dist2) = (*id, C::from_key(*key));
            }
        });
    }
}

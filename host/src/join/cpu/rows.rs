//! The left points near each right point, as rows of a result whose size is known before it is allocated.
//!
//! If rows are short on average, the first search keeps what it finds, and the rows are copied. Otherwise it only counts, and a second
//! search fills the rows.

use super::cells::Segment;
use super::crowds::{Item, Node, Search, Subtree, Wanted};
use super::{Sets, Take};
use crate::error::Result;
use crate::memory::{self, Parts};
use crate::rows::Rows;
use kauri_kernels::join::cells::Pairing;
use kauri_kernels::thread::coord::Coord;
use rayon::prelude::*;
use std::ops::{ControlFlow, Range};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes of an id in a row.
pub(super) const ITEM_BYTES: u64 = size_of::<u32>() as u64;
/// The first search keeps at most this many ids a row on average.
const KEPT_A_ROW: usize = 32;
/// The first search keeps up to this many ids in any case.
const KEPT: usize = 1 << 24;
/// Most ids that a task keeps.
const KEPT_OF_TASK: usize = 1 << 22;
/// If one of this many points of a crowded cell is near, all points of the cell are scanned, in their order: less work than to put the
/// near ones in order.
const SCANNED: usize = 16;

/// What the first search found.
pub(super) struct Counted {
    /// The number of ids of each right position.
    counts: Vec<u32>,
    /// The ids of each task, if they were kept.
    kept: Option<Vec<Vec<u32>>>,
}

/// A vector of zeros.
pub(super) fn zeros(len: usize) -> Result<Vec<u64>> {
    let mut zeros = memory::vec_with_capacity(len, "offsets of rows")?;
    zeros.resize(len, 0);
    Ok(zeros)
}

/// Room for the ids of a result, or [`Error::ResultTooLarge`](crate::Error::ResultTooLarge).
fn ids_of_result(count: u64) -> Result<Vec<u32>> {
    let len = usize::try_from(count).unwrap_or(usize::MAX);
    memory::vec_with_capacity(len, "pairs of a join")
        .map_err(|error| error.of_result(count, count.saturating_mul(ITEM_BYTES)))
}

impl<C: Coord, const D: usize> Sets<'_, C, D> {
    /// Finds all rows.
    pub(super) fn rows(&self, num_rows: usize) -> Result<Rows> {
        let first = self.keep_rows()?;
        if first.is_none() && self.near.pairing == Pairing::Once {
            // The number of all pairs is known sooner than that of each row.
            ids_of_result(self.count()?)?;
        }
        self.fill(first, num_rows, |_| Ok(num_rows))
    }

    /// Finds as many of the rows as `that_fit` makes of their offsets.
    pub(super) fn rows_that(
        &self,
        num_rows: usize,
        that_fit: impl FnOnce(&[u64]) -> Result<usize>,
    ) -> Result<Rows> {
        self.fill(self.keep_rows()?, num_rows, that_fit)
    }

    /// Finds as many of the rows as `that_fit` makes of their offsets, with what the first search found, if it kept that.
    pub(super) fn fill(
        &self,
        first: Option<Counted>,
        num_rows: usize,
        that_fit: impl FnOnce(&[u64]) -> Result<usize>,
    ) -> Result<Rows> {
        let Counted { counts, kept } = match first {
            Some(counted) => counted,
            None => Counted { counts: self.count_rows()?, kept: None },
        };
        let mut offsets = zeros(num_rows + 1)?;
        for (&id, &count) in self.right.ids.iter().zip(&counts) {
            offsets[id as usize + 1] = count.into();
        }
        for row in 0..num_rows {
            offsets[row + 1] += offsets[row];
        }
        offsets.truncate(that_fit(&offsets)? + 1);
        let mut ids = ids_of_result(offsets.last().copied().unwrap_or(0))?;
        let len = offsets.last().map_or(0, |&len| len as usize);
        let rows = RowParts { offsets: &offsets, ids: Parts::new(&mut ids.spare_capacity_mut()[..len]) };
        match kept {
            Some(kept) => self.tasks().zip(kept).for_each(|(task, kept)| {
                let mut kept = &kept[..];
                for right in task {
                    let (row, rest) = kept.split_at(counts[right] as usize);
                    kept = rest;
                    rows.write(self.right.ids[right], row);
                }
            }),
            None => self.tasks().try_for_each(|task| {
                let (mut row, mut hits) = (Vec::new(), Vec::new());
                let is_in_result = |right: usize| counts[right] > 0 && rows.has(self.right.ids[right]);
                self.try_each(task, is_in_result, |right, segments| {
                    row.clear();
                    memory::reserve_more(&mut row, counts[right] as usize, "a row of a join")?;
                    self.append_row(right, segments, &mut row, &mut hits)?;
                    rows.write(self.right.ids[right], &row);
                    Ok(())
                })
            })?,
        }
        // SAFETY: each id of each row has been written: rows without a right point in a cell are empty, and each other one was written
        // by its right point, as a whole.
        unsafe { ids.set_len(len) };
        Ok(Rows::new(offsets, ids))
    }

    /// Searches and keeps the ids; nothing if these are too many.
    pub(super) fn keep_rows(&self) -> Result<Option<Counted>> {
        let num_rights = self.right.ids.len();
        let mut counts = memory::vec_with_capacity(num_rights, "counts of rows")?;
        counts.resize(num_rights, 0);
        let left_over = AtomicUsize::new(KEPT.max(num_rights.saturating_mul(KEPT_A_ROW)));
        let tasks = self.tasks().zip(counts.par_chunks_mut(self.task_len()));
        let kept = tasks.map(|(task, counts)| self.keep_task(task, counts, &left_over));
        let kept = kept.collect::<Option<Vec<_>>>();
        Ok(kept.map(|kept| Counted { counts, kept: Some(kept) }))
    }

    /// Counts the ids of each row of a task and keeps them; nothing if they are more than the others left over, or if memory is short.
    fn keep_task(&self, task: Range<usize>, counts: &mut [u32], left_over: &AtomicUsize) -> Option<Vec<u32>> {
        let (mut ids, mut hits, first) = (Vec::new(), Vec::new(), task.start);
        self.try_each(
            task,
            |_| true,
            |right, segments| {
                let room = self.room_of_row(right, segments).map_err(drop)?;
                if ids.len() + room > KEPT_OF_TASK.min(left_over.load(Ordering::Relaxed)) {
                    return Err(());
                }
                memory::reserve_more(&mut ids, room, "pairs of a join").map_err(drop)?;
                let before = ids.len();
                self.append_row(right, segments, &mut ids, &mut hits).map_err(drop)?;
                counts[right - first] = (ids.len() - before) as u32;
                Ok(())
            },
        )
        .ok()?;
        ids.shrink_to_fit();
        let is_left = |left: usize| left.checked_sub(ids.len());
        left_over.fetch_update(Ordering::Relaxed, Ordering::Relaxed, is_left).ok()?;
        Some(ids)
    }

    /// The number of ids of each right position.
    fn count_rows(&self) -> Result<Vec<u32>> {
        let num_rights = self.right.ids.len();
        let mut counts = memory::vec_with_capacity(num_rights, "counts of rows")?;
        counts.resize(num_rights, 0);
        self.tasks().zip(counts.par_chunks_mut(self.task_len())).try_for_each(|(task, counts)| {
            let first = task.start;
            self.try_each(
                task,
                |_| true,
                |right, segments| {
                    counts[right - first] = self.count_row(right, segments)? as u32;
                    Ok(())
                },
            )
        })?;
        Ok(counts)
    }

    /// Counts the ids of a row.
    fn count_row(&self, right: usize, segments: &[Segment]) -> Result<u64> {
        match self.near.pairing {
            Pairing::All | Pairing::Turned => self.count_around::<false>(right, segments),
            // The point itself is near.
            Pairing::Both => Ok(self.count_around::<false>(right, segments)? - 1),
            Pairing::Once => self.count_around::<true>(right, segments),
        }
    }

    /// A bound for the number of ids of a row: that of all points around it where these are few.
    fn room_of_row(&self, right: usize, segments: &[Segment]) -> Result<usize> {
        if segments.iter().any(|segment| segment.crowd.is_some()) {
            return Ok(self.count_row(right, segments)? as usize);
        }
        Ok(segments.iter().map(|segment| segment.lefts.len()).sum())
    }

    /// Appends the ids of a row, for which there is room.
    fn append_row(
        &self,
        right: usize,
        segments: &[Segment],
        to: &mut Vec<u32>,
        hits: &mut Vec<u32>,
    ) -> Result<()> {
        let (ids, pairing, own) = (&self.left.ids[..], self.near.pairing, self.right_id(right));
        self.search(right, segments, &mut Row { ids, pairing, own, to, hits })
    }
}

/// The rows of a result, written by several threads.
struct RowParts<'a> {
    offsets: &'a [u64],
    ids: Parts<'a, u32>,
}

impl RowParts<'_> {
    /// True if the result has a row.
    fn has(&self, row: u32) -> bool {
        (row as usize) + 1 < self.offsets.len()
    }

    /// Writes a row, if the result has it. Each is written once.
    fn write(&self, row: u32, ids: &[u32]) {
        if self.has(row) {
            let [begin, end] = [0, 1].map(|end| self.offsets[row as usize + end] as usize);
            // SAFETY: offsets rise to the number of ids, no two rows have an id in common, and each has one right point, which one task
            // visits once.
            unsafe { self.ids.part(begin..end) }.write_copy_of_slice(ids);
        }
    }
}

/// Appends ids to a row.
struct Row<'a> {
    ids: &'a [u32],
    pairing: Pairing,
    own: u32,
    to: &'a mut Vec<u32>,
    /// Positions of near points in a crowded cell.
    hits: &'a mut Vec<u32>,
}

impl<C: Coord, const D: usize> Take<C, D> for Row<'_> {
    #[inline(always)]
    fn take(&mut self, left: usize) {
        let id = self.ids[left];
        if self.pairing.takes(id, self.own) {
            self.to.push(id);
        }
    }

    fn take_crowd(
        &mut self,
        sets: &Sets<'_, C, D>,
        crowd: Subtree<'_, C, D>,
        lefts: Range<usize>,
        point: &[C; D],
    ) -> Result<()> {
        let most = lefts.len() / SCANNED;
        self.hits.clear();
        memory::reserve_more(self.hits, most, "near points of a crowded cell")?;
        let mut hits = Hits { lefts: self.hits, most, all: lefts.len(), are_all: false };
        let is_few = crowd.search(point, sets.near, &mut hits).is_continue();
        if hits.are_all {
            lefts.for_each(|left| Take::<C, D>::take(self, left));
        } else if is_few {
            self.hits.sort_unstable();
            for hit in 0..self.hits.len() {
                Take::<C, D>::take(self, self.hits[hit] as usize);
            }
        } else {
            sets.scan(lefts, point, self);
        }
        Ok(())
    }
}

/// Collects the positions of near points, until there are too many.
struct Hits<'a> {
    lefts: &'a mut Vec<u32>,
    most: usize,
    /// Points of the whole cell.
    all: usize,
    are_all: bool,
}

impl<C: Coord, const D: usize> Search<C, D> for Hits<'_> {
    fn wants(&self, _: &Node<C, D>, _: usize) -> Wanted {
        Wanted::All
    }

    fn take_all(&mut self, items: &[Item<C, D>]) -> ControlFlow<()> {
        self.are_all = items.len() == self.all;
        items.iter().try_for_each(|item| Search::<C, D>::take(self, item))
    }

    fn take(&mut self, item: &Item<C, D>) -> ControlFlow<()> {
        if self.lefts.len() == self.most {
            return ControlFlow::Break(());
        }
        self.lefts.push(item.left);
        ControlFlow::Continue(())
    }
}

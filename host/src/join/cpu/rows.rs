//! Finds the build points near each probe point on the CPU, as rows of a result whose size is known before it is allocated.
//!
//! If rows are short on average, the first search keeps the ids it finds, and they are copied to the rows. Otherwise the first search
//! only counts, and a second search fills the rows.

use super::overfull_cells::{NodeFilter, Segment, Subtree, TreeNode, TreePoint, TreeVisitor};
use super::sets::{JoinSides, MatchVisitor};
use crate::error::Result;
use crate::join::rows::{ITEM_BYTES, zeros};
use crate::memory::{self, Parts};
use crate::parallel::{self, Ranges};
use crate::rows::Rows;
use kauri_kernels::join::cells::Pairing;
use kauri_kernels::thread::coord::Float;
use std::ops::{ControlFlow, Range};
use std::sync::atomic::{AtomicUsize, Ordering};

/// The first search keeps at most this many ids per row on average.
const MAX_KEPT_PER_ROW: usize = 32;
/// The first search keeps up to this many ids in any case.
const MIN_KEPT: usize = 1 << 24;
/// Most ids that a task keeps.
const MAX_KEPT_PER_TASK: usize = 1 << 22;
/// If at least one of this many points of an overfull cell is near, all points of the cell are scanned in order, which costs less than
/// sorting the near points.
const SCAN_FRACTION: usize = 16;

/// The result of the first search.
pub(super) struct FirstSearch {
    /// The number of ids of each probe position.
    counts: Vec<u32>,
    tasks: Ranges,
    /// The ids of each task, if they were kept.
    kept: Option<Vec<Vec<u32>>>,
}

/// Allocates the ids of a result, or returns [`Error::ResultTooLarge`](crate::Error::ResultTooLarge).
fn ids_of_result(count: u64) -> Result<Vec<u32>> {
    let len = usize::try_from(count).unwrap_or(usize::MAX);
    memory::vec_with_capacity(len, "pairs of a join").map_err(|error| error.of_result(count, ITEM_BYTES))
}

impl<C: Float, const D: usize> JoinSides<'_, C, D> {
    /// Finds all rows.
    pub(super) fn rows(&self, num_rows: usize) -> Result<Rows> {
        let first = self.keep_rows()?;
        if first.is_none() && self.params.pairing == Pairing::Once {
            // The number of all pairs can be counted faster than each row.
            ids_of_result(self.count()?)?;
        }
        self.fill(first, num_rows, &|_| Ok(num_rows))
    }

    /// Finds the leading rows of the result. `rows_that_fit` returns their number from the offsets of all rows.
    pub(super) fn leading_rows(
        &self,
        num_rows: usize,
        rows_that_fit: &dyn Fn(&[u64]) -> Result<usize>,
    ) -> Result<Rows> {
        self.fill(self.keep_rows()?, num_rows, rows_that_fit)
    }

    /// Finds the leading rows of the result, using the ids of the first search if it kept them.
    pub(super) fn fill(
        &self,
        first: Option<FirstSearch>,
        num_rows: usize,
        rows_that_fit: &dyn Fn(&[u64]) -> Result<usize>,
    ) -> Result<Rows> {
        let FirstSearch { counts, tasks, kept } = match first {
            Some(first) => first,
            None => self.count_rows()?,
        };
        let mut offsets = zeros(num_rows + 1, "offsets of rows")?;
        for (&id, &count) in self.probe.ids.iter().zip(&counts) {
            offsets[id as usize + 1] = count.into();
        }
        for row in 0..num_rows {
            offsets[row + 1] += offsets[row];
        }
        offsets.truncate(rows_that_fit(&offsets)? + 1);
        let mut ids = ids_of_result(offsets.last().copied().unwrap_or(0))?;
        let len = offsets.last().map_or(0, |&len| len as usize);
        let rows = RowParts { offsets: &offsets, ids: Parts::new(&mut ids.spare_capacity_mut()[..len]) };
        match kept {
            Some(kept) => parallel::for_each(tasks.num(), &|task| {
                let mut kept = &kept[task][..];
                for probe in tasks.get(task) {
                    let (row, rest) = kept.split_at(counts[probe] as usize);
                    kept = rest;
                    rows.write(self.probe.ids[probe], row);
                }
            }),
            None => parallel::try_for_each(tasks.num(), &|task| {
                let (mut row, mut hits) = (Vec::new(), Vec::new());
                let is_in_result = |&probe: &usize| counts[probe] > 0 && rows.has(self.probe.ids[probe]);
                self.try_for_each(tasks.get(task).filter(is_in_result), |probe, segments| {
                    row.clear();
                    memory::reserve_more(&mut row, counts[probe] as usize, "a row of a join")?;
                    self.append_row(probe, segments, &mut row, &mut hits)?;
                    rows.write(self.probe.ids[probe], &row);
                    Ok(())
                })
            })?,
        }
        // SAFETY: all ids of all rows have been written: rows of probe points outside the grid are empty, and every other row
        // was written as a whole by its probe point.
        unsafe { ids.set_len(len) };
        Ok(Rows::new(offsets, ids))
    }

    /// Searches and keeps the ids, or returns `None` if there are too many.
    pub(super) fn keep_rows(&self) -> Result<Option<FirstSearch>> {
        let num_probes = self.probe.ids.len();
        let mut counts = zeros(num_probes, "counts of rows")?;
        let budget = AtomicUsize::new(MIN_KEPT.max(num_probes.saturating_mul(MAX_KEPT_PER_ROW)));
        let tasks = self.tasks();
        let mut kept = zeros(tasks.num(), "ids of tasks")?;
        let (count_slots, kept_slots) =
            (Parts::of_initialized(&mut counts), Parts::of_initialized(&mut kept));
        let exceeds = parallel::any(tasks.num(), &|i| {
            let task = tasks.get(i);
            // SAFETY: the probe positions of tasks do not overlap, and each task has a slot of its own.
            let (counts, kept) = unsafe {
                let (counts, kept) = (count_slots.part(task.clone()), kept_slots.part(i..i + 1));
                (counts.assume_init_mut(), &mut kept.assume_init_mut()[0])
            };
            self.keep_task(task, counts, &budget).map(|ids| *kept = ids).is_none()
        });
        Ok((!exceeds).then_some(FirstSearch { counts, tasks, kept: Some(kept) }))
    }

    /// Counts and keeps the ids of each row of a task. Returns `None` if they exceed the remaining budget of all tasks, or without memory.
    fn keep_task(&self, task: Range<usize>, counts: &mut [u32], budget: &AtomicUsize) -> Option<Vec<u32>> {
        let (mut ids, mut hits, first) = (Vec::new(), Vec::new(), task.start);
        self.try_for_each(task, |probe, segments| {
            let max_len = self.max_row_len(probe, segments).map_err(drop)?;
            if ids.len() + max_len > MAX_KEPT_PER_TASK.min(budget.load(Ordering::Relaxed)) {
                return Err(());
            }
            memory::reserve_more(&mut ids, max_len, "pairs of a join").map_err(drop)?;
            let before = ids.len();
            self.append_row(probe, segments, &mut ids, &mut hits).map_err(drop)?;
            counts[probe - first] = (ids.len() - before) as u32;
            Ok(())
        })
        .ok()?;
        ids.shrink_to_fit();
        let spend = |budget: usize| budget.checked_sub(ids.len());
        budget.fetch_update(Ordering::Relaxed, Ordering::Relaxed, spend).ok()?;
        Some(ids)
    }

    /// Counts the ids of each probe position.
    fn count_rows(&self) -> Result<FirstSearch> {
        let mut counts: Vec<u32> = zeros(self.probe.ids.len(), "counts of rows")?;
        let slots = Parts::of_initialized(&mut counts);
        let tasks = self.tasks();
        parallel::try_for_each(tasks.num(), &|task| {
            self.try_for_each(tasks.get(task), |probe, segments| {
                // SAFETY: the probe positions of tasks do not overlap.
                unsafe { slots.write(probe, self.count_row(probe, segments)? as u32) };
                Ok(())
            })
        })?;
        Ok(FirstSearch { counts, tasks, kept: None })
    }

    /// Counts the ids of a row.
    fn count_row(&self, probe: usize, segments: &[Segment]) -> Result<u64> {
        match self.params.pairing {
            Pairing::All | Pairing::Swapped => self.count_near::<false>(probe, segments),
            // The point itself is near.
            Pairing::Both => Ok(self.count_near::<false>(probe, segments)? - 1),
            Pairing::Once => self.count_near::<true>(probe, segments),
        }
    }

    /// Returns an upper bound of the number of ids of a row: the points in all neighbor cells, or the exact number if a cell is overfull.
    fn max_row_len(&self, probe: usize, segments: &[Segment]) -> Result<usize> {
        if segments.iter().any(|segment| segment.tree.is_some()) {
            return Ok(self.count_row(probe, segments)? as usize);
        }
        Ok(segments.iter().map(|segment| segment.positions.len()).sum())
    }

    /// Appends the ids of a row to `to`, which has enough capacity.
    fn append_row(
        &self,
        probe: usize,
        segments: &[Segment],
        to: &mut Vec<u32>,
        hits: &mut Vec<u32>,
    ) -> Result<()> {
        let (ids, pairing, probe_id) = (&self.build.ids[..], self.params.pairing, self.probe_id(probe));
        self.search(probe, segments, &mut RowVisitor { ids, pairing, probe_id, to, hits })
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

    /// Writes a row if the result has it. Each row is written once.
    fn write(&self, row: u32, ids: &[u32]) {
        if self.has(row) {
            let [begin, end] = [0, 1].map(|end| self.offsets[row as usize + end] as usize);
            // SAFETY: offsets increase up to the number of ids, so rows do not overlap; a row has one probe point, which one task visits
            // once.
            unsafe { self.ids.part(begin..end) }.write_copy_of_slice(ids);
        }
    }
}

/// Appends the ids of near points to a row.
struct RowVisitor<'a> {
    ids: &'a [u32],
    pairing: Pairing,
    probe_id: u32,
    to: &'a mut Vec<u32>,
    /// Positions of near points in an overfull cell.
    hits: &'a mut Vec<u32>,
}

impl<C: Float, const D: usize> MatchVisitor<C, D> for RowVisitor<'_> {
    #[inline(always)]
    fn visit(&mut self, position: usize) {
        let id = self.ids[position];
        if self.pairing.includes(id, self.probe_id) {
            self.to.push(id);
        }
    }

    fn visit_overfull_cell(
        &mut self,
        sides: &JoinSides<'_, C, D>,
        tree: Subtree<'_, C, D>,
        positions: Range<usize>,
        point: &[C; D],
    ) -> Result<()> {
        let max_hits = positions.len() / SCAN_FRACTION;
        self.hits.clear();
        memory::reserve_more(self.hits, max_hits, "near points of an overfull cell")?;
        let mut hits =
            Hits { positions: self.hits, max_hits, cell_len: positions.len(), is_whole_cell: false };
        let are_few = tree.search(point, sides.params, &mut hits).is_continue();
        if hits.is_whole_cell {
            positions.for_each(|position| MatchVisitor::<C, D>::visit(self, position));
        } else if are_few {
            self.hits.sort_unstable();
            for hit in 0..self.hits.len() {
                MatchVisitor::<C, D>::visit(self, self.hits[hit] as usize);
            }
        } else {
            sides.scan(positions, point, self);
        }
        Ok(())
    }
}

/// Collects the positions of near points, until there are too many.
struct Hits<'a> {
    positions: &'a mut Vec<u32>,
    max_hits: usize,
    /// Number of points of the cell.
    cell_len: usize,
    /// True if all points of the cell are near.
    is_whole_cell: bool,
}

impl<C: Float, const D: usize> TreeVisitor<C, D> for Hits<'_> {
    fn filter(&self, _: &TreeNode<C, D>, _: usize) -> NodeFilter {
        NodeFilter::TakeAll
    }

    fn visit_all(&mut self, items: &[TreePoint<C, D>]) -> ControlFlow<()> {
        self.is_whole_cell = items.len() == self.cell_len;
        items.iter().try_for_each(|item| TreeVisitor::<C, D>::visit(self, item))
    }

    fn visit(&mut self, item: &TreePoint<C, D>) -> ControlFlow<()> {
        if self.positions.len() == self.max_hits {
            return ControlFlow::Break(());
        }
        self.positions.push(item.position);
        ControlFlow::Continue(())
    }
}

//! CPU backend of joins of boxes: both sets in the order of the cells of a grid with levels; each left box searches the right ones.

use super::grid::{as_boxes, grid_of_host_sets};
use super::params::BoxParams;
use crate::batches::{Delivery, RowSplitter};
use crate::error::Result;
use crate::join::cpu::best_pairs_of_tasks;
use crate::join::cpu::order::sort_by_code;
use crate::join::estimate::{self, Sample};
use crate::join::params::TopKParams;
use crate::join::rows::{ITEM_BYTES, VisitRows, deliver_rows, empty_rows, zeros};
use crate::join::scored::Score;
use crate::memory::{self, Parts};
use crate::parallel::{self, Ranges, TASK_ITEMS};
use crate::rows::Rows;
use kauri_kernels::join::best::pair;
use kauri_kernels::join::boxes::geometry::Aabb;
use kauri_kernels::join::boxes::levels::{Level, LevelGrid};
use kauri_kernels::join::cells::{NOWHERE, Pairing};
use kauri_kernels::thread::coord::Float;
use kauri_kernels::thread::words::Bits128;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Most left boxes of a task.
const TASK: usize = 1 << 10;
/// The first search keeps up to this many ids. If there are more, a second search finds them again.
const MAX_KEPT: usize = 1 << 24;
/// Average number of boxes of a directory entry.
const BOXES_PER_ENTRY: usize = 2;
/// Most keys that are compared one after another before the directory is used.
const MAX_STEPS: usize = 8;

/// Where the first runs of cells of the box before began.
type Hints = [usize; NUM_HINTS];
const NUM_HINTS: usize = 32;

/// Estimates the bytes of the sorted boxes of both sets with the directory, of `box_bytes` bytes each.
pub(super) fn sorted_bytes(lens: [usize; 2], box_bytes: u64) -> u64 {
    // Keys and ids, twice while they are sorted, then apart; the boxes; an entry of the directory.
    let of_box = 3 * size_of::<(u64, u32)>() as u64 + box_bytes + size_of::<u32>() as u64;
    (lens[0] as u64 + lens[1] as u64).saturating_mul(of_box)
}

/// Counts the pairs of two sets, given as [right, left].
pub(super) fn count<C: Float>(sets: [&[C]; 2], params: &BoxParams<C>) -> Result<u64> {
    with_exact_dims!(params.test.dims, D => {
        let sets = sets.map(as_boxes::<C, D>);
        let Some(grid) = grid_of_host_sets(sets, params) else { return Ok(0) };
        let [right, left] = sorted_sets(sets, &grid, params)?;
        Ok(CellBoxes::new(&grid, params, right)?.count(&left, params.pairing))
    })
}

/// Finds the rows of the left boxes.
pub(super) fn rows<C: Float>(sets: [&[C]; 2], params: &BoxParams<C>) -> Result<Rows> {
    with_exact_dims!(params.test.dims, D => {
        let sets = sets.map(as_boxes::<C, D>);
        let num_rows = sets[1].len();
        let Some(grid) = grid_of_host_sets(sets, params) else { return empty_rows(num_rows) };
        let [right, left] = sorted_sets(sets, &grid, params)?;
        CellBoxes::new(&grid, params, right)?.rows(&left, num_rows, 0, &|_| Ok(num_rows))
    })
}

/// Delivers the rows of the left boxes in batches.
pub(super) fn deliver<C: Float>(
    sets: [&[C]; 2],
    params: &BoxParams<C>,
    delivery: &mut Delivery<'_, '_>,
    visit: &mut VisitRows<'_>,
) -> Result<ControlFlow<()>> {
    with_exact_dims!(params.test.dims, D => {
        let [right, left] = sets.map(as_boxes::<C, D>);
        let splitter = RowSplitter::new(left.len(), ITEM_BYTES, delivery.limits());
        // All batches share one grid.
        let Some(grid) = grid_of_host_sets([right, left], params) else {
            return deliver_rows(splitter, delivery, visit, |rows, _| empty_rows(rows.len()));
        };
        let cells = CellBoxes::new(&grid, params, SortedBoxes::new(right, &grid)?)?;
        let sample = Sample::new(sets[1], params.width(), estimate::ROWS, params.pairing)?;
        let sorted_sample = SortedBoxes::new(as_boxes(&sample.coords), &grid)?;
        let num_pairs = cells.count(&sorted_sample, Pairing::All);
        let splitter = splitter.with_sample(sample.rows_with_items(num_pairs));
        deliver_rows(splitter, delivery, visit, |range, splitter| {
            let sorted = SortedBoxes::new(&left[range.clone()], &grid)?;
            cells.rows(&sorted, range.len(), range.start as u32, &|offsets| splitter.rows_that_fit(offsets))
        })
    })
}

/// Finds the best pairs in order, the best first; `k` is at least 1. The sets and their scores are given as [left, right].
pub(super) fn top_k<C: Float, S: Score>(
    [left, right]: [&[C]; 2],
    scores: [&[S]; 2],
    params: &TopKParams<BoxParams<C>>,
) -> Result<Vec<Bits128>> {
    with_exact_dims!(params.join.test.dims, D => {
        let sets = [right, left].map(as_boxes::<C, D>);
        let Some(grid) = grid_of_host_sets(sets, &params.join) else { return Ok(Vec::new()) };
        let [right, left] = sorted_sets(sets, &grid, &params.join)?;
        CellBoxes::new(&grid, &params.join, right)?.top_k(&left, scores, params)
    })
}

/// Boxes that may have pairs, in the order of their keys.
struct SortedBoxes<C, const D: usize> {
    keys: Vec<u64>,
    ids: Vec<u32>,
    boxes: Vec<Aabb<C, D>>,
}

impl<C: Float, const D: usize> SortedBoxes<C, D> {
    fn new(boxes: &[[[C; D]; 2]], grid: &LevelGrid<D>) -> Result<Self> {
        let aabb = |id: usize| Aabb { low: boxes[id][0], high: boxes[id][1] };
        let key = |id: usize| (grid.level_and_key(&aabb(id)).map_or(NOWHERE, |(_, key)| key), id as u32);
        let mut order = parallel::collect(boxes.len(), TASK_ITEMS, "cells of boxes", key)?;
        order.retain(|&(key, _)| key != NOWHERE);
        sort_by_code(&mut order, grid.key_bits())?;
        let len = order.len();
        Ok(Self {
            keys: parallel::collect(len, TASK_ITEMS, "cells of boxes", |i| order[i].0)?,
            ids: parallel::collect(len, TASK_ITEMS, "ids in the order of cells", |i| order[i].1)?,
            boxes: parallel::collect(len, TASK_ITEMS, "boxes in the order of cells", |i| {
                aabb(order[i].1 as usize)
            })?,
        })
    }
}

/// Sorts two sets; in a self join, one.
fn sorted_sets<C: Float, const D: usize>(
    [right, left]: [&[[[C; D]; 2]]; 2],
    grid: &LevelGrid<D>,
    params: &BoxParams<C>,
) -> Result<[Arc<SortedBoxes<C, D>>; 2]> {
    let sort = |set| SortedBoxes::new(set, grid).map(Arc::new);
    if params.pairing.is_self_join() {
        let sorted = sort(left)?;
        return Ok([sorted.clone(), sorted]);
    }
    let (right, left) = parallel::join(|| sort(right), || sort(left));
    Ok([right?, left?])
}

/// The right boxes with a directory of their keys.
struct CellBoxes<'a, C, const D: usize> {
    grid: &'a LevelGrid<D>,
    params: &'a BoxParams<C>,
    right: Arc<SortedBoxes<C, D>>,
    /// Entry `i` is the position of the first key whose highest bits are at least `i`.
    directory: Vec<u32>,
    /// A key shifted right by this is the index of its directory entry.
    shift: u32,
    /// The levels that have boxes, a bit for each.
    levels: u32,
}

impl<'a, C: Float, const D: usize> CellBoxes<'a, C, D> {
    fn new(
        grid: &'a LevelGrid<D>,
        params: &'a BoxParams<C>,
        right: impl Into<Arc<SortedBoxes<C, D>>>,
    ) -> Result<Self> {
        let right = right.into();
        let len = right.keys.len();
        let entry_bits = (len / BOXES_PER_ENTRY).max(1).ilog2().min(grid.key_bits());
        let shift = grid.key_bits() - entry_bits;
        let mut directory = memory::vec_with_capacity((1 << entry_bits) + 1, "directory of cells")?;
        let mut levels = 0;
        for (i, &key) in right.keys.iter().enumerate() {
            levels |= 1 << grid.level_of_key(key);
            while directory.len() as u64 <= key >> shift {
                directory.push(i as u32);
            }
        }
        directory.resize((1 << entry_bits) + 1, len as u32);
        Ok(Self { grid, params, right, directory, shift, levels })
    }

    /// Returns the position of the first key that is not less than `key`.
    #[inline(always)]
    fn lower_bound(&self, key: u64) -> usize {
        let entry = (key >> self.shift) as usize;
        let [begin, end] = [entry, entry + 1].map(|entry| self.directory[entry] as usize);
        begin + self.right.keys[begin..end].partition_point(|&other| other < key)
    }

    /// Returns [`lower_bound`](Self::lower_bound), which is most often at or soon after `hint`.
    #[inline(always)]
    fn lower_bound_from(&self, hint: usize, key: u64) -> usize {
        let keys = &self.right.keys[..];
        if hint == 0 || keys[hint - 1] < key {
            let near = keys[hint..].iter().take(MAX_STEPS).position(|&other| other >= key);
            if let Some(steps) = near {
                return hint + steps;
            }
        }
        self.lower_bound(key)
    }

    /// Calls `visit` with the position of each right box that may make a pair with a left box, and whether it does. Half of them do, in no
    /// order that a processor could predict, so `visit` should not branch on it. `hints` are of the left box before in the order of keys, and
    /// are updated; at first they are zeros.
    #[inline(always)]
    fn for_each_candidate(&self, left: &Aabb<C, D>, hints: &mut Hints, mut visit: impl FnMut(usize, bool)) {
        let Some([first, last]) = self.grid.cells(left) else { return };
        let SortedBoxes { keys, boxes, .. } = &*self.right;
        let (mut levels, mut hint) = (self.levels, 0);
        while levels != 0 {
            let level = levels.trailing_zeros();
            levels &= levels - 1;
            // A box begins at most one cell before the last cell that it touches.
            let range = [first.map(|cell| (cell >> level).saturating_sub(1)), last.map(|cell| cell >> level)];
            let mut row = Some(range[0]);
            while let Some(cell) = row {
                let begin = self.grid.key(level, cell);
                let end = begin + u64::from(range[1][0] - range[0][0]);
                let mut position = self.lower_bound_from(hints[hint], begin);
                hints[hint] = position;
                hint = (hint + 1) % NUM_HINTS;
                while position < keys.len() && keys[position] <= end {
                    visit(position, self.params.test.holds(left, &boxes[position]));
                    position += 1;
                }
                row = keys.get(position).and_then(|&key| next_row(self.grid, level, range, cell, key));
            }
        }
    }

    /// Counts the pairs of some left boxes, which must be the whole set in a self join.
    fn count(&self, left: &SortedBoxes<C, D>, pairing: Pairing) -> u64 {
        let total = AtomicU64::new(0);
        Ranges::even(left.ids.len(), TASK).for_each(&|task| {
            let mut count = 0_u64;
            let mut hints = [0; NUM_HINTS];
            for i in task {
                self.for_each_candidate(&left.boxes[i], &mut hints, |position, holds| {
                    count += u64::from(holds & pairing.includes(self.right.ids[position], left.ids[i]));
                });
            }
            total.fetch_add(count, Ordering::Relaxed);
        });
        total.into_inner()
    }

    /// Finds the best pairs of the left boxes, in order.
    fn top_k<S: Score>(
        &self,
        left: &SortedBoxes<C, D>,
        [left_scores, right_scores]: [&[S]; 2],
        params: &TopKParams<BoxParams<C>>,
    ) -> Result<Vec<Bits128>> {
        let ids = &self.right.ids;
        let ranks = parallel::collect(ids.len(), TASK_ITEMS, "ranks of scores", |i| {
            right_scores[ids[i] as usize].score_rank()
        })?;
        let extremes = [ranks.iter().min(), ranks.iter().max()].map(|rank| rank.copied().unwrap_or(0));
        let (scoring, tasks) = (&params.scoring, Ranges::even(left.ids.len(), TASK));
        let count = || self.count(left, Pairing::All);
        best_pairs_of_tasks(params.k, count, tasks.num(), |task, best| {
            let mut hints = [0; NUM_HINTS];
            for i in tasks.get(task) {
                let own_id = left.ids[i];
                let rank = left_scores[own_id as usize].score_rank();
                let pair_with = |other: u64, id| pair(scoring.rank(rank, other), own_id, id);
                // Every score function is monotone, so the best partner has the least or the greatest score.
                if extremes.into_iter().any(|other| best.accepts(pair_with(other, 0))) {
                    self.for_each_candidate(&left.boxes[i], &mut hints, |position, holds| {
                        if holds {
                            best.offer(pair_with(ranks[position], ids[position]));
                        }
                    });
                }
            }
        })
    }

    /// Finds the leading rows of `num_rows` left boxes, before which there are `num_before` others. `rows_that_fit` returns their number
    /// from the offsets of all rows.
    fn rows(
        &self,
        left: &SortedBoxes<C, D>,
        num_rows: usize,
        num_before: u32,
        rows_that_fit: &dyn Fn(&[u64]) -> Result<usize>,
    ) -> Result<Rows> {
        let tasks = Ranges::even(left.ids.len(), TASK);
        // Appends the row of a left box, in no particular order.
        let append_row = |i: usize, hints: &mut Hints, ids: &mut Vec<u32>| {
            let own_id = left.ids[i] + num_before;
            self.for_each_candidate(&left.boxes[i], hints, |position, holds| {
                let id = self.right.ids[position];
                let len = ids.len() + usize::from(holds & self.params.pairing.includes(id, own_id));
                ids.push(id);
                ids.truncate(len);
            });
        };
        let mut counts: Vec<u32> = zeros(num_rows, "lengths of rows")?;
        let count_parts = Parts::of_initialized(&mut counts);
        let num_kept = AtomicUsize::new(0);
        let kept = parallel::map(tasks.num(), 1, |task| {
            let (mut ids, mut hints) = (Vec::new(), [0; NUM_HINTS]);
            let keeps = num_kept.load(Ordering::Relaxed) <= MAX_KEPT;
            let mut num_found = 0;
            for i in tasks.get(task) {
                let begin = ids.len();
                append_row(i, &mut hints, &mut ids);
                let count = ids.len() - begin;
                num_found += count;
                if keeps {
                    ids[begin..].sort_unstable();
                } else {
                    ids.clear();
                }
                // SAFETY: each row is of one task.
                unsafe { count_parts.write(left.ids[i] as usize, count as u32) };
            }
            num_kept.fetch_add(num_found, Ordering::Relaxed);
            ids
        });
        let mut offsets = zeros(num_rows + 1, "offsets of rows")?;
        for (row, &count) in counts.iter().enumerate() {
            offsets[row + 1] = offsets[row] + u64::from(count);
        }
        offsets.truncate(rows_that_fit(&offsets)? + 1);
        let total = offsets.last().copied().unwrap_or(0);
        let len = usize::try_from(total).unwrap_or(usize::MAX);
        let mut ids = memory::vec_with_capacity(len, "pairs of a join")
            .map_err(|error| error.of_result(total, ITEM_BYTES))?;
        let parts = Parts::new(&mut ids.spare_capacity_mut()[..len]);
        let was_kept = num_kept.into_inner() <= MAX_KEPT;
        parallel::for_each(tasks.num(), &|task| {
            let (mut kept, mut found, mut hints) = (&kept[task][..], Vec::new(), [0; NUM_HINTS]);
            for i in tasks.get(task) {
                let row = left.ids[i] as usize;
                let items = if was_kept {
                    let (items, rest) = kept.split_at(counts[row] as usize);
                    kept = rest;
                    items
                } else {
                    found.clear();
                    if row + 1 < offsets.len() {
                        append_row(i, &mut hints, &mut found);
                    }
                    found.sort_unstable();
                    &found[..]
                };
                if row + 1 < offsets.len() {
                    let range: Range<usize> = offsets[row] as usize..offsets[row + 1] as usize;
                    // SAFETY: rows do not overlap.
                    unsafe { parts.part(range) }.write_copy_of_slice(items);
                }
            }
        });
        // SAFETY: every row has been written: boxes without a key have no pairs.
        unsafe { ids.set_len(len) };
        Ok(Rows::new(offsets, ids))
    }
}

/// Returns the first cell of the next row in a range of cells that may have boxes: a row is a run of cells along the first axis. `cell` is
/// in the row before it, and `key` is the first key after that row.
#[inline(always)]
fn next_row<const D: usize>(
    grid: &LevelGrid<D>,
    level: Level,
    [first, last]: [[u32; D]; 2],
    cell: [u32; D],
    key: u64,
) -> Option<[u32; D]> {
    if grid.level_of_key(key) != level {
        return None;
    }
    let bits = grid.bits - level;
    let mut next: [u32; D] =
        std::array::from_fn(|axis| (key >> (bits * axis as u32)) as u32 & (u32::MAX >> (32 - bits)));
    let begin = |next: &mut [u32; D], axis: usize| next[..axis].copy_from_slice(&first[..axis]);
    if D > 1 && (next[0] > last[0] || next[1..] == cell[1..]) {
        next[1] += 1;
    }
    next[0] = first[0];
    for axis in (1..D).rev() {
        if next[axis] < first[axis] {
            begin(&mut next, axis + 1);
            return Some(next);
        }
        if next[axis] > last[axis] {
            let above = (axis + 1..D).find(|&above| next[above] < last[above])?;
            next[above] += 1;
            begin(&mut next, above);
            return Some(next);
        }
    }
    (D > 1).then_some(next)
}

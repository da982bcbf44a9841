//! The CPU half: the same cells, gone through on all threads.

use super::Near;
use super::distance::{JoinedRows, ShowRows};
use super::estimate::{self, Sample};
use super::grid::grid_of;
use super::scored::Score;
use crate::batches::{Delivery, Rows};
use crate::error::{Error, Result};
use crate::memory::{self, Parts};
use crate::primitives::cpu::bounds::bounds;
use kauri_kernels::join::best::pair;
use kauri_kernels::join::grid::Grid;
use kauri_kernels::join::score::Scoring;
use kauri_kernels::thread::coord::Coord;
use kauri_kernels::thread::measure::along;
use kauri_kernels::thread::words::Bits128;
use rayon::prelude::*;
use std::collections::BinaryHeap;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Points of a set that one task goes through.
const TASK: usize = 1 << 10;
/// Bytes of a pair of a row.
const ITEM_BYTES: u64 = size_of::<u32>() as u64;

/// How many pairs there are.
pub(super) fn count<C: Coord>(dims: usize, coords: [&[C]; 2], near: &Near<C>) -> Result<u64> {
    with_exact_dims!(dims, D => {
        Ok(Sets::<C, D>::new(coords, near).map_or(0, |sets| sets.count()))
    })
}

/// The left points near each right point.
pub(super) fn rows<C: Coord>(dims: usize, coords: [&[C]; 2], near: &Near<C>) -> Result<JoinedRows> {
    with_exact_dims!(dims, D => match Sets::<C, D>::new(coords, near) {
        Some(sets) => sets.rows(coords[1].len() / D),
        None => Ok(JoinedRows::new(zeros(coords[1].len() / D + 1)?, Vec::new())),
    })
}

/// Delivers the left points near each right point, which has the row.
pub(super) fn deliver<C: Coord>(
    dims: usize,
    coords: [&[C]; 2],
    near: &Near<C>,
    delivery: &mut Delivery<'_, '_>,
    show: &mut ShowRows<'_>,
) -> Result<ControlFlow<()>> {
    with_exact_dims!(dims, D => deliver_of::<C, D>(coords, near, delivery, show))
}

fn deliver_of<C: Coord, const D: usize>(
    coords: [&[C]; 2],
    near: &Near<C>,
    delivery: &mut Delivery<'_, '_>,
    show: &mut ShowRows<'_>,
) -> Result<ControlFlow<()>> {
    let [set, rights] = coords.map(|coords| coords.as_chunks::<D>().0);
    let mut rows = Rows::new(rights.len(), ITEM_BYTES, delivery.limits());
    // One grid for all batches, so that their rows are in one order.
    let grid = grid_of_points([set, rights], near);
    let left = grid.map(|grid| (grid, Arc::new(Cells::new(set, &grid))));
    if let Some((grid, left)) = &left {
        let sample = Sample::new(D, coords[1], estimate::ROWS, near);
        let right = Arc::new(Cells::new(sample.coords.as_chunks::<D>().0, grid));
        let near = &sample.near(near);
        let count = Sets { grid: *grid, near, left: left.clone(), right, num_before: 0 }.count();
        rows = rows.expecting(sample.rows_with_items(count));
    }
    while let Some(part) = rows.next_part() {
        let (found, num_rows) = delivery.make(|| {
            let found = match &left {
                Some((grid, left)) => {
                    let (left, right) = (left.clone(), Arc::new(Cells::new(&rights[part.clone()], grid)));
                    Sets { grid: *grid, near, left, right, num_before: part.start as u32 }.rows(part.len())?
                }
                None => JoinedRows::new(zeros(part.len() + 1)?, Vec::new()),
            };
            let num_rows = rows.that_fit(found.offsets())?;
            Ok((found, num_rows))
        })?;
        let offsets = &found.offsets()[..=num_rows];
        let num_items = offsets[num_rows];
        rows.took(num_rows, num_items);
        let look = || show(part.start, offsets, &found.ids()[..num_items as usize]);
        let flow = delivery.hand_over(num_rows, num_items as usize, ITEM_BYTES, look);
        if flow.is_break() {
            return Ok(flow);
        }
    }
    Ok(ControlFlow::Continue(()))
}

fn zeros(len: usize) -> Result<Vec<u64>> {
    let mut zeros = memory::vec_with_capacity(len, "offsets of rows")?;
    zeros.resize(len, 0);
    Ok(zeros)
}

/// The best pairs, the best first.
pub(super) fn top_k<C: Coord, S: Score>(
    dims: usize,
    coords: [&[C]; 2],
    scores: [&[S]; 2],
    near: &Near<C>,
    scoring: &Scoring,
    k: usize,
) -> Result<Vec<Bits128>> {
    if k == 0 {
        return Ok(Vec::new());
    }
    with_exact_dims!(dims, D => {
        let Some(sets) = Sets::<C, D>::new(coords, near) else { return Ok(Vec::new()) };
        Ok(best_of(&sets, scores, scoring, k))
    })
}

fn best_of<C: Coord, S: Score, const D: usize>(
    sets: &Sets<'_, C, D>,
    scores: [&[S]; 2],
    scoring: &Scoring,
    k: usize,
) -> Vec<Bits128> {
    let ranks = |set: &Cells<C, D>, scores: &[S]| -> Vec<u64> {
        set.ids.par_iter().map(|&id| scores[id as usize].score_rank()).collect()
    };
    let ranks = [ranks(&sets.left, scores[0]), ranks(&sets.right, scores[1])];
    let extremes =
        [ranks[0].par_iter().min(), ranks[0].par_iter().max()].map(|rank| rank.map_or(0, |&rank| rank));
    // The complement of a rank that no better pairs need, of all tasks.
    let limit = AtomicU64::new(u64::MAX);
    let empty = BinaryHeap::<(u64, u64)>::new;
    let best = sets.tasks().fold(empty, |mut best, task| {
        let wanted = |right: usize| {
            let least = !limit.load(Ordering::Relaxed);
            scoring.lefts_for(least, ranks[1][right], extremes)
        };
        sets.each_with(
            task,
            wanted,
            |range, left| (range.0..=range.1).contains(&ranks[0][left]),
            |right, left| {
                let rank = scoring.rank(ranks[0][left], ranks[1][right]);
                let Bits128(rank, ids) = pair(rank, sets.left.ids[left], sets.right.ids[right]);
                keep(&mut best, (rank, ids), k);
                if best.len() == k
                    && let Some(worst) = best.peek()
                {
                    limit.fetch_min(worst.0, Ordering::Relaxed);
                }
            },
        );
        best
    });
    let best = best.reduce(empty, |mut a, b| {
        b.into_iter().for_each(|item| keep(&mut a, item, k));
        a
    });
    best.into_sorted_vec().into_iter().map(|(rank, ids)| Bits128(rank, ids)).collect()
}

/// Keeps an item if it is among the least `k`.
fn keep(best: &mut BinaryHeap<(u64, u64)>, item: (u64, u64), k: usize) {
    if best.len() < k {
        best.push(item);
    } else if let Some(mut worst) = best.peek_mut()
        && item < *worst
    {
        *worst = item;
    }
}

/// A set in the order of its cells.
struct Cells<C, const D: usize> {
    codes: Vec<u64>,
    ids: Vec<u32>,
    points: Vec<[C; D]>,
}

impl<C: Coord, const D: usize> Cells<C, D> {
    /// Without the points that are in no cell.
    fn new(points: &[[C; D]], grid: &Grid<D>) -> Self {
        let code = |(id, point): (usize, &[C; D])| Some((grid.code(grid.cell(*point)?), id as u32));
        let mut cells: Vec<_> = points.par_iter().enumerate().filter_map(code).collect();
        cells.par_sort_unstable();
        Self {
            codes: cells.par_iter().map(|cell| cell.0).collect(),
            ids: cells.par_iter().map(|cell| cell.1).collect(),
            points: cells.par_iter().map(|cell| points[cell.1 as usize]).collect(),
        }
    }
}

/// The grid of two sets, unless no two points can be near each other.
fn grid_of_points<C: Coord, const D: usize>(points: [&[[C; D]]; 2], near: &Near<C>) -> Option<Grid<D>> {
    if points.iter().any(|points| points.is_empty()) {
        return None;
    }
    let [left, right] = points.map(bounds);
    grid_of(D, left, right, near).map(|of| of.grid)
}

/// Two sets.
struct Sets<'a, C, const D: usize> {
    grid: Grid<D>,
    near: &'a Near<C>,
    left: Arc<Cells<C, D>>,
    /// The same if it is one set.
    right: Arc<Cells<C, D>>,
    /// Right points of the whole set that come before these.
    num_before: u32,
}

impl<'a, C: Coord, const D: usize> Sets<'a, C, D> {
    fn new(coords: [&[C]; 2], near: &'a Near<C>) -> Option<Self> {
        let points = coords.map(|coords| coords.as_chunks::<D>().0);
        let grid = grid_of_points(points, near)?;
        let left = Arc::new(Cells::new(points[0], &grid));
        let right = if near.is_one() { left.clone() } else { Arc::new(Cells::new(points[1], &grid)) };
        Some(Self { grid, near, left, right, num_before: 0 })
    }

    /// How many pairs there are.
    fn count(&self) -> u64 {
        let of_task = |task| {
            let mut count = 0;
            self.each(task, |_, _| count += 1);
            count
        };
        self.tasks().map(of_task).sum()
    }

    /// The left points near each right point.
    fn rows(&self, num_rows: usize) -> Result<JoinedRows> {
        let mut offsets = zeros(num_rows + 1)?;
        // Each task has its rows one after the other; then they go to their places.
        let found: Vec<_> = self
            .tasks()
            .map(|task| {
                let (mut counts, mut ids, first) = (vec![0_u32; task.len()], Vec::new(), task.start);
                let take = |right, left: usize| {
                    counts[right - first] += 1;
                    ids.push(self.left.ids[left]);
                };
                self.each(task, take);
                (first, counts, ids)
            })
            .collect();
        for (first, counts, _) in &found {
            for (i, &count) in counts.iter().enumerate() {
                offsets[self.right.ids[first + i] as usize + 1] = count.into();
            }
        }
        for row in 0..num_rows {
            offsets[row + 1] += offsets[row];
        }
        let (total, bytes) = (offsets[num_rows], offsets[num_rows].saturating_mul(ITEM_BYTES));
        let len = usize::try_from(total).unwrap_or(usize::MAX);
        let mut ids: Vec<u32> = memory::vec_with_capacity(len, "pairs of a join")
            .map_err(|error: Error| error.of_result(total, bytes))?;
        let parts = Parts::new(&mut ids.spare_capacity_mut()[..len]);
        found.into_par_iter().for_each(|(first, counts, from)| {
            let mut begin = 0;
            for (i, &count) in counts.iter().enumerate() {
                let (to, count) = (offsets[self.right.ids[first + i] as usize] as usize, count as usize);
                // SAFETY: rows are apart, and each has one right point.
                unsafe { parts.part(to..to + count) }.write_copy_of_slice(&from[begin..begin + count]);
                begin += count;
            }
        });
        // SAFETY: the rows are all that there is.
        unsafe { ids.set_len(len) };
        Ok(JoinedRows::new(offsets, ids))
    }

    /// Ranges of right places.
    fn tasks(&self) -> impl IndexedParallelIterator<Item = Range<usize>> + '_ {
        let len = self.right.ids.len();
        (0..len.div_ceil(TASK)).into_par_iter().map(move |task| task * TASK..len.min((task + 1) * TASK))
    }

    /// Calls `take` with the places of the pairs of some right places.
    fn each(&self, rights: Range<usize>, take: impl FnMut(usize, usize)) {
        self.each_with(rights, |_| Some(()), |_, _| true, take);
    }

    /// The same of right places of which `of_right` makes something, and of left places that this wants.
    fn each_with<T>(
        &self,
        rights: Range<usize>,
        of_right: impl Fn(usize) -> Option<T>,
        wanted: impl Fn(&T, usize) -> bool,
        mut take: impl FnMut(usize, usize),
    ) {
        let (mut runs, mut code) = (Vec::new(), None);
        for right in rights {
            let Some(of) = of_right(right) else { continue };
            let (point, id) = (&self.right.points[right], self.right.ids[right]);
            if code != Some(self.right.codes[right]) {
                code = Some(self.right.codes[right]);
                self.runs(point, &mut runs);
            }
            for run in &runs {
                for left in run.clone() {
                    let other = &self.left.points[left];
                    let distance =
                        self.near.norm.put_together(D, |axis| along(other[axis], point[axis], C::ZERO));
                    if distance <= self.near.bound
                        && wanted(&of, left)
                        && self.near.pairing.takes(self.left.ids[left], id + self.num_before)
                    {
                        take(right, left);
                    }
                }
            }
        }
    }

    /// The left places in the runs of cells around a point.
    fn runs(&self, point: &[C; D], runs: &mut Vec<Range<usize>>) {
        runs.clear();
        let Some(cell) = self.grid.cell(*point) else { return };
        for which in 0..self.grid.num_runs() {
            let Some((first, last)) = self.grid.run(cell, which) else { continue };
            let begin = self.left.codes.partition_point(|&code| code < first);
            let len = self.left.codes[begin..].partition_point(|&code| code <= last);
            if len > 0 {
                runs.push(begin..begin + len);
            }
        }
    }
}

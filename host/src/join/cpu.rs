//! The CPU half: the same cells, searched on all threads.

mod best;
mod cells;
mod crowds;
mod rows;
#[cfg(test)]
mod tests;

use super::Near;
use super::distance::ShowRows;
use super::estimate::{self, Sample};
use super::grid::grid_of;
use super::scored::Score;
use crate::batches::{Delivery, Rows};
use crate::error::Result;
use crate::primitives::cpu::bounds::bounds;
use crate::rows::Rows as ResultRows;
pub(super) use best::best_bytes;
use cells::{Cells, Segment};
pub(super) use crowds::crowd_bytes;
use crowds::{Item, Node, Search, Subtree, Wanted};
use kauri_kernels::join::cells::Pairing;
use kauri_kernels::join::grid::Grid;
use kauri_kernels::join::score::Scoring;
use kauri_kernels::thread::coord::Coord;
use kauri_kernels::thread::words::Bits128;
use rayon::prelude::*;
use rows::{ITEM_BYTES, zeros};
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

/// Most right points of a task.
const TASK: usize = 1 << 10;
/// Tasks of a thread if there are few right points: some take longer than others.
const TASKS_OF_THREAD: usize = 8;

/// Counts the pairs.
pub(super) fn count<C: Coord>(dims: usize, coords: [&[C]; 2], near: &Near<C>) -> Result<u64> {
    with_exact_dims!(dims, D => match Sets::<C, D>::new(coords, near)? {
        Some(sets) => sets.count(),
        None => Ok(0),
    })
}

/// Finds the left points near each right point.
pub(super) fn rows<C: Coord>(dims: usize, coords: [&[C]; 2], near: &Near<C>) -> Result<ResultRows> {
    with_exact_dims!(dims, D => match Sets::<C, D>::new(coords, near)? {
        Some(sets) => sets.rows(coords[1].len() / D),
        None => Ok(ResultRows::new(zeros(coords[1].len() / D + 1)?, Vec::new())),
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
    let left = match grid_of_points([set, rights], near) {
        Some(grid) => Some((grid, Arc::new(Cells::searchable(set, &grid)?))),
        None => None,
    };
    if let Some((grid, left)) = &left {
        let sample = Sample::new(D, coords[1], estimate::ROWS, near)?;
        let right = Arc::new(Cells::new(sample.coords.as_chunks::<D>().0, grid)?);
        let near = &sample.near(near);
        let count = Sets { grid: *grid, near, left: left.clone(), right, num_before: 0 }.count()?;
        rows = rows.expecting(sample.rows_with_items(count));
    }
    while let Some(part) = rows.next_part() {
        let found = delivery.make(|| match &left {
            Some((grid, left)) => {
                let right = Arc::new(Cells::new(&rights[part.clone()], grid)?);
                let num_before = part.start as u32;
                let sets = Sets { grid: *grid, near, left: left.clone(), right, num_before };
                sets.rows_that(part.len(), |offsets| rows.that_fit(offsets))
            }
            None => Ok(ResultRows::new(zeros(part.len() + 1)?, Vec::new())),
        })?;
        rows.took(found.len(), found.ids().len() as u64);
        let look = || show(part.start, found.offsets(), found.ids());
        let flow = delivery.hand_over(found.len(), found.ids().len(), ITEM_BYTES, look);
        if flow.is_break() {
            return Ok(flow);
        }
    }
    Ok(ControlFlow::Continue(()))
}

/// Finds the best pairs, the best first.
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
    with_exact_dims!(dims, D => match Sets::<C, D>::new(coords, near)? {
        Some(sets) => best::of(&sets, scores, scoring, k),
        None => Ok(Vec::new()),
    })
}

/// The grid of two sets, unless no two points can be near each other.
fn grid_of_points<C: Coord, const D: usize>(points: [&[[C; D]]; 2], near: &Near<C>) -> Option<Grid<D>> {
    if points.iter().any(|points| points.is_empty()) {
        return None;
    }
    let [left, right] = points.map(bounds);
    grid_of(D, left, right, near).map(|of| of.grid)
}

/// Two sets: the left one is searched around each point of the right one.
struct Sets<'a, C, const D: usize> {
    grid: Grid<D>,
    near: &'a Near<C>,
    left: Arc<Cells<C, D>>,
    /// The left one if a set is joined with itself.
    right: Arc<Cells<C, D>>,
    /// Right points of the whole set that come before these.
    num_before: u32,
}

/// What is done with the left points near a right point.
trait Take<C, const D: usize> {
    /// Takes the left point at a position.
    fn take(&mut self, left: usize);

    /// Takes what is near a point, of a crowded cell with these positions.
    fn take_crowd(
        &mut self,
        sets: &Sets<'_, C, D>,
        crowd: Subtree<'_, C, D>,
        lefts: Range<usize>,
        point: &[C; D],
    ) -> Result<()>;
}

impl<'a, C: Coord, const D: usize> Sets<'a, C, D> {
    fn new(coords: [&[C]; 2], near: &'a Near<C>) -> Result<Option<Self>> {
        let points = coords.map(|coords| coords.as_chunks::<D>().0);
        let Some(grid) = grid_of_points(points, near) else { return Ok(None) };
        let left = Arc::new(Cells::searchable(points[0], &grid)?);
        let right = if near.is_one() { left.clone() } else { Arc::new(Cells::new(points[1], &grid)?) };
        Ok(Some(Self { grid, near, left, right, num_before: 0 }))
    }

    /// Counts the pairs of all right points, which are a whole set if that is joined with itself.
    fn count(&self) -> Result<u64> {
        let of_task = |task| {
            let mut count = 0;
            self.try_each(
                task,
                |_| true,
                |right, segments| {
                    count += self.count_around::<false>(right, segments)?;
                    Ok(())
                },
            )?;
            Ok(count)
        };
        let count = self.tasks().map(of_task).try_reduce(|| 0, |a, b| Ok(a + b))?;
        // Each point is near itself. All other pairs are there both ways.
        let num_rights = self.right.ids.len() as u64;
        Ok(match self.near.pairing {
            Pairing::All | Pairing::Turned => count,
            Pairing::Both => count - num_rights,
            Pairing::Once => (count - num_rights) / 2,
        })
    }

    /// Counts the left points near a right point; `ONCE` those with a smaller id, or else all, also the point itself.
    fn count_around<const ONCE: bool>(&self, right: usize, segments: &[Segment]) -> Result<u64> {
        let mut count = Count::<ONCE> { ids: &self.left.ids, own: self.right_id(right), count: 0 };
        self.search(right, segments, &mut count)?;
        Ok(count.count)
    }

    /// The id of a right point in the whole set.
    fn right_id(&self, right: usize) -> u32 {
        self.right.ids[right] + self.num_before
    }

    /// Right points of a task.
    fn task_len(&self) -> usize {
        (self.right.ids.len() / (TASKS_OF_THREAD * rayon::current_num_threads())).clamp(1, TASK)
    }

    /// Ranges of right positions.
    fn tasks(&self) -> impl IndexedParallelIterator<Item = Range<usize>> + '_ {
        let (len, step) = (self.right.ids.len(), self.task_len());
        (0..len.div_ceil(step)).into_par_iter().map(move |task| task * step..len.min((task + 1) * step))
    }

    /// Visits some right positions that are wanted, each with the segments of the left set around it.
    fn try_each<E>(
        &self,
        rights: Range<usize>,
        wanted: impl Fn(usize) -> bool,
        mut visit: impl FnMut(usize, &[Segment]) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        let (mut segments, mut code) = (Vec::new(), None);
        for right in rights.filter(|&right| wanted(right)) {
            if code != Some(self.right.codes[right]) {
                code = Some(self.right.codes[right]);
                self.left.around(&self.grid, &self.right.points[right], &mut segments);
            }
            visit(right, &segments)?;
        }
        Ok(())
    }

    /// Takes the left points near a right point, in the order of the segments, of which those without a crowd are in the order of
    /// their positions.
    #[inline(always)]
    fn search(&self, right: usize, segments: &[Segment], take: &mut impl Take<C, D>) -> Result<()> {
        let point = &self.right.points[right];
        for Segment { lefts, crowd } in segments {
            match crowd {
                None => self.scan(lefts.clone(), point, take),
                Some(crowd) => take.take_crowd(self, self.left.crowds.tree(*crowd), lefts.clone(), point)?,
            }
        }
        Ok(())
    }

    /// Takes what is near a point, position after position.
    #[inline(always)]
    fn scan(&self, lefts: Range<usize>, point: &[C; D], take: &mut impl Take<C, D>) {
        for left in lefts {
            if self.near.has(&self.left.points[left], point) {
                take.take(left);
            }
        }
    }
}

/// Counts left points, `ONCE` those with a smaller id than the right one.
struct Count<'a, const ONCE: bool> {
    ids: &'a [u32],
    own: u32,
    count: u64,
}

impl<C: Coord, const D: usize, const ONCE: bool> Take<C, D> for Count<'_, ONCE> {
    #[inline(always)]
    fn take(&mut self, left: usize) {
        self.count += u64::from(!ONCE || self.ids[left] < self.own);
    }

    fn take_crowd(
        &mut self,
        sets: &Sets<'_, C, D>,
        crowd: Subtree<'_, C, D>,
        lefts: Range<usize>,
        point: &[C; D],
    ) -> Result<()> {
        // In a cell smaller ids have smaller positions.
        let below = match ONCE {
            true => lefts.start + self.ids[lefts].partition_point(|&id| id < self.own),
            false => lefts.end,
        };
        let mut search = CountBelow { below: below as u32, count: 0 };
        let _ = crowd.search(point, sets.near, &mut search);
        self.count += search.count;
        Ok(())
    }
}

/// Counts points of a crowded cell below a position.
struct CountBelow {
    below: u32,
    count: u64,
}

impl<C: Coord, const D: usize> Search<C, D> for CountBelow {
    fn wants(&self, node: &Node<C, D>, _: usize) -> Wanted {
        match node.lefts {
            [least, _] if least >= self.below => Wanted::None,
            [_, greatest] if greatest >= self.below => Wanted::Some,
            _ => Wanted::All,
        }
    }

    fn take_all(&mut self, items: &[Item<C, D>]) -> ControlFlow<()> {
        self.count += items.len() as u64;
        ControlFlow::Continue(())
    }

    fn take(&mut self, item: &Item<C, D>) -> ControlFlow<()> {
        self.count += u64::from(item.left < self.below);
        ControlFlow::Continue(())
    }
}

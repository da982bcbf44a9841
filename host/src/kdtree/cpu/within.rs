//! The points within a distance of each query, or in each box: a walk in order, many at a time.

use kauri_kernels::thread::coord::Coord;
use kauri_kernels::thread::measure::along_to_range;
use rayon::prelude::*;
use std::borrow::Cow;

use super::walk::{Nodes, Rules, next_axis};
use crate::error::Result;
use crate::kdtree::within::Found;
use crate::memory;

/// Rows that one task fills.
const BATCH: usize = 64;

/// What a row's points are looked for by.
pub(super) trait Look<C: Coord, const D: usize>: Sync {
    /// Number of rows.
    fn len(&self) -> usize;
    /// The distance of a point, if row `row` takes it.
    fn distance(&self, row: usize, point: &[C; D], id: u32) -> Option<C>;
    /// False if the row takes nothing between two corners.
    fn reaches(&self, row: usize, low: &[C; D], high: &[C; D]) -> bool;
    /// The corners of all that may be reached.
    fn corners(&self) -> [[C; D]; 2] {
        [[C::ZERO - C::INFINITY; D], [C::INFINITY; D]]
    }
}

/// Up to a distance from queries.
pub(super) struct Around<'a, C: Coord, const D: usize> {
    pub(super) rules: Rules<'a, C, D>,
    pub(super) queries: Cow<'a, [[C; D]]>,
    /// Query `i` leaves out point `i`.
    pub(super) except_itself: bool,
}

impl<C: Coord, const D: usize> Look<C, D> for Around<'_, C, D> {
    fn len(&self) -> usize {
        self.queries.len()
    }

    fn distance(&self, row: usize, point: &[C; D], id: u32) -> Option<C> {
        let except = if self.except_itself { row as u32 } else { u32::MAX };
        let distance = self.rules.distance(&self.queries[row], point);
        (distance <= self.rules.wanted.bound && self.rules.takes(id, except)).then_some(distance)
    }

    fn reaches(&self, row: usize, low: &[C; D], high: &[C; D]) -> bool {
        let (query, periods) = (&self.queries[row], &self.rules.periods);
        let along = |axis: usize| along_to_range(query[axis], low[axis], high[axis], periods[axis]);
        self.rules.wanted.norm.put_together(D, along) <= self.rules.wanted.bound
    }

    fn corners(&self) -> [[C; D]; 2] {
        self.rules.corners()
    }
}

/// In boxes.
pub(super) struct Inside<'a, C, const D: usize> {
    pub(super) boxes: &'a [[[C; D]; 2]],
    pub(super) mask: Option<&'a crate::kdtree::PointMask>,
}

impl<C: Coord, const D: usize> Look<C, D> for Inside<'_, C, D> {
    fn len(&self) -> usize {
        self.boxes.len()
    }

    fn distance(&self, row: usize, point: &[C; D], id: u32) -> Option<C> {
        (self.reaches(row, point, point) && self.mask.is_none_or(|mask| mask.takes(id))).then_some(C::ZERO)
    }

    fn reaches(&self, row: usize, low: &[C; D], high: &[C; D]) -> bool {
        let [least, greatest] = &self.boxes[row];
        (0..D).all(|axis| least[axis] <= high[axis] && low[axis] <= greatest[axis])
    }
}

/// How many points each row has.
pub(super) fn count<C: Coord, const D: usize>(
    tree: Nodes<'_, C, D>,
    look: &impl Look<C, D>,
) -> Result<Vec<u32>> {
    let mut counts = memory::vec_with_capacity(look.len(), "counts of points")?;
    (0..look.len())
        .into_par_iter()
        .with_min_len(BATCH)
        .map(|row| {
            let mut count = 0;
            walk(tree, look, row, &mut |_, _| count += 1);
            count
        })
        .collect_into_vec(&mut counts);
    Ok(counts)
}

/// The points of each row in the order of the tree.
pub(super) fn find<C: Coord, const D: usize>(
    tree: Nodes<'_, C, D>,
    look: &impl Look<C, D>,
) -> Result<Found<C>> {
    let counts = count(tree, look)?;
    let mut offsets = memory::vec_with_capacity(counts.len() + 1, "offsets of rows")?;
    let mut total = 0_u64;
    offsets.push(total);
    for count in counts {
        total += u64::from(count);
        offsets.push(total);
    }
    let entries = usize::try_from(total).unwrap_or(usize::MAX);
    let mut ids: Vec<u32> = memory::vec_with_capacity(entries, "ids of points found")?;
    let mut dist2: Vec<C> = memory::vec_with_capacity(entries, "distances of points found")?;
    ids.resize(entries, u32::MAX);
    dist2.resize(entries, C::INFINITY);
    let mut found = Found { offsets, ids, dist2 };
    found.rows_mut().into_par_iter().enumerate().with_min_len(BATCH).for_each(|(row, (ids, dist2))| {
        let mut entries = ids.iter_mut().zip(dist2);
        walk(tree, look, row, &mut |id, distance| {
            if let Some((to_id, to_distance)) = entries.next() {
                (*to_id, *to_distance) = (id, distance);
            }
        });
    });
    Ok(found)
}

/// Shows the points of a row, with their distances, in the order of the tree.
fn walk<C: Coord, const D: usize>(
    tree: Nodes<'_, C, D>,
    look: &impl Look<C, D>,
    row: usize,
    show: &mut impl FnMut(u32, C),
) {
    let [mut low, mut high] = look.corners();
    subtree(tree, look, row, 0, 0, &mut low, &mut high, show);
}

/// Those of the subtree of node `s`, which lies between two corners, on a level of `level_axis`.
#[allow(clippy::too_many_arguments)]
fn subtree<C: Coord, const D: usize>(
    tree: Nodes<'_, C, D>,
    look: &impl Look<C, D>,
    row: usize,
    s: usize,
    level_axis: usize,
    low: &mut [C; D],
    high: &mut [C; D],
    show: &mut impl FnMut(u32, C),
) {
    let Some(point) = tree.points.get(s) else { return };
    if !look.reaches(row, low, high) {
        return;
    }
    let (axis, next) = (tree.axis(s, level_axis), next_axis::<D>(level_axis));
    let greatest = std::mem::replace(&mut high[axis], point[axis]);
    subtree(tree, look, row, 2 * s + 1, next, low, high, show);
    high[axis] = greatest;
    if let Some(distance) = look.distance(row, point, tree.ids[s]) {
        show(tree.ids[s], distance);
    }
    let least = std::mem::replace(&mut low[axis], point[axis]);
    subtree(tree, look, row, 2 * s + 2, next, low, high, show);
    low[axis] = least;
}

//! The points within a distance of each query, or in each box: a walk in order, many at a time.

use kauri_kernels::thread::coord::Coord;
use rayon::prelude::*;
use std::ops::Range;

use crate::error::{Error, Result};
use crate::memory::{self, Parts};
use crate::query::cpu::order::{self, Order};
use crate::query::cpu::traversal::{Rules, Traversable};
use crate::query::within::RangeResult;
use crate::query::{PointMask, item_bytes};

/// Rows that are found together at most.
const MAX_ROWS: usize = 1 << 20;
/// What the first walk of a row finds is kept if the rows have at most so many points each, on average over a batch: up to 0.4 GB of
/// memory, twice that as it grows, in place of a second walk, which for few points costs as much as the first.
const KEPT_A_ROW: usize = 32;

/// What a row's points are looked for by.
pub(crate) trait RangePredicate<C: Coord, const D: usize>: Sync {
    /// What is known of the region of a subtree.
    type Region: Copy;
    /// That of the whole tree.
    const EVERYWHERE: Self::Region;

    /// Number of rows.
    fn len(&self) -> usize;
    /// A place that a row is looked for around.
    fn place(&self, row: usize) -> &[C; D];
    /// The distance of a point, if row `row` takes it.
    fn distance(&self, row: usize, point: &[C; D], id: u32) -> Option<C>;
    /// The parts of a region below and above a plane, unless the row takes nothing there.
    fn parts(&self, row: usize, region: Self::Region, axis: usize, plane: C) -> [Option<Self::Region>; 2];
    /// How many of the points between two corners the row takes.
    fn share(&self, row: usize, corners: &[[C; D]; 2]) -> Share;
}

/// How many of some points a row takes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Share {
    /// None of them.
    None,
    /// Perhaps some.
    Some,
    /// All of them.
    All,
}

/// What is done with the points of a row.
pub(crate) trait RangeVisitor<C> {
    /// Points are only counted.
    const COUNTS: bool;

    /// A point, with its distance.
    fn point(&mut self, id: u32, distance: C);
    /// So many points at once, if they are only counted.
    fn count(&mut self, _: u32) {}
}

impl<C, F: FnMut(u32, C)> RangeVisitor<C> for F {
    const COUNTS: bool = false;

    #[inline(always)]
    fn point(&mut self, id: u32, distance: C) {
        self(id, distance);
    }
}

/// How many points a row has.
struct Count(u32);

impl<C> RangeVisitor<C> for Count {
    const COUNTS: bool = true;

    #[inline(always)]
    fn point(&mut self, _: u32, _: C) {
        self.0 += 1;
    }

    fn count(&mut self, len: u32) {
        self.0 += len;
    }
}

/// Up to a distance from queries.
pub(crate) struct WithinDistance<'a, C: Coord, const D: usize> {
    pub(crate) rules: Rules<'a, C, D>,
    pub(crate) queries: &'a [[C; D]],
    /// Query `i` leaves out this point and `i` on.
    pub(crate) first_left_out: Option<u32>,
}

impl<C: Coord, const D: usize> WithinDistance<'_, C, D> {
    /// True if the rules are plain, and no point is left out.
    fn is_plain(&self) -> bool {
        self.rules.are_plain() && self.first_left_out.is_none()
    }

    /// How many points each row has.
    pub(crate) fn count(&self, tree: impl Traversable<C, D>) -> Result<Vec<u32>> {
        if self.first_left_out.is_some() && self.rules.wanted.mask.is_none() && tree.has_all() {
            // Whole subtrees are counted with the point that a query leaves out: itself, which is within every distance.
            let with_all = WithinDistance { rules: self.rules.clone(), first_left_out: None, ..*self };
            let mut counts = with_all.count(tree)?;
            counts.par_iter_mut().for_each(|count| *count -= 1);
            return Ok(counts);
        }
        if self.is_plain() {
            count(tree, &ByDistance::<C, D, true>(self))
        } else {
            count(tree, &ByDistance::<C, D, false>(self))
        }
    }

    /// The points of each row in the order of the tree.
    pub(crate) fn find(&self, tree: impl Traversable<C, D>) -> Result<RangeResult<C>> {
        if self.is_plain() {
            find(tree, &ByDistance::<C, D, true>(self))
        } else {
            find(tree, &ByDistance::<C, D, false>(self))
        }
    }
}

/// Points within a distance of queries, `PLAIN` or by all rules.
struct ByDistance<'a, C: Coord, const D: usize, const PLAIN: bool>(&'a WithinDistance<'a, C, D>);

impl<C: Coord, const D: usize, const PLAIN: bool> RangePredicate<C, D> for ByDistance<'_, C, D, PLAIN> {
    /// The distances of the query along the axes.
    type Region = [C; D];
    const EVERYWHERE: [C; D] = [C::ZERO; D];

    fn len(&self) -> usize {
        self.0.queries.len()
    }

    fn place(&self, row: usize) -> &[C; D] {
        &self.0.queries[row]
    }

    #[inline(always)]
    fn distance(&self, row: usize, point: &[C; D], id: u32) -> Option<C> {
        let WithinDistance { rules, queries, first_left_out } = self.0;
        let except = first_left_out.map_or(u32::MAX, |first| first + row as u32);
        let distance = rules.distance::<PLAIN>(&queries[row], point);
        (distance <= rules.wanted.bound && rules.takes::<PLAIN>(id, except)).then_some(distance)
    }

    #[inline(always)]
    fn parts(&self, row: usize, region: [C; D], axis: usize, plane: C) -> [Option<[C; D]>; 2] {
        let (rules, query) = (&self.0.rules, &self.0.queries[row]);
        let (beyond, bound) = rules.beyond::<PLAIN>(query, region, axis, plane);
        let far = (bound <= rules.wanted.bound).then_some(beyond);
        if query[axis] > plane { [far, Some(region)] } else { [Some(region), far] }
    }

    #[inline(always)]
    fn share(&self, row: usize, corners: &[[C; D]; 2]) -> Share {
        let WithinDistance { rules, queries, first_left_out } = self.0;
        let (query, bound) = (&queries[row], rules.wanted.bound);
        if rules.distance_to_box::<PLAIN>(query, corners) > bound {
            return Share::None;
        }
        let takes_each = first_left_out.is_none() && rules.wanted.mask.is_none();
        if takes_each && rules.farthest_in_box(query, corners) <= bound { Share::All } else { Share::Some }
    }
}

/// In boxes.
pub(crate) struct InsideBoxes<'a, C, const D: usize> {
    pub(crate) boxes: &'a [[[C; D]; 2]],
    pub(crate) mask: Option<&'a PointMask>,
}

impl<C: Coord, const D: usize> RangePredicate<C, D> for InsideBoxes<'_, C, D> {
    type Region = ();
    const EVERYWHERE: () = ();

    fn len(&self) -> usize {
        self.boxes.len()
    }

    fn place(&self, row: usize) -> &[C; D] {
        &self.boxes[row][0]
    }

    #[inline(always)]
    fn distance(&self, row: usize, point: &[C; D], id: u32) -> Option<C> {
        let [least, greatest] = &self.boxes[row];
        let inside = (0..D).all(|axis| least[axis] <= point[axis] && point[axis] <= greatest[axis]);
        (inside && self.mask.is_none_or(|mask| mask.takes(id))).then_some(C::ZERO)
    }

    #[inline(always)]
    fn parts(&self, row: usize, (): (), axis: usize, plane: C) -> [Option<()>; 2] {
        let [least, greatest] = &self.boxes[row];
        [(least[axis] <= plane).then_some(()), (plane <= greatest[axis]).then_some(())]
    }

    #[inline(always)]
    fn share(&self, row: usize, [low, high]: &[[C; D]; 2]) -> Share {
        let [least, greatest] = &self.boxes[row];
        if (0..D).any(|axis| high[axis] < least[axis] || greatest[axis] < low[axis]) {
            return Share::None;
        }
        let has_all = (0..D).all(|axis| least[axis] <= low[axis] && high[axis] <= greatest[axis]);
        if has_all && self.mask.is_none() { Share::All } else { Share::Some }
    }
}

/// How many points each row has.
pub(crate) fn count<C: Coord, const D: usize>(
    tree: impl Traversable<C, D>,
    look: &impl RangePredicate<C, D>,
) -> Result<Vec<u32>> {
    let mut counts = memory::vec_with_capacity(look.len(), "counts of points")?;
    for rows in order::blocks(look.len(), order::MAX_ORDERED) {
        let order = Order::new(tree, rows.clone(), |row| look.place(row))?;
        look_at(tree, look, &order, &rows, 0, &mut counts);
    }
    Ok(counts)
}

/// The points of each row in the order of the tree.
pub(crate) fn find<C: Coord, const D: usize>(
    tree: impl Traversable<C, D>,
    look: &impl RangePredicate<C, D>,
) -> Result<RangeResult<C>> {
    find_as_they_come(tree, look).map_err(|error| match error {
        Error::OutOfMemory { .. } => match count(tree, look) {
            // However many rows had been counted when memory ran out.
            Ok(counts) => {
                let count = counts.into_par_iter().map(u64::from).sum();
                error.of_result(count, count.saturating_mul(item_bytes::<C>()))
            }
            Err(_) => error,
        },
        other => other,
    })
}

fn find_as_they_come<C: Coord, const D: usize>(
    tree: impl Traversable<C, D>,
    look: &impl RangePredicate<C, D>,
) -> Result<RangeResult<C>> {
    let mut found = RangeResult { offsets: Vec::new(), ids: Vec::new(), dist2: Vec::new() };
    memory::reserve(&mut found.offsets, look.len() + 1, "offsets of rows")?;
    found.offsets.push(0);
    let mut counts = memory::vec_with_capacity(look.len().min(MAX_ROWS), "counts of points")?;
    for rows in order::blocks(look.len(), MAX_ROWS) {
        let order = Order::new(tree, rows.clone(), |row| look.place(row))?;
        counts.clear();
        let kept = look_at(tree, look, &order, &rows, KEPT_A_ROW, &mut counts);
        let mut total = found.ids.len() as u64;
        found.offsets.extend(counts.iter().map(|&count| {
            total += u64::from(count);
            total
        }));
        append(tree, look, &order, &kept, &mut found)?;
    }
    Ok(found)
}

/// The points of a batch of rows, one row behind the other.
struct Kept<C> {
    ids: Vec<u32>,
    dist2: Vec<C>,
}

/// Appends how many points each of some rows has, for which there is room. Returns the points of the batches that have at most so
/// many a row.
fn look_at<C: Coord, const D: usize>(
    tree: impl Traversable<C, D>,
    look: &impl RangePredicate<C, D>,
    order: &Order,
    rows: &Range<usize>,
    keep_a_row: usize,
    counts: &mut Vec<u32>,
) -> Vec<Option<Kept<C>>> {
    let room = Parts::new(&mut counts.spare_capacity_mut()[..rows.len()]);
    let kept = order.map(|_, batch| {
        let (max, mut total) = (batch.len() * keep_a_row, 0);
        let mut kept = Kept { ids: Vec::new(), dist2: Vec::new() };
        for row in batch.iter() {
            let before = total;
            if keep_a_row == 0 {
                let mut count = Count(0);
                tree.visit_range(look, row, &mut count);
                total += count.0 as usize;
            } else {
                tree.visit_range(look, row, &mut |id, distance| {
                    if total < max {
                        kept.ids.push(id);
                        kept.dist2.push(distance);
                    }
                    total += 1;
                });
            }
            let place = row - rows.start;
            // SAFETY: an order has every row once, so no two threads write the same place.
            let count = unsafe { room.part(place..place + 1) };
            count[0].write((total - before) as u32);
        }
        (total <= max).then_some(kept)
    });
    // SAFETY: every row has been written, and the slice above has shown that the capacity is there.
    unsafe { counts.set_len(counts.len() + rows.len()) };
    kept
}

/// Appends the points of some rows, the last that the offsets tell of: what was kept of them, or what another walk shows.
fn append<C: Coord, const D: usize>(
    tree: impl Traversable<C, D>,
    look: &impl RangePredicate<C, D>,
    order: &Order,
    kept: &[Option<Kept<C>>],
    RangeResult { offsets, ids, dist2 }: &mut RangeResult<C>,
) -> Result<()> {
    let before = ids.len();
    let end = offsets.last().map_or(0, |&end| usize::try_from(end).unwrap_or(usize::MAX));
    let more = (end - before) as u64;
    memory::check(more.saturating_mul(item_bytes::<C>()), "points found")?;
    memory::reserve(ids, end - before, "ids of points found")?;
    memory::reserve(dist2, end - before, "distances of points found")?;
    let ids_room = Parts::new(&mut ids.spare_capacity_mut()[..end - before]);
    let dist2_room = Parts::new(&mut dist2.spare_capacity_mut()[..end - before]);
    order.map(|i, batch| {
        let mut taken = 0;
        for row in batch.iter() {
            let range = offsets[row] as usize - before..offsets[row + 1] as usize - before;
            // SAFETY: an order has every row once, and no two rows have a place in common.
            let (ids, dist2) = unsafe { (ids_room.part(range.clone()), dist2_room.part(range)) };
            let mut entries = ids.iter_mut().zip(dist2);
            let mut write = |id, distance| {
                if let Some((to_id, to_distance)) = entries.next() {
                    to_id.write(id);
                    to_distance.write(distance);
                }
            };
            if let Some(kept) = &kept[i] {
                let row = taken..taken + (offsets[row + 1] - offsets[row]) as usize;
                taken = row.end;
                kept.ids[row.clone()].iter().zip(&kept.dist2[row]).for_each(|(&id, &dist2)| write(id, dist2));
            } else {
                tree.visit_range(look, row, &mut write);
            }
            // A walk shows as many points as it did before, so nothing is left.
            entries.for_each(|(id, distance)| {
                id.write(u32::MAX);
                distance.write(C::INFINITY);
            });
        }
    });
    // SAFETY: every place of every row has been written, and the slices above have shown that the capacity is there.
    unsafe {
        ids.set_len(end);
        dist2.set_len(end);
    }
    Ok(())
}

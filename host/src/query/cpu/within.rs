//! Range queries on the CPU: one in-order traversal per row, many in parallel.

use kauri_kernels::thread::coord::{Coord, Float};
use kauri_kernels::thread::point::widen;
use std::mem::MaybeUninit;
use std::ops::Range;

use crate::error::{Error, Result};
use crate::memory::{self, Parts};
use crate::parallel::Ranges;
use crate::query::PointMask;
use crate::query::cpu::order::{self, Order, Rows};
use crate::query::cpu::points;
use crate::query::cpu::queries::PointQueries;
use crate::query::cpu::traversal::Traversable;
use crate::query::options::ValidatedOptions;
use crate::query::within::{RangeResult, append_offsets};

/// Maximum rows that are processed together.
const MAX_ROWS: usize = 1 << 20;
/// The counting traversal keeps the points that it finds if the rows of a batch have at most this many points on average: up to 0.4 GB,
/// in place of a second traversal, which costs as much as the first for few points.
const KEPT_A_ROW: usize = 32;

/// Selects the points of each row of a range query: a shape that queries search, such as a ball or a box. `parts` and `share` may exclude
/// only points whose `measure` exceeds the `bound`.
pub(crate) trait RangePredicate<C: Coord, const D: usize>: Sync {
    /// The position of a subtree's cell relative to the row, as far as a traversal tracks it.
    type Region: Copy;
    /// The region of the whole tree.
    const EVERYWHERE: Self::Region;
    /// True if the result has the distances of the points.
    const HAS_DISTANCES: bool;

    /// Number of rows.
    fn len(&self) -> usize;
    /// Returns a location around which the row's points are.
    fn location(&self, row: usize) -> &[C; D];
    /// Returns the distance of a point from row `row`. The point belongs to the row if this is at most [`bound`](Self::bound), and the row
    /// [takes](Self::takes) its id.
    fn measure(&self, row: usize, point: &[C; D]) -> C::Distance;
    /// Returns the largest distance of points that belong to a row.
    fn bound(&self) -> C::Distance;
    /// True if a point with this id may belong to the row.
    fn takes(&self, row: usize, id: u32) -> bool;
    /// Returns the distance of a point if it belongs to the row.
    #[inline(always)]
    fn distance(&self, row: usize, point: &[C; D], id: u32) -> Option<C::Distance> {
        let distance = self.measure(row, point);
        (distance <= self.bound() && self.takes(row, id)).then_some(distance)
    }
    /// Returns the parts of a region below and above a plane; `None` for a part without points of the row.
    fn parts(
        &self,
        row: usize,
        region: Self::Region,
        axis: usize,
        plane: C::Distance,
    ) -> [Option<Self::Region>; 2];
    /// Returns how many of the points between two corners belong to the row.
    fn share(&self, row: usize, corners: &[[C::Distance; D]; 2]) -> Share;
}

/// How many of some points belong to a row.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Share {
    /// None of them.
    None,
    /// Perhaps some.
    Some,
    /// All of them.
    All,
}

/// Receives the points of a row.
pub(crate) trait RangeVisitor<C> {
    /// True if points are only counted.
    const COUNTS: bool;

    /// Takes a point with its distance.
    fn point(&mut self, id: u32, distance: C);
    /// Counts several points at once; called only if points are only counted.
    fn count(&mut self, _: u32) {}
}

/// Writes points to memory, as far as it goes, and counts all of them.
pub(crate) struct Sink<'a, C> {
    ids: &'a mut [MaybeUninit<u32>],
    dist2: &'a mut [MaybeUninit<C>],
    len: usize,
}

impl<C> RangeVisitor<C> for Sink<'_, C> {
    const COUNTS: bool = false;

    #[inline(always)]
    fn point(&mut self, id: u32, distance: C) {
        if let Some(to) = self.ids.get_mut(self.len) {
            to.write(id);
        }
        if let Some(to) = self.dist2.get_mut(self.len) {
            to.write(distance);
        }
        self.len += 1;
    }
}

/// A range query to a tree with a constant number of dimensions.
pub(crate) trait RangeSearch<C: Coord>: Sync {
    /// Number of points of the tree.
    fn num_points(&self) -> usize;
    /// Number of rows.
    fn len(&self) -> usize;
    /// Returns the number of distances in a result of `num_found` points: all of them, or none.
    fn num_distances(&self, num_found: usize) -> usize;
    /// Loads the location of a batch of rows into the cache.
    fn load(&self, batch: Rows<'_>);
    /// Returns the start bucket of a row.
    fn start_bucket(&self, row: usize) -> u32;
    /// Returns the number of points of a row.
    fn count(&self, row: usize) -> u32;
    /// Visits the points of a row in the order of the tree.
    fn find(&self, row: usize, sink: &mut Sink<'_, C::Distance>);
}

/// A tree and the predicate of a query.
pub(crate) struct RangeOf<T, L, const D: usize> {
    pub(crate) tree: T,
    pub(crate) predicate: L,
}

impl<C: Coord, T: Traversable<C, D>, L: RangePredicate<C, D>, const D: usize> RangeSearch<C>
    for RangeOf<T, L, D>
{
    fn num_points(&self) -> usize {
        self.tree.num_points()
    }

    fn len(&self) -> usize {
        self.predicate.len()
    }

    fn num_distances(&self, num_found: usize) -> usize {
        if L::HAS_DISTANCES { num_found } else { 0 }
    }

    fn load(&self, batch: Rows<'_>) {
        order::load(batch.iter().map(|row| self.predicate.location(row)));
    }

    fn start_bucket(&self, row: usize) -> u32 {
        self.tree.start_bucket(self.predicate.location(row))
    }

    fn count(&self, row: usize) -> u32 {
        let mut count = Count(0);
        self.tree.visit_range(&self.predicate, row, &mut count);
        count.0
    }

    fn find(&self, row: usize, sink: &mut Sink<'_, C::Distance>) {
        self.tree.visit_range(&self.predicate, row, sink);
    }
}

/// Counts the points of a row.
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

/// Calls `run` with the search for the points within the options' bound of each query.
fn with_distances<R, C: Coord, const D: usize>(
    tree: impl Traversable<C, D>,
    queries: &PointQueries<'_, C, D>,
    run: impl FnOnce(&dyn RangeSearch<C>) -> R,
) -> R {
    if queries.are_plain() {
        run(&RangeOf { tree, predicate: ByDistance::<C, D, true>(queries) })
    } else {
        run(&RangeOf { tree, predicate: ByDistance::<C, D, false>(queries) })
    }
}

/// Counts the points within the options' bound of each query.
pub(crate) fn count_within<C: Coord, const D: usize>(
    tree: impl Traversable<C, D>,
    queries: &PointQueries<'_, C, D>,
) -> Result<Vec<u32>> {
    if queries.first_excluded.is_some() && queries.rules.options.mask.is_none() && tree.has_all() {
        // Count whole subtrees including the excluded point, which is the query itself and within every distance.
        let queries = PointQueries { first_excluded: None, ..queries.clone() };
        let mut counts = with_distances(tree, &queries, count)?;
        counts.iter_mut().for_each(|count| *count -= 1);
        return Ok(counts);
    }
    with_distances(tree, queries, count)
}

/// Finds the points within the options' bound of each query, in the order of the tree.
pub(crate) fn find_within<C: Coord, const D: usize>(
    tree: impl Traversable<C, D>,
    queries: &PointQueries<'_, C, D>,
) -> Result<RangeResult<C::Distance>> {
    with_distances(tree, queries, find)
}

/// Selects points by distance; `PLAIN` requires plain rules.
struct ByDistance<'a, C: Coord, const D: usize, const PLAIN: bool>(&'a PointQueries<'a, C, D>);

impl<C: Coord, const D: usize, const PLAIN: bool> RangePredicate<C, D> for ByDistance<'_, C, D, PLAIN> {
    /// The offsets from the query along the axes.
    type Region = [C::Distance; D];
    const EVERYWHERE: [C::Distance; D] = [C::Distance::ZERO; D];
    const HAS_DISTANCES: bool = true;

    fn len(&self) -> usize {
        self.0.points.len()
    }

    fn location(&self, row: usize) -> &[C; D] {
        &self.0.points[row]
    }

    #[inline(always)]
    fn measure(&self, row: usize, point: &[C; D]) -> C::Distance {
        self.0.rules.distance::<PLAIN>(&self.0.points[row], point)
    }

    #[inline(always)]
    fn bound(&self) -> C::Distance {
        self.0.rules.options.bound
    }

    #[inline(always)]
    fn takes(&self, row: usize, id: u32) -> bool {
        self.0.rules.takes::<PLAIN>(id, self.0.excluded(row))
    }

    #[inline(always)]
    fn parts(
        &self,
        row: usize,
        region: [C::Distance; D],
        axis: usize,
        plane: C::Distance,
    ) -> [Option<[C::Distance; D]>; 2] {
        let (rules, query) = (&self.0.rules, &self.0.points[row]);
        let (beyond, bound) = rules.beyond::<PLAIN>(query, region, axis, plane);
        let far = (bound <= rules.options.bound).then_some(beyond);
        if query[axis].widen() > plane { [far, Some(region)] } else { [Some(region), far] }
    }

    #[inline(always)]
    fn share(&self, row: usize, corners: &[[C::Distance; D]; 2]) -> Share {
        let PointQueries { rules, points, first_excluded, .. } = self.0;
        let (query, bound) = (&points[row], rules.options.bound);
        if rules.distance_to_box::<PLAIN>(query, corners) > bound {
            return Share::None;
        }
        let takes_each = first_excluded.is_none() && rules.options.mask.is_none();
        if takes_each && rules.farthest_in_box(query, corners) <= bound { Share::All } else { Share::Some }
    }
}

/// Selects the points of a mask in each box.
pub(crate) struct InsideBoxes<'a, C, const D: usize> {
    boxes: &'a [[[C; D]; 2]],
    mask: Option<&'a PointMask>,
}

impl<'a, C: Coord, const D: usize> InsideBoxes<'a, C, D> {
    /// Takes the least and the greatest corner of each box, and the mask of the options.
    pub(crate) fn new(corners: &'a [C], options: &'a ValidatedOptions<C::Distance>) -> Self {
        Self { boxes: points(corners).as_chunks().0, mask: options.mask.as_ref() }
    }
}

impl<C: Coord, const D: usize> RangePredicate<C, D> for InsideBoxes<'_, C, D> {
    type Region = ();
    const EVERYWHERE: () = ();
    const HAS_DISTANCES: bool = false;

    fn len(&self) -> usize {
        self.boxes.len()
    }

    fn location(&self, row: usize) -> &[C; D] {
        &self.boxes[row][0]
    }

    #[inline(always)]
    fn measure(&self, row: usize, point: &[C; D]) -> C::Distance {
        let [least, greatest] = &self.boxes[row];
        let inside = |axis: usize| (least[axis] <= point[axis]) & (point[axis] <= greatest[axis]);
        if (0..D).fold(true, |all, axis| all & inside(axis)) {
            C::Distance::ZERO
        } else {
            C::Distance::INFINITY
        }
    }

    #[inline(always)]
    fn bound(&self) -> C::Distance {
        C::Distance::ZERO
    }

    #[inline(always)]
    fn takes(&self, _: usize, id: u32) -> bool {
        self.mask.is_none_or(|mask| mask.takes(id))
    }

    #[inline(always)]
    fn parts(&self, row: usize, (): (), axis: usize, plane: C::Distance) -> [Option<()>; 2] {
        let [least, greatest] = self.boxes[row].map(|corner| corner[axis].widen());
        [(least <= plane).then_some(()), (plane <= greatest).then_some(())]
    }

    #[inline(always)]
    fn share(&self, row: usize, [low, high]: &[[C::Distance; D]; 2]) -> Share {
        let [least, greatest] = self.boxes[row].map(widen);
        if (0..D).any(|axis| high[axis] < least[axis] || greatest[axis] < low[axis]) {
            return Share::None;
        }
        let has_all = (0..D).all(|axis| least[axis] <= low[axis] && high[axis] <= greatest[axis]);
        if has_all && self.mask.is_none() { Share::All } else { Share::Some }
    }
}

/// Counts the points of each row.
pub(crate) fn count<C: Coord>(search: &dyn RangeSearch<C>) -> Result<Vec<u32>> {
    let mut counts = memory::vec_with_capacity(search.len(), "counts of points")?;
    for rows in Ranges::new(search.len(), order::MAX_ORDERED).iter() {
        let order = order(search, rows.clone())?;
        let slots = Parts::new(&mut counts.spare_capacity_mut()[..rows.len()]);
        order.for_each(&|_, batch| {
            search.load(batch);
            for row in batch.iter() {
                // SAFETY: an order has every row once, so no two threads write the same count.
                unsafe { slots.write(row - rows.start, search.count(row)) };
            }
        });
        // SAFETY: every count has been written, and the slice above shows that the capacity is there.
        unsafe { counts.set_len(counts.len() + rows.len()) };
    }
    Ok(counts)
}

fn order<C: Coord>(search: &dyn RangeSearch<C>, rows: Range<usize>) -> Result<Order> {
    Order::new(search.num_points(), rows, &|row| search.start_bucket(row))
}

/// Returns the bytes of a found point.
fn item_bytes<C: Coord>(search: &dyn RangeSearch<C>) -> u64 {
    (size_of::<u32>() + search.num_distances(1) * size_of::<C::Distance>()) as u64
}

/// Finds the points of each row, in the order of the tree.
pub(crate) fn find<C: Coord>(search: &dyn RangeSearch<C>) -> Result<RangeResult<C::Distance>> {
    find_in_blocks(search).map_err(|error| match error {
        Error::OutOfMemory { .. } => match count(search) {
            // Count all rows: memory may have run out after some of them.
            Ok(counts) => error.of_result(counts.into_iter().map(u64::from).sum(), item_bytes(search)),
            Err(_) => error,
        },
        other => other,
    })
}

fn find_in_blocks<C: Coord>(search: &dyn RangeSearch<C>) -> Result<RangeResult<C::Distance>> {
    let mut found = RangeResult { offsets: Vec::new(), ids: Vec::new(), dist2: Vec::new() };
    memory::reserve(&mut found.offsets, search.len() + 1, "offsets of rows")?;
    found.offsets.push(0);
    let mut counts = memory::vec_with_capacity(search.len().min(MAX_ROWS), "counts of points")?;
    for rows in Ranges::new(search.len(), MAX_ROWS).iter() {
        let order = order(search, rows.clone())?;
        counts.clear();
        let kept = keep_rows(search, &order, &rows, &mut counts);
        append_offsets(&mut found.offsets, counts.iter().copied().map(u64::from));
        append(search, &order, &kept, &mut found)?;
    }
    Ok(found)
}

/// The points of a batch of rows, row after row.
struct Kept<C> {
    ids: Vec<u32>,
    dist2: Vec<C>,
}

/// Appends the count of each of some rows to `counts`, which has the capacity. Returns the points of those batches that have at most
/// [`KEPT_A_ROW`] points per row on average.
fn keep_rows<C: Coord>(
    search: &dyn RangeSearch<C>,
    order: &Order,
    rows: &Range<usize>,
    counts: &mut Vec<u32>,
) -> Vec<Option<Kept<C::Distance>>> {
    let mut kept: Vec<_> = (0..order.num_batches()).map(|_| None).collect();
    let kept_slots = Parts::of_initialized(&mut kept);
    let count_slots = Parts::new(&mut counts.spare_capacity_mut()[..rows.len()]);
    order.for_each(&|batch_number, batch| {
        let max = batch.len() * KEPT_A_ROW;
        let max_dist2 = search.num_distances(max);
        let mut kept = Kept { ids: Vec::with_capacity(max), dist2: Vec::with_capacity(max_dist2) };
        let (ids, dist2) = (kept.ids.spare_capacity_mut(), kept.dist2.spare_capacity_mut());
        let mut sink = Sink { ids: &mut ids[..max], dist2: &mut dist2[..max_dist2], len: 0 };
        search.load(batch);
        for row in batch.iter() {
            let before = sink.len;
            search.find(row, &mut sink);
            // SAFETY: an order has every row once, so no two threads write the same count.
            unsafe { count_slots.write(row - rows.start, (sink.len - before) as u32) };
        }
        let len = sink.len;
        if len <= max {
            // SAFETY: the sink has written all points, because there are at most `max`. Every batch has a slot of its own.
            unsafe {
                kept.ids.set_len(len);
                kept.dist2.set_len(search.num_distances(len));
                kept.ids.shrink_to_fit();
                kept.dist2.shrink_to_fit();
                kept_slots.write(batch_number, Some(kept));
            }
        }
    });
    // SAFETY: every count has been written, and the slice above shows that the capacity is there.
    unsafe { counts.set_len(counts.len() + rows.len()) };
    kept
}

/// Appends the points of the last rows of `offsets`: the kept points of a batch, or those that a second traversal finds.
fn append<C: Coord>(
    search: &dyn RangeSearch<C>,
    order: &Order,
    kept: &[Option<Kept<C::Distance>>],
    RangeResult { offsets, ids, dist2 }: &mut RangeResult<C::Distance>,
) -> Result<()> {
    let before = ids.len();
    let end = offsets.last().map_or(0, |&end| usize::try_from(end).unwrap_or(usize::MAX));
    let more = (end - before) as u64;
    memory::check(more.saturating_mul(item_bytes(search)), "points found")?;
    memory::reserve(ids, end - before, "ids of points found")?;
    let num_distances = search.num_distances(end - before);
    memory::reserve(dist2, num_distances, "distances of points found")?;
    let id_slots = Parts::new(&mut ids.spare_capacity_mut()[..end - before]);
    let dist2_slots = Parts::new(&mut dist2.spare_capacity_mut()[..num_distances]);
    order.for_each(&|i, batch| {
        let mut taken = 0;
        for row in batch.iter() {
            let range = offsets[row] as usize - before..offsets[row + 1] as usize - before;
            let len = range.len();
            let distances = search.num_distances(range.start)..search.num_distances(range.end);
            // SAFETY: an order has every row once, and rows do not overlap.
            let (ids, dist2) = unsafe { (id_slots.part(range), dist2_slots.part(distances)) };
            if let Some(kept) = &kept[i] {
                ids.write_copy_of_slice(&kept.ids[taken..taken + len]);
                dist2.write_copy_of_slice(&kept.dist2[search.num_distances(taken)..][..dist2.len()]);
                taken += len;
                continue;
            }
            let mut sink = Sink { ids: &mut *ids, dist2: &mut *dist2, len: 0 };
            search.find(row, &mut sink);
            // The second traversal finds as many points as the first, so no entry is left.
            let found = sink.len.min(len);
            ids[found..].iter_mut().for_each(|id| {
                id.write(u32::MAX);
            });
            dist2.iter_mut().skip(found).for_each(|distance| {
                distance.write(C::Distance::INFINITY);
            });
        }
    });
    // SAFETY: every entry of every row has been written, and the slices above show that the capacity is there.
    unsafe {
        ids.set_len(end);
        dist2.set_len(search.num_distances(end));
    }
    Ok(())
}

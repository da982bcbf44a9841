//! Queries and their options.

use kauri_kernels::thread::coord::{Coord, Float};
pub use kauri_kernels::thread::measure::Norm;
use kauri_kernels::thread::point::widen;
use std::sync::Arc;

use crate::error::{Error, Result, check_len};
use crate::memory;
use crate::point::{DistanceOf, Point, check_each};
use crate::query::backend::ValidatedQueries;

/// Up to this many queries are compared with periods on the calling thread.
const SEQUENTIAL: usize = 1 << 12;

/// The queries of a call: points, or all points of the index.
///
/// A slice, array or `Vec` of points converts to it. A self-query takes no second copy of the points, and can exclude each point from its
/// own row.
///
/// ```
/// use kauri::query::{Queries, QueryOptions};
/// use kauri::{Device, KdTree, KdTreeOptions, SpatialIndex};
/// let points = [[0.0f32, 0.0], [3.0, 4.0], [1.0, 0.0]];
/// let tree = KdTree::build(&Device::cpu(), &points, &KdTreeOptions::default())?;
/// let others = Queries::SelfQuery { include_self: false };
/// let near = tree.nearest_with(others, 1, &QueryOptions::default())?;
/// assert_eq!(near.ids(), [2, 2, 0]); // the nearest other point of points 0, 1 and 2
/// # Ok::<(), kauri::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub enum Queries<'a, P> {
    /// These points; each has a row of the result.
    Points(&'a [P]),
    /// All points of the index; the row of a point is its id.
    SelfQuery {
        /// A point is its own neighbor; otherwise it is excluded from its row.
        include_self: bool,
    },
}

impl<'a, P, T: AsRef<[P]> + ?Sized> From<&'a T> for Queries<'a, P> {
    fn from(points: &'a T) -> Self {
        Self::Points(points.as_ref())
    }
}

/// Options of a query. The default is the Euclidean distance to all points, with no limit.
///
/// ```
/// use kauri::query::{Norm, PointMask, QueryOptions};
/// use kauri::{Device, KdTree, KdTreeOptions, SpatialIndex};
/// let points = [[0.0f32, 0.0], [3.0, 4.0], [1.0, 0.0]];
/// let tree = KdTree::build(&Device::cpu(), &points, &KdTreeOptions::default())?;
///
/// // Points 1 and 2 only, up to 2 away on each axis, where the x axis repeats after 4.
/// let mask = PointMask::from_fn(points.len(), |id| id > 0)?;
/// let options = QueryOptions::default().norm(Norm::Chebyshev).periods([4.0, 0.0]).radius(2.0).mask(mask);
/// let near = tree.nearest_with(&[[3.5, 0.0]], 3, &options)?;
/// assert_eq!((near.row(0).ids(), near.row(0).dist2()), (&[2][..], &[1.5][..]));
/// # Ok::<(), kauri::Error>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct QueryOptions<P: Point> {
    /// The norm. Results hold distances under [`Norm::Manhattan`] and [`Norm::Chebyshev`], and squared distances under [`Norm::Euclidean`].
    pub norm: Norm,
    /// The period of each axis of a periodic space; 0 for an axis that is not periodic. A query more than a period away from a point is
    /// [`Error::BeyondPeriod`]. Queries in device memory are not checked, and their rows are wrong then.
    pub periods: Option<Vec<DistanceOf<P>>>,
    /// Finds only points within this distance, inclusive; for [`LonLat`](crate::LonLat) in meters. Calls with an argument `radius` use
    /// their argument instead. Its square is rounded in the type of
    /// the coordinates, for integers `f64`.
    pub radius: Option<DistanceOf<P>>,
    /// Finds only these points.
    pub mask: Option<PointMask>,
    /// Consecutive queries are near each other already, so a GPU need not sort them. Results do not depend on it.
    pub coherent: bool,
    /// How a GPU traverses the tree. Results do not depend on it.
    pub traversal: Traversal,
    /// Sorts the points of each range query by (distance, id); otherwise, and in device memory, they are in the order of the tree. (Nearest
    /// neighbors are always sorted.)
    pub sorted: bool,
}

/// How a GPU traverses a tree. Results do not depend on it. The CPU has one traversal of its own.
///
/// ```
/// use kauri::query::{QueryOptions, Traversal};
/// use kauri::{Device, KdTree, KdTreeOptions, SpatialIndex};
/// let points = [[0.0f32, 0.0], [3.0, 4.0], [1.0, 0.0]];
/// let tree = KdTree::build(&Device::best()?, &points, &KdTreeOptions::default())?;
/// let brute_force = QueryOptions::default().traversal(Traversal::BruteForce);
/// assert_eq!(tree.nearest_with(&points, 2, &brute_force)?, tree.nearest(&points, 2)?);
/// # Ok::<(), kauri::Error>(())
/// ```
///
/// The feature `research` adds the traversals node by node of published works: `kauri::research::query`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Traversal {
    /// [`BruteForce`](Self::BruteForce) for a few points, otherwise [`Buckets`](Self::Buckets).
    #[default]
    Auto,
    /// Descends by bounding boxes to buckets of up to 16 points.
    Buckets,
    /// Compares each query with every point.
    BruteForce,
    /// Visits node by node, without a stack. This traversal and those below are for the nearest of all points under the Euclidean norm;
    /// other queries use [`Buckets`](Self::Buckets).
    #[cfg(feature = "research")]
    StackFree,
    /// Visits node by node, with a stack of the distances to split planes.
    #[cfg(feature = "research")]
    Stack,
    /// Visits node by node, with a stack of the distances to the closest corners of cells.
    #[cfg(feature = "research")]
    ClosestCorner,
}

impl<P: Point> Default for QueryOptions<P> {
    fn default() -> Self {
        Self {
            norm: Norm::Euclidean,
            periods: None,
            radius: None,
            mask: None,
            coherent: false,
            traversal: Traversal::Auto,
            sorted: false,
        }
    }
}

impl<P: Point> QueryOptions<P> {
    setters! {
        /// Sets [`norm`](Self::norm).
        norm: Norm;

        /// Sets [`periods`](Self::periods), one per axis.
        periods: impl Into<Vec<DistanceOf<P>>> = Some(periods.into());

        /// Sets [`radius`](Self::radius).
        radius: DistanceOf<P> = Some(radius);

        /// Sets [`mask`](Self::mask).
        mask: PointMask = Some(mask);
    }

    /// Sets [`coherent`](Self::coherent).
    pub fn coherent(mut self) -> Self {
        self.coherent = true;
        self
    }

    /// Sets [`sorted`](Self::sorted).
    pub fn sorted(mut self) -> Self {
        self.sorted = true;
        self
    }

    /// Sets [`traversal`](Self::traversal).
    pub fn traversal(mut self, traversal: Traversal) -> Self {
        self.traversal = traversal;
        self
    }
}

/// A set of points, for queries that find no other points. It has a bit for each id, and is cheap to clone.
///
/// ```
/// use kauri::query::{PointMask, QueryOptions};
/// use kauri::{Device, KdTree, KdTreeOptions, SpatialIndex};
/// let (hotels, is_open) = ([[0.0f32, 0.0], [3.0, 4.0], [1.0, 0.0]], [false, true, true]);
/// let tree = KdTree::build(&Device::cpu(), &hotels, &KdTreeOptions::default())?;
/// let open = PointMask::from_fn(hotels.len(), |id| is_open[id as usize])?;
/// let nearest = tree.nearest_one_with(&[0.0, 0.0], &QueryOptions::default().mask(open))?;
/// assert_eq!(nearest.map(|hotel| hotel.id), Some(2));
/// # Ok::<(), kauri::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PointMask {
    /// Bit `id % 32` of word `id / 32` belongs to `id`.
    pub(crate) words: Arc<[u32]>,
    len: usize,
}

impl PointMask {
    /// Makes the set of the ids below `len` for which `takes` returns true; `len` is the number of points of the index.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn from_fn(len: usize, mut takes: impl FnMut(u32) -> bool) -> Result<Self> {
        let mut words: Vec<u32> = memory::filled(len.div_ceil(32), 0, "mask of points")?;
        for id in 0..len {
            words[id / 32] |= u32::from(takes(id as u32)) << (id % 32);
        }
        Ok(Self { words: words.into(), len })
    }

    /// Number of points, in the set or not.
    pub fn len(&self) -> usize {
        self.len
    }

    /// True if the mask is for an index without points.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// True if the point is in the set.
    pub fn takes(&self, id: u32) -> bool {
        has_bit(&self.words, id as usize)
    }

    /// Returns [`Error::Shape`] unless the mask is for `num_points` points.
    pub(crate) fn check(&self, num_points: usize) -> Result<()> {
        check_len("points of the mask", num_points, self.len)
    }
}

/// Validated options.
#[derive(Clone, Debug)]
pub struct ValidatedOptions<C> {
    pub(crate) norm: Norm,
    /// One period per axis, or empty.
    pub(crate) periods: Vec<C>,
    /// The largest distance of a result: the squared radius for the Euclidean norm.
    pub(crate) bound: C,
    /// True if the options had a radius.
    pub(crate) has_radius: bool,
    pub(crate) mask: Option<PointMask>,
    pub(crate) coherent: bool,
    pub(crate) traversal: Traversal,
}

impl<C: Float> ValidatedOptions<C> {
    /// Validates the options of queries to an index of `num_points` points.
    pub(crate) fn new<P: Point<Coord: Coord<Distance = C>>>(
        options: &QueryOptions<P>,
        num_points: usize,
    ) -> Result<Self> {
        let QueryOptions { norm, periods, radius, mask, coherent, traversal, sorted: _ } = options.clone();
        let bound = match radius {
            None => C::INFINITY,
            Some(radius) => checked_bound::<P>(radius, norm, "radius")?,
        };
        let periods = periods.unwrap_or_default();
        if !periods.is_empty() {
            check_len("periods of the axes", if P::KEEPS_AXES { P::DIMS } else { 0 }, periods.len())?;
        }
        for &period in &periods {
            checked_length(period, "period")?;
        }
        let validated =
            Self { norm, periods, bound, has_radius: radius.is_some(), mask, coherent, traversal };
        validated.mask.as_ref().map_or(Ok(()), |mask| mask.check(num_points))?;
        Ok(validated)
    }

    /// The default options with a mask.
    pub(crate) fn points(mask: Option<PointMask>) -> Self {
        let (periods, bound, traversal) = (Vec::new(), C::INFINITY, Traversal::default());
        let norm = Norm::default();
        Self { norm, periods, bound, has_radius: false, mask, coherent: false, traversal }
    }

    /// Returns [`Error::BeyondPeriod`] for the first query that is more than a period away from a corner of the bounding box of all points.
    /// `points_by_id` returns the points by id.
    pub(crate) fn check_queries<S: Coord<Distance = C>, const D: usize>(
        &self,
        queries: ValidatedQueries<'_, S>,
        corners: [[S; D]; 2],
        points_by_id: impl FnOnce() -> Result<PointsById<S>>,
    ) -> Result<()> {
        match queries.coords {
            Some(coords) => self.check_periods(coords.as_chunks().0, &[], "query", corners),
            // No two points are farther apart than the corners, so checking the corners is enough in most cases.
            None => self.check_periods(&corners, &[], "point", corners).or_else(|_| {
                let PointsById { coords, removed } = points_by_id()?;
                self.check_periods(coords.as_chunks().0, &removed, "point", corners)
            }),
        }
    }

    fn check_periods<S: Coord<Distance = C>, const D: usize>(
        &self,
        queries: &[[S; D]],
        removed: &[u32],
        what: &'static str,
        corners: [[S; D]; 2],
    ) -> Result<()> {
        let [low, high] = corners.map(widen);
        check_each(queries, SEQUENTIAL, |index, query| {
            if has_bit(removed, index) {
                return None;
            }
            let query = widen(*query);
            (0..D).find_map(|axis| {
                let period = self.periods[axis];
                let distance = (query[axis] - low[axis]).max(high[axis] - query[axis]);
                (period > C::ZERO && distance > period).then(|| Error::BeyondPeriod {
                    what,
                    index: index as u64,
                    axis,
                    distance: distance.to_f64(),
                    period: period.to_f64(),
                })
            })
        })
    }

    /// True for the Euclidean norm without periods.
    pub(crate) fn is_euclidean(&self) -> bool {
        self.norm == Norm::Euclidean && self.periods.is_empty()
    }
}

/// The points of an index by id.
pub(crate) struct PointsById<S> {
    /// The coordinates, point after point.
    pub(crate) coords: Vec<S>,
    /// A bit for each id: the point has been removed. Empty if no point has.
    pub(crate) removed: Vec<u32>,
}

/// True if the bits have the bit of an id.
pub(crate) fn has_bit(words: &[u32], id: usize) -> bool {
    words.get(id / 32).is_some_and(|word| word >> (id % 32) & 1 != 0)
}

/// Returns the largest distance of a result within a length. Validates the bound too, since a foreign point type may return anything.
pub(crate) fn checked_bound<P: Point>(
    length: DistanceOf<P>,
    norm: Norm,
    what: &'static str,
) -> Result<DistanceOf<P>> {
    checked_length(P::bound(checked_length(length, what)?, norm), what)
}

/// Returns the length, or an error if it is negative or NaN.
fn checked_length<C: Float>(length: C, what: &'static str) -> Result<C> {
    if length >= C::ZERO { Ok(length) } else { Err(Error::InvalidLength { what, value: length.to_f64() }) }
}

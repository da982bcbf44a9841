//! What queries ask for.

use kauri_kernels::thread::coord::Coord;
pub use kauri_kernels::thread::measure::Norm;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::memory;
use crate::point::{Point, check_each};
use crate::query::backend::ValidatedQueries;

/// Up to this many queries are compared with periods on the calling thread.
const SEQUENTIAL: usize = 1 << 12;

/// Where queries come from.
#[derive(Debug)]
pub enum Queries<'a, P> {
    /// These points, a row of the result each.
    Points(&'a [P]),
    /// The points of the tree, each of which is a query: the row of a point is that of its id.
    Own {
        /// A point is a neighbor of its own; otherwise it is left out of its row.
        itself: bool,
    },
}

impl<P> Clone for Queries<'_, P> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<P> Copy for Queries<'_, P> {}

impl<'a, P, T: AsRef<[P]> + ?Sized> From<&'a T> for Queries<'a, P> {
    fn from(points: &'a T) -> Self {
        Self::Points(points.as_ref())
    }
}

/// What a query asks for beside its points. The default: the Euclidean distance, all points, however far.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct QueryOptions<P: Point> {
    /// How distances are measured. Under [`Norm::Manhattan`] and [`Norm::Chebyshev`] results have the distances themselves, and
    /// under [`Norm::Euclidean`] their squares.
    pub norm: Norm,
    /// The space repeats after this much on each axis; 0 on an axis where it does not. No query may lie more than a period
    /// from a point: that is [`Error::BeyondPeriod`], and of queries in device memory, which are not looked at before, wrong rows.
    pub periods: Option<Vec<P::Coord>>,
    /// Only points up to this distance, inclusive; for [`LonLat`](crate::LonLat) in meters. Its square is rounded in the type of
    /// the coordinates, for integers `f64`.
    pub radius: Option<P::Coord>,
    /// Only these points.
    pub mask: Option<PointMask>,
    /// Queries that follow each other are near each other already, so that a GPU need not sort them. Results do not depend on
    /// it.
    pub coherent: bool,
    /// How a GPU goes through the tree; results do not depend on it.
    pub traversal: Traversal,
    /// Points within a distance are sorted by (distance, id); otherwise, and on a GPU's own buffers, they are in the order of the
    /// tree. (Nearest neighbors are always sorted.)
    pub sorted: bool,
}

/// How a GPU goes through a tree. All give the same results. The CPU has a walk of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Traversal {
    /// [`BruteForce`](Self::BruteForce) for a few points, otherwise [`Buckets`](Self::Buckets).
    #[default]
    Auto,
    /// Down to buckets of up to 16 points, by the boxes of the nodes above them.
    Buckets,
    /// Every point, without the tree.
    BruteForce,
    /// Every query goes node by node, without a stack (Wald 2022, *A Stack-Free Traversal Algorithm for Left-Balanced k-d
    /// Trees*). For the nearest of all points under the Euclidean norm only: otherwise, here and below, the walk is that of
    /// [`Buckets`](Self::Buckets).
    StackFree,
    /// The same with a stack of the distances to planes.
    Stack,
    /// The same with a stack of the distances to cells, the closest corners of which are kept.
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
    /// With this norm.
    pub fn norm(mut self, norm: Norm) -> Self {
        self.norm = norm;
        self
    }

    /// With these periods, one an axis.
    pub fn periods(mut self, periods: impl Into<Vec<P::Coord>>) -> Self {
        self.periods = Some(periods.into());
        self
    }

    /// Up to this distance.
    pub fn radius(mut self, radius: P::Coord) -> Self {
        self.radius = Some(radius);
        self
    }

    /// Of these points.
    pub fn mask(mut self, mask: PointMask) -> Self {
        self.mask = Some(mask);
        self
    }

    /// Of queries in a good order.
    pub fn coherent(mut self) -> Self {
        self.coherent = true;
        self
    }

    /// With sorted rows of points within a distance.
    pub fn sorted(mut self) -> Self {
        self.sorted = true;
        self
    }

    /// By this traversal.
    pub fn traversal(mut self, traversal: Traversal) -> Self {
        self.traversal = traversal;
        self
    }
}

/// A set of points, a bit for each by its id. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PointMask {
    words: Arc<[u32]>,
    len: usize,
}

impl PointMask {
    /// Those of `len` points for which `takes` says so.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn from_fn(len: usize, mut takes: impl FnMut(u32) -> bool) -> Result<Self> {
        let mut words: Vec<u32> = memory::vec_with_capacity(len.div_ceil(32), "mask of points")?;
        words.resize(len.div_ceil(32), 0);
        for id in 0..len {
            words[id / 32] |= u32::from(takes(id as u32)) << (id % 32);
        }
        Ok(Self { words: words.into(), len })
    }

    /// Number of points, taken or not.
    pub fn len(&self) -> usize {
        self.len
    }

    /// True if it is a set of no points at all.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// True if the point is in the set.
    pub fn takes(&self, id: u32) -> bool {
        self.words.get(id as usize / 32).is_some_and(|word| word >> (id % 32) & 1 != 0)
    }

    /// [`Error::Shape`] unless it is a mask of that many points.
    pub(crate) fn check(&self, num_points: usize) -> Result<()> {
        if self.len == num_points {
            return Ok(());
        }
        Err(Error::Shape { what: "points of the mask", expected: num_points as u64, got: self.len as u64 })
    }

    /// Bit `id % 32` of word `id / 32`.
    pub(crate) fn words(&self) -> &[u32] {
        &self.words
    }
}

/// Validated options, as the backends take them.
#[derive(Clone, Debug)]
pub struct ValidatedOptions<C> {
    pub(crate) norm: Norm,
    /// One an axis, or none.
    pub(crate) periods: Vec<C>,
    /// What is compared with distances: for the Euclidean one the square of the radius.
    pub(crate) bound: C,
    /// A radius was asked for, however large.
    pub(crate) has_radius: bool,
    pub(crate) mask: Option<PointMask>,
    pub(crate) coherent: bool,
    pub(crate) traversal: Traversal,
}

impl<C: Coord> ValidatedOptions<C> {
    /// Checks the options of queries to a tree of `num_points` points.
    pub(crate) fn new<P: Point<Coord = C>>(options: &QueryOptions<P>, num_points: usize) -> Result<Self> {
        let QueryOptions { norm, periods, radius, mask, coherent, traversal, sorted: _ } = options.clone();
        let bound = match radius {
            None => C::INFINITY,
            Some(radius) => checked_bound::<P>(radius, norm, "radius")?,
        };
        let periods = periods.unwrap_or_default();
        if !periods.is_empty() && (periods.len() != P::DIMS || !P::KEEPS_AXES) {
            let expected = if P::KEEPS_AXES { P::DIMS as u64 } else { 0 };
            return Err(Error::Shape { what: "periods of the axes", expected, got: periods.len() as u64 });
        }
        for &period in &periods {
            checked_length(period, "period")?;
        }
        let wanted = Self { norm, periods, bound, has_radius: radius.is_some(), mask, coherent, traversal };
        wanted.mask.as_ref().map_or(Ok(()), |mask| mask.check(num_points))?;
        Ok(wanted)
    }

    /// All points, or those of a mask.
    pub(crate) fn points(mask: Option<PointMask>) -> Self {
        let (periods, bound, traversal) = (Vec::new(), C::INFINITY, Traversal::default());
        let norm = Norm::default();
        Self { norm, periods, bound, has_radius: false, mask, coherent: false, traversal }
    }

    /// [`Error::BeyondPeriod`] for the first query that is farther from a point between two corners, of the box of all points, than axes
    /// take to repeat. `own` gives the coordinates of the points by id.
    pub(crate) fn check_queries<const D: usize>(
        &self,
        queries: ValidatedQueries<'_, C>,
        corners: [[C; D]; 2],
        own: impl FnOnce() -> Result<Vec<C>>,
    ) -> Result<()> {
        match queries {
            ValidatedQueries::Points { coords, .. } => {
                self.check_periods(coords.as_chunks().0, "query", corners)
            }
            // No two points are farther apart than the corners, so that most often it is enough to look at these.
            ValidatedQueries::Own { .. } => self
                .check_periods(&corners, "point", corners)
                .or_else(|_| self.check_periods(own()?.as_chunks().0, "point", corners)),
        }
    }

    fn check_periods<const D: usize>(
        &self,
        queries: &[[C; D]],
        what: &'static str,
        [low, high]: [[C; D]; 2],
    ) -> Result<()> {
        check_each(queries, SEQUENTIAL, |index, query| {
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

    /// True if distances are Euclidean and nothing repeats.
    pub(crate) fn is_euclidean(&self) -> bool {
        self.norm == Norm::Euclidean && self.periods.is_empty()
    }

    /// True if every point may be taken, however far.
    pub(crate) fn is_plain(&self) -> bool {
        self.is_euclidean() && self.bound == C::INFINITY && self.mask.is_none()
    }
}

/// What distances are compared with if they are to be within a length. A type of points outside of kauri may return anything.
pub(crate) fn checked_bound<P: Point>(length: P::Coord, norm: Norm, what: &'static str) -> Result<P::Coord> {
    checked_length(P::bound(checked_length(length, what)?, norm), what)
}

/// A length that is a number and not negative.
fn checked_length<C: Coord>(length: C, what: &'static str) -> Result<C> {
    if length >= C::ZERO { Ok(length) } else { Err(Error::InvalidLength { what, value: length.to_f64() }) }
}

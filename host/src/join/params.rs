//! The parameters that every join has: distance, norm, order of cells.

use super::strategy::Strategy;
use crate::error::{Error, Result};
use crate::point::{Point, dims};
use crate::query::checked_bound;
use kauri_kernels::join::cells::Pairing;
use kauri_kernels::join::curve::{Curve, MAX_DIMS};
use kauri_kernels::join::score::{ScoreFunction, ScoreType, Scoring};
use kauri_kernels::policy::JOIN;
use kauri_kernels::thread::coord::{Coord, Float};
use kauri_kernels::thread::measure::{Norm, along};
use kauri_kernels::thread::ranked::Ranked;
use kauri_kernels::thread::words::Bits128;

/// The validated parameters of a join.
#[derive(Clone, Copy, Debug)]
pub(crate) struct JoinParams<C> {
    /// Number of dimensions.
    pub(crate) dims: usize,
    /// The largest distance of a pair, squared under the Euclidean norm.
    pub(crate) bound: C,
    pub(crate) norm: Norm,
    pub(crate) curve: Curve,
    pub(crate) pairing: Pairing,
    pub(crate) lookup: Lookup,
}

/// How a GPU finds the points of a range of cells. Results do not depend on it.
///
/// ```
/// # #[cfg(feature = "research")] {
/// use kauri::research::join::Lookup;
/// use kauri::{Device, DistanceJoin};
/// let points = [[0.0f32], [0.5], [9.0]];
/// let join = DistanceJoin::new(1.0).lookup(Lookup::Cells);
/// assert_eq!(join.count(&Device::cpu(), &points, &points)?, 5);
/// # }
/// # Ok::<(), kauri::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
#[cfg_attr(not(feature = "research"), allow(unreachable_pub))]
pub enum Lookup {
    /// Binary search in the cell codes of all points. A directory of the highest bits of the codes narrows the search.
    #[default]
    Points,
    /// Binary search in a list of the cells that are not empty (Gowanlock, Karsin 2018, *GPU accelerated self-join for the distance
    /// similarity metric*), which takes 12 bytes per point.
    #[cfg(feature = "research")]
    Cells,
}

impl<C: Float> JoinParams<C> {
    /// Validates the distance of a join by a grid.
    pub(super) fn new<P: Point<Coord: Coord<Distance = C>>>(
        epsilon: C,
        norm: Norm,
        curve: Curve,
        pairing: Pairing,
    ) -> Result<Self> {
        const { assert!(dims::<P>() <= MAX_DIMS, "points of a join have 1 to 6 coordinates") };
        Self::of_any_dims::<P>(epsilon, norm, curve, pairing)
    }

    /// Validates the distance of a join that falls back to a tree for points with too many dimensions for a grid.
    pub(super) fn of_any_dims<P: Point<Coord: Coord<Distance = C>>>(
        epsilon: C,
        norm: Norm,
        curve: Curve,
        pairing: Pairing,
    ) -> Result<Self> {
        let bound = checked_bound::<P>(epsilon, norm, "distance")?;
        Ok(Self { dims: P::DIMS, bound, norm, curve, pairing, lookup: Lookup::Points })
    }

    /// True if the points are within the distance of each other.
    #[inline(always)]
    pub(super) fn is_near<const D: usize>(&self, a: &[C; D], b: &[C; D]) -> bool {
        self.norm.put_together(D, |axis| along(a[axis], b[axis], C::ZERO)) <= self.bound
    }
}

/// The validated parameters of a top-k join of points, or of boxes.
#[derive(Clone, Copy)]
pub(super) struct TopKParams<J> {
    /// The parameters of the join without scores.
    pub(super) join: J,
    pub(super) scoring: Scoring,
    pub(super) score_type: ScoreType,
    /// At most the number of all pairs.
    pub(super) k: usize,
    pub(super) strategy: Strategy,
    /// Points or boxes of each set that are joined first for a threshold; `None` for the default.
    pub(super) best_points: Option<usize>,
    /// Most bytes for the heaps of a batch of right points.
    #[cfg(feature = "research")]
    pub(super) heap_bytes: u64,
    /// Pairs after this one are not in the result.
    pub(super) threshold: Bits128,
}

impl<J> TopKParams<J> {
    /// Validates the parameters of a join for the best `k` pairs of sets of `lens` items by a score function with its weights. The strategy
    /// is chosen later.
    ///
    /// # Errors
    /// [`Error::NonFiniteScore`] for a weight that is not finite.
    pub(super) fn new(
        join: J,
        score_type: ScoreType,
        (function, weights): (ScoreFunction, [f64; 2]),
        k: usize,
        lens: [usize; 2],
    ) -> Result<Self> {
        if let Some(index) = weights.iter().position(|weight| !weight.is_finite()) {
            return Err(Error::NonFiniteScore { index: index as u64, value: weights[index] });
        }
        Ok(Self {
            join,
            scoring: Scoring { of_integers: score_type.is_integer(), function, weights },
            score_type,
            k: usize::try_from(lens[0] as u128 * lens[1] as u128).map_or(k, |all| k.min(all)),
            strategy: Strategy::Auto,
            best_points: None,
            #[cfg(feature = "research")]
            heap_bytes: 0,
            threshold: Bits128::LAST,
        })
    }

    /// Replaces [`Strategy::Auto`] by the cheapest strategy for sets of `lens` items, and a strategy that the score function excludes.
    ///
    /// # Errors
    /// [`Error::StrategyLimit`] if the strategy keeps fewer than `k` pairs.
    pub(super) fn choose_strategy(self, lens: [usize; 2]) -> Result<Self> {
        let strategy = match self.strategy {
            #[cfg(feature = "research")]
            heaps @ (Strategy::RegisterHeap | Strategy::SharedHeap) => check_heap_len(heaps, self.k)?,
            // Tested first, because all other strategies allocate memory for k pairs, however few pairs there are.
            Strategy::Auto if self.k > JOIN.most_kept => Strategy::Filter,
            Strategy::Auto if lens[0] as u128 * lens[1] as u128 <= JOIN.nested_pairs => Strategy::NestedLoop,
            Strategy::Auto if self.is_monotone() && are_many(lens, self.k) => Strategy::Threshold,
            Strategy::Auto => Strategy::Cells,
            // For other functions the best-scored points give no bound on the other pairs.
            Strategy::Threshold if !self.is_monotone() => Strategy::Cells,
            strategy => strategy,
        };
        Ok(Self { strategy, ..self })
    }

    /// True if the score of a pair is monotone in the score of each point.
    fn is_monotone(&self) -> bool {
        self.scoring.function != ScoreFunction::Product || self.score_type == ScoreType::U32
    }
}

/// True if the best-scored points are a small part of both sets.
fn are_many(lens: [usize; 2], k: usize) -> bool {
    lens.iter().all(|&len| len / JOIN.threshold_from >= JOIN.best_points(k))
}

/// Returns the strategy, or [`Error::StrategyLimit`] if its heaps keep fewer than `k` pairs.
#[cfg(feature = "research")]
fn check_heap_len(strategy: Strategy, k: usize) -> Result<Strategy> {
    let name = if strategy == Strategy::SharedHeap { "SharedHeap" } else { "RegisterHeap" };
    let (k, most) = (k as u64, kauri_kernels::join::heaps::MAX_K as u64);
    if k > most { Err(Error::StrategyLimit { strategy: name, k, most }) } else { Ok(strategy) }
}

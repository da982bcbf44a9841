//! The best pairs within a distance of each other.

use super::gpu::{self, Asked, DeviceScored};
use super::scored::{Score, Scored, ScoredPair};
use super::{Curve, Lookup, Near, Norm, Strategy, checked_sets, cpu};
use crate::device::{Buffer, Device, Stream, Workspace};
use crate::error::{Error, Result};
use crate::memory;
use crate::point::Point;
use crate::stats::Stats;
use kauri_kernels::join::cells::Pairing;
use kauri_kernels::join::rising::OwnLaunch;
use kauri_kernels::join::score::{ScoreFunction, Scoring};
use kauri_kernels::thread::coord::Coord;
use kauri_kernels::thread::ranked::Ranked;
use kauri_kernels::thread::words::Bits128;

/// Most points of a set: ids are 32-bit, and the last one stands for none.
const MAX_POINTS: u64 = u32::MAX as u64;

/// The `k` pairs of a left and a right point, within a distance of each other, whose scores together are the best.
///
/// Of pairs with one score those with the smaller left id come first, of those the ones with the smaller right id; so there is exactly
/// one result, which every device and [`Strategy`] gives.
///
/// ```
/// use kauri::join::{PairScore, Scored, TopKDistanceJoin};
/// use kauri::Device;
/// let hotels = [[0.0f32, 0.0], [5.0, 5.0], [9.0, 0.0]];
/// let restaurants = [[0.0f32, 1.0], [5.0, 4.5], [5.5, 5.0]];
/// let left = Scored::new(&hotels, &[3u32, 5, 4])?;
/// let right = Scored::new(&restaurants, &[9u32, 6, 7])?;
///
/// let best = TopKDistanceJoin::new(1.0, 2).run(&Device::cpu(), left, right)?;
/// let found: Vec<_> = best.pairs().iter().map(|pair| (pair.left, pair.right, pair.score)).collect();
/// assert_eq!(found, [(0, 0, PairScore::Integer(12)), (1, 2, PairScore::Integer(12))]);
/// # Ok::<(), kauri::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct TopKDistanceJoin<C> {
    epsilon: C,
    k: usize,
    function: ScoreFunction,
    weights: [f64; 2],
    norm: Norm,
    curve: Curve,
    lookup: Lookup,
    strategy: Strategy,
    result_bytes: u64,
    best_points: Option<usize>,
    device_bytes: Option<u64>,
}

/// A pair of points, by their ids, and the rank that a score of your own made of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RankedPair {
    /// Of the left set.
    pub left: u32,
    /// Of the right set.
    pub right: u32,
    /// The greater the better.
    pub rank: u64,
}

/// The best pairs, the best first.
#[derive(Clone, Debug)]
pub struct TopPairs {
    pairs: Vec<ScoredPair>,
    stats: Stats,
}

impl TopPairs {
    /// The pairs: `k` of them, or as many as there are.
    pub fn pairs(&self) -> &[ScoredPair] {
        &self.pairs
    }

    /// Where it ran and how long it took.
    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// The pairs.
    pub fn into_pairs(self) -> Vec<ScoredPair> {
        self.pairs
    }
}

impl<C: Coord> TopKDistanceJoin<C> {
    /// The `k` best pairs within `epsilon`, inclusive, by the sum of their scores. For [`LonLat`](crate::LonLat) `epsilon` is in meters.
    pub fn new(epsilon: C, k: usize) -> Self {
        Self {
            epsilon,
            k,
            function: ScoreFunction::Sum,
            weights: [1.0, 1.0],
            norm: Norm::Euclidean,
            curve: Curve::Linear,
            lookup: Lookup::Points,
            strategy: Strategy::Auto,
            result_bytes: 4 << 30,
            best_points: None,
            device_bytes: None,
        }
    }

    /// By this function of the scores.
    pub fn score(mut self, function: ScoreFunction) -> Self {
        self.function = function;
        self
    }

    /// By the sum of the left score times the first weight and the right score times the second, as `f64`.
    pub fn weighted(mut self, left: f64, right: f64) -> Self {
        (self.function, self.weights) = (ScoreFunction::Weighted, [left, right]);
        self
    }

    /// With distances by this norm.
    pub fn norm(mut self, norm: Norm) -> Self {
        self.norm = norm;
        self
    }

    /// With the cells of the grid in this order; results do not depend on it.
    pub fn curve(mut self, curve: Curve) -> Self {
        self.curve = curve;
        self
    }

    /// With the points of cells found so on a GPU; results do not depend on it.
    pub fn lookup(mut self, lookup: Lookup) -> Self {
        self.lookup = lookup;
        self
    }

    /// By this strategy on a GPU; results do not depend on it.
    pub fn strategy(mut self, strategy: Strategy) -> Self {
        self.strategy = strategy;
        self
    }

    /// Strategies that keep the best pairs of each right point take at most so many bytes for them at a time; 4 GiB unless set.
    pub fn result_bytes(mut self, bytes: u64) -> Self {
        self.result_bytes = bytes;
        self
    }

    /// A join of sets in host memory takes at most so many bytes of a GPU's memory: of larger sets points are brought there part by
    /// part. What is free, unless set; in any case enough for 256 points of each set and the pairs that are looked for.
    pub fn device_bytes(mut self, bytes: u64) -> Self {
        self.device_bytes = Some(bytes);
        self
    }

    /// [`Strategy::Threshold`] joins so many points of each set first: for tests with few points.
    #[doc(hidden)]
    pub fn best_points(mut self, points: usize) -> Self {
        self.best_points = Some(points.max(1));
        self
    }

    /// Joins two sets in host memory.
    ///
    /// # Errors
    /// Those of points as of [`KdTree::build`](crate::KdTree::build); [`Error::InvalidLength`] for a distance that is negative or NaN;
    /// [`Error::NonFiniteScore`] for a weight that is not finite; [`Error::StrategyLimit`] of a strategy that was asked for;
    /// [`Error::ResultTooLarge`] if the pairs do not fit into memory; [`Error::OutOfMemory`], or the driver's.
    pub fn run<P: Point<Coord = C>, S: Score>(
        &self,
        device: &Device,
        left: Scored<'_, P, S>,
        right: Scored<'_, P, S>,
    ) -> Result<TopPairs> {
        let _span = tracing::debug_span!("top_k_distance_join", k = self.k).entered();
        let mut stats = Stats::new(device);
        let near = self.near::<P>()?;
        let scoring = self.scoring::<S>()?;
        let [left_coords, right_coords] = checked_sets(left.points(), right.points())?;
        let (left_scores, right_scores) = (left.scores(), right.scores());
        let pairs = match device.gpu() {
            None => stats.phase("join", || {
                cpu::top_k(
                    P::DIMS,
                    [&left_coords, &right_coords],
                    [left_scores, right_scores],
                    &near,
                    &scoring,
                    self.k,
                )
            })?,
            Some(gpu) => {
                let (stream, mut workspace) = (Stream::new(gpu)?, Workspace::new(gpu));
                let coords = [&left_coords[..], &right_coords[..]];
                let pairs = stats.phase("join", || {
                    let Some(asked) = self.asked(
                        &stream,
                        P::DIMS,
                        [left_scores.len(), right_scores.len()],
                        &near,
                        &scoring,
                    ) else {
                        return Ok(Vec::new());
                    };
                    let scores = [left_scores, right_scores];
                    gpu::top_k_of_host(
                        asked,
                        &mut workspace,
                        coords,
                        scores,
                        self.strategy,
                        self.device_bytes,
                    )
                })?;
                stats.temp_bytes = workspace.bytes();
                pairs
            }
        };
        Ok(TopPairs { pairs: as_scored(&pairs, &scoring)?, stats })
    }

    /// Joins two sets of points of type `P` in the memory of a GPU; returns when the pairs are there.
    ///
    /// Coordinates and scores have to be finite, which nobody checks.
    ///
    /// # Errors
    /// [`Error::Shape`] if there are not as many scores as points, [`Error::WrongDevice`]; and those of [`run`](Self::run) that are
    /// not of points and scores.
    pub fn run_on<P: Point<Coord = C>, S: Score>(
        &self,
        stream: &Stream,
        workspace: &mut Workspace,
        left: DeviceScored<'_, C, S>,
        right: DeviceScored<'_, C, S>,
    ) -> Result<Vec<ScoredPair>> {
        let (near, scoring) = (self.near::<P>()?, self.scoring::<S>()?);
        for set in [left, right] {
            set.check(stream, P::DIMS)?;
            check_count(set.scores.len())?;
        }
        let lens = [left.scores.len(), right.scores.len()];
        let Some(asked) = self.asked(stream, P::DIMS, lens, &near, &scoring) else { return Ok(Vec::new()) };
        let strategy = self.strategy.chosen(&scoring, S::TYPE, lens, asked.k)?;
        let pairs = gpu::top_k(asked, workspace, [left, right], strategy)?;
        as_scored(&pairs, &scoring)
    }

    /// Joins two sets of points of type `P` in the memory of a GPU by a score of your own: `launch` is to launch a kernel of
    /// [`JOIN_THREADS`](kauri_kernels::policy::JOIN_THREADS) threads and that many blocks, which calls
    /// [`offer_all`](kauri_kernels::join::rising::offer_all) with these arguments and its score. Returns the best pairs with the ranks
    /// that the score made, the best first. Score function and strategy are not used.
    ///
    /// # Errors
    /// As [`run_on`](Self::run_on), and those of `launch`.
    pub fn run_own_on<P: Point<Coord = C>>(
        &self,
        stream: &Stream,
        workspace: &mut Workspace,
        [left, right]: [&Buffer<C>; 2],
        launch: impl FnMut(u64, OwnLaunch<'_, C>) -> Result<()>,
    ) -> Result<Vec<RankedPair>> {
        for set in [left, right] {
            check_count(set.len() / P::DIMS)?;
            set.check(stream, "coordinates of the points", set.len() / P::DIMS * P::DIMS)?;
        }
        let (near, scoring) = (self.near::<P>()?, self.scoring::<i64>()?);
        let lens = [left, right].map(|set| set.len() / P::DIMS);
        let Some(asked) = self.asked(stream, P::DIMS, lens, &near, &scoring) else { return Ok(Vec::new()) };
        let pairs = gpu::best_by(&asked, workspace, [left.slice(), right.slice()], launch)?;
        let ranked =
            |bits: Bits128| RankedPair { left: (bits.1 >> 32) as u32, right: bits.1 as u32, rank: !bits.0 };
        Ok(pairs.into_iter().map(ranked).collect())
    }

    /// What is asked for of sets of so many points; nothing if that is no pair.
    fn asked<'a>(
        &self,
        stream: &'a Stream,
        dims: usize,
        lens: [usize; 2],
        near: &'a Near<C>,
        scoring: &'a Scoring,
    ) -> Option<Asked<'a, C>> {
        let k = usize::try_from(lens[0] as u128 * lens[1] as u128).map_or(self.k, |all| self.k.min(all));
        let &Self { result_bytes, best_points, .. } = self;
        let limit = Bits128::LAST;
        (k > 0).then_some(Asked { stream, dims, near, scoring, k, result_bytes, best_points, limit })
    }

    /// How many pairs, how on a GPU, and with how much memory and how many points at first.
    pub(super) fn wanted(&self) -> (usize, Strategy, u64, Option<usize>) {
        (self.k, self.strategy, self.result_bytes, self.best_points)
    }

    pub(super) fn near<P: Point<Coord = C>>(&self) -> Result<Near<C>> {
        Ok(Near { lookup: self.lookup, ..Near::new::<P>(self.epsilon, self.norm, self.curve, Pairing::All)? })
    }

    pub(super) fn scoring<S: Score>(&self) -> Result<Scoring> {
        match self.weights.iter().position(|weight| !weight.is_finite()) {
            Some(index) => Err(Error::NonFiniteScore { index: index as u64, value: self.weights[index] }),
            None => Ok(Scoring {
                of_integers: S::TYPE.is_integer(),
                function: self.function,
                weights: self.weights,
            }),
        }
    }
}

fn as_scored(pairs: &[Bits128], scoring: &Scoring) -> Result<Vec<ScoredPair>> {
    let (count, bytes) = (pairs.len() as u64, size_of_val(pairs) + pairs.len() * size_of::<ScoredPair>());
    let mut scored = memory::vec_with_capacity(pairs.len(), "best pairs")
        .map_err(|error| error.of_result(count, bytes as u64))?;
    scored.extend(pairs.iter().map(|&bits| ScoredPair::of(bits, scoring)));
    Ok(scored)
}

/// Refuses more points than there are ids.
pub(super) fn check_count(len: usize) -> Result<()> {
    let (count, max) = (len as u64, MAX_POINTS);
    if count > max { Err(Error::TooManyItems { what: "points", count, max }) } else { Ok(()) }
}

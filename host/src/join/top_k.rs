//! The top-k distance join: the `k` best-scored pairs of points within a distance.

use super::cpu;
use super::gpu::scored::ScoredJoin;
use super::gpu::{self, DeviceScored};
use super::params::{JoinParams, Lookup, TopKParams};
use super::scored::{Score, Scored, ScoredPair};
use super::sets::{check_count, checked_sets, sides_on_device};
use super::strategy::Strategy;
use crate::device::{Buffer, Device, Gpu, Stream, Workspace, gpu_of, gpus_of};
use crate::error::Result;
use crate::memory;
use crate::point::Point;
use crate::stats::Stats;
use kauri_kernels::join::cells::Pairing;
use kauri_kernels::join::curve::Curve;
use kauri_kernels::join::score::{ScoreFunction, Scoring};
use kauri_kernels::join::threshold::CustomScoreLaunch;
use kauri_kernels::thread::coord::{Coord, Float};
use kauri_kernels::thread::measure::Norm;
use kauri_kernels::thread::words::Bits128;
use std::slice;

/// Top-k distance join: the `k` best-scored pairs of a left and a right point within a distance.
///
/// Pairs of equal scores are ordered by left id, then by right id. The result is therefore unique, and every device and [`Strategy`]
/// returns it.
///
/// | method | sets | result |
/// |---|---|---|
/// | [`run`](Self::run) | in host memory, also if they exceed the memory of a GPU | [`TopPairs`] |
/// | [`run_on`](Self::run_on) | in the memory of a GPU | a vector of [`ScoredPair`] |
/// | [`run_custom`](Self::run_custom) | in host memory, joined on the CPU; the caller's closure computes the scores | a vector of [`RankedPair`] |
/// | [`run_custom_on`](Self::run_custom_on) | in the memory of a GPU; the caller's kernel computes the scores | a vector of [`RankedPair`] |
/// | [`plan`](Self::plan) | in host memory | strategy and memory of `run` |
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
    best_points: Option<usize>,
    #[cfg(feature = "research")]
    heap_bytes: u64,
    device_bytes: Option<u64>,
}

/// A pair of points and the rank of its custom score, as [`TopKDistanceJoin::run_custom`] and [`TopKDistanceJoin::run_custom_on`] return
/// it.
///
/// ```
/// use kauri::join::RankedPair;
/// // The order of the result: the greatest rank first, and equal ranks by the ids.
/// let mut pairs = [RankedPair { left: 1, right: 0, rank: 3 }, RankedPair { left: 0, right: 2, rank: 7 }];
/// pairs.sort_by_key(|pair| (u64::MAX - pair.rank, pair.left, pair.right));
/// assert_eq!(pairs[0].left, 0);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RankedPair {
    /// Id in the left set.
    pub left: u32,
    /// Id in the right set.
    pub right: u32,
    /// The pair with the greater rank is better.
    pub rank: u64,
}

/// The result of a [`TopKDistanceJoin`]: the best pairs in order, the best first.
///
/// ```
/// use kauri::join::{Scored, TopKDistanceJoin};
/// let points = [[0.0f32], [1.0], [5.0]];
/// let set = Scored::new(&points, &[0.5f32, 0.25, 2.0])?;
/// let best = TopKDistanceJoin::new(1.0, 2).run(&kauri::Device::cpu(), set, set)?;
/// let scores: Vec<f64> = best.iter().map(|pair| pair.score.to_f64()).collect();
/// assert_eq!(scores, [4.0, 1.0]);
/// println!("{:?}", best.stats().phases);
/// # Ok::<(), kauri::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct TopPairs {
    pairs: Vec<ScoredPair>,
    stats: Stats,
}

impl TopPairs {
    /// Returns the pairs: `k`, or all if there are fewer.
    pub fn pairs(&self) -> &[ScoredPair] {
        &self.pairs
    }

    /// Iterates over the pairs, the best first.
    pub fn iter(&self) -> std::slice::Iter<'_, ScoredPair> {
        self.pairs.iter()
    }

    /// Returns where the join ran and how long it took.
    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// Returns the pairs as a vector.
    pub fn into_pairs(self) -> Vec<ScoredPair> {
        self.pairs
    }
}

impl<'a> IntoIterator for &'a TopPairs {
    type Item = &'a ScoredPair;
    type IntoIter = std::slice::Iter<'a, ScoredPair>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl IntoIterator for TopPairs {
    type Item = ScoredPair;
    type IntoIter = std::vec::IntoIter<ScoredPair>;

    fn into_iter(self) -> Self::IntoIter {
        self.pairs.into_iter()
    }
}

impl<C: Float> TopKDistanceJoin<C> {
    /// Creates a join of the `k` best pairs within `epsilon`, inclusive, by the sum of their scores. For [`LonLat`](crate::LonLat)
    /// `epsilon` is in meters.
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
            best_points: None,
            #[cfg(feature = "research")]
            heap_bytes: 4 << 30,
            device_bytes: None,
        }
    }

    /// Sets the function that makes the score of a pair from the scores of its points.
    pub fn score(mut self, function: ScoreFunction) -> Self {
        self.function = function;
        self
    }

    /// Scores a pair by the weighted sum of the scores of its points, as `f64`.
    pub fn weighted(mut self, left: f64, right: f64) -> Self {
        (self.function, self.weights) = (ScoreFunction::Weighted, [left, right]);
        self
    }

    setters! {
        /// Sets the norm of distances.
        norm: Norm;

        /// Sets the order of the cells of the grid; results do not depend on it.
        curve: Curve;

        /// Sets how a GPU finds the points of cells; results do not depend on it.
        #[cfg(feature = "research")]
        lookup: Lookup;

        /// Sets the strategy on a GPU; results do not depend on it.
        strategy: Strategy;

        /// Limits the device memory for the heaps of [`Strategy::RegisterHeap`] and [`Strategy::SharedHeap`], and for the first list of
        /// [`Strategy::AppendSort`]; 4 GiB by default. The right points are joined in batches whose heaps fit. A list that overflows is
        /// made again, as large as all pairs.
        #[cfg(feature = "research")]
        heap_bytes: u64;

        /// Limits the device memory of a join of sets in host memory; all free memory by default. Sets that need more are uploaded part by
        /// part. The limit is raised to what 256 points of each set and the result need.
        device_bytes: u64 = Some(device_bytes);

        /// Sets how many of the best-scored points of each set [`Strategy::Threshold`] joins first, at least 1. By default 4096 for up to 16
        /// pairs, doubled for each further factor of 4, at most 65,536.
        #[cfg(feature = "research")]
        best_points: usize = Some(best_points.max(1));
    }

    /// Joins two sets in host memory.
    ///
    /// # Errors
    /// The errors of [`KdTree::build`](crate::KdTree::build) for points; [`Error::InvalidLength`](crate::Error::InvalidLength) for a
    /// distance that is negative or NaN; [`Error::NonFiniteScore`](crate::Error::NonFiniteScore) for a weight that is not finite;
    /// [`Error::StrategyLimit`](crate::Error::StrategyLimit) if the strategy keeps fewer pairs than `k`;
    /// [`Error::ResultTooLarge`](crate::Error::ResultTooLarge) if the pairs do not fit into memory;
    /// [`Error::OutOfMemory`](crate::Error::OutOfMemory), or the driver's.
    pub fn run<P: Point<Coord: Coord<Distance = C>>, S: Score>(
        &self,
        device: &Device,
        left: Scored<'_, P, S>,
        right: Scored<'_, P, S>,
    ) -> Result<TopPairs> {
        self.run_at(device, gpu_of!(device).map(slice::from_ref).unwrap_or_default(), left, right)
    }

    /// Joins two sets in host memory on several GPUs: the pairs of [`run`](Self::run). Each GPU joins an equal part of the left set with the
    /// whole right set. If these do not fit, the GPUs take slabs of both sets in turn, which the host cuts.
    ///
    /// ```
    /// use kauri::join::Scored;
    /// use kauri::{Device, TopKDistanceJoin};
    /// let (points, scores) = ([[0.0f32, 0.0], [1.0, 0.0], [5.0, 5.0]], [3u32, 1, 9]);
    /// # #[cfg(feature = "sim")] {
    /// # use kauri::device::SimOptions;
    /// let devices = [Device::sim(SimOptions::default())?, Device::sim(SimOptions::default())?];
    /// let (join, set) = (TopKDistanceJoin::new(1.0, 2), Scored::new(&points, &scores)?);
    /// assert_eq!(join.run_over(&devices, set, set)?.pairs(), join.run(&Device::cpu(), set, set)?.pairs());
    /// # }
    /// # Ok::<(), kauri::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`run`](Self::run), and those of [`BalancedKdTree::build_over`](crate::balanced::BalancedKdTree::build_over) for the
    /// list of devices.
    pub fn run_over<P: Point<Coord: Coord<Distance = C>>, S: Score>(
        &self,
        devices: &[Device],
        left: Scored<'_, P, S>,
        right: Scored<'_, P, S>,
    ) -> Result<TopPairs> {
        let gpus = gpus_of("devices to join on", devices)?;
        self.run_at(&devices[0], &gpus, left, right)
    }

    fn run_at<P: Point<Coord: Coord<Distance = C>>, S: Score>(
        &self,
        device: &Device,
        gpus: &[Gpu],
        left: Scored<'_, P, S>,
        right: Scored<'_, P, S>,
    ) -> Result<TopPairs> {
        let _span = tracing::debug_span!("top_k_distance_join", k = self.k, gpus = gpus.len()).entered();
        let scores = [left.scores(), right.scores()];
        let params = self.params::<P, S>(scores.map(<[S]>::len))?;
        let coords = checked_sets(left.points(), right.points())?;
        let coords = [&coords[0][..], &coords[1][..]];
        run_from_host(device, gpus, params, coords, scores, self.device_bytes, || {
            cpu::top_k(coords, scores, &params)
        })
    }

    /// Joins two sets of points of type `P` in the memory of a GPU, and waits for the pairs.
    ///
    /// Coordinates and scores must be finite; this is not checked.
    ///
    /// # Errors
    /// [`Error::Shape`](crate::Error::Shape) if the numbers of scores and points differ,
    /// [`Error::WrongDevice`](crate::Error::WrongDevice), and the errors of [`run`](Self::run) that
    /// do not concern points and scores.
    pub fn run_on<P: Point<Coord: Coord<Distance = C>>, S: Score>(
        &self,
        stream: &Stream,
        workspace: &mut Workspace,
        left: DeviceScored<'_, C, S>,
        right: DeviceScored<'_, C, S>,
    ) -> Result<Vec<ScoredPair>> {
        let params = self.params::<P, S>([left.scores.len(), right.scores.len()])?;
        run_on_device(stream, workspace, params, [left, right])
    }

    /// Joins two sets in host memory on the CPU by a custom score. `score` returns the rank of the score of a left and a right id; the pair
    /// with the greater rank is better. Threads call it for each pair within the distance, in any order. Returns the best pairs with their
    /// ranks, the best first, like [`run_custom_on`](Self::run_custom_on) with this score in a kernel. The score function and the strategy
    /// of the join are not used.
    ///
    /// ```
    /// use kauri::TopKDistanceJoin;
    /// let people = [[0.0f32, 0.0], [0.5, 0.0], [0.9, 0.0]];
    /// // A bit for each interest of a person.
    /// let interests = [0b0111u32, 0b1110, 0b0011];
    /// let shared = |a: u32, b: u32| {
    ///     if a == b { 0 } else { (interests[a as usize] & interests[b as usize]).count_ones().into() }
    /// };
    /// let best = TopKDistanceJoin::new(0.6, 1).run_custom(&people, &people, shared)?;
    /// assert_eq!((best[0].left, best[0].right, best[0].rank), (0, 1, 2));
    /// # Ok::<(), kauri::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`run`](Self::run) that do not concern scores and strategies.
    pub fn run_custom<P: Point<Coord: Coord<Distance = C>>>(
        &self,
        left: &[P],
        right: &[P],
        score: impl Fn(u32, u32) -> u64 + Sync,
    ) -> Result<Vec<RankedPair>> {
        let params = self.params::<P, i64>([left.len(), right.len()])?;
        let coords = checked_sets(left, right)?;
        if params.k == 0 {
            return Ok(Vec::new());
        }
        as_ranked(&cpu::top_k_by_custom_score([&coords[0], &coords[1]], &score, &params)?)
    }

    /// Joins two sets of points of type `P` in the memory of a GPU by a custom score. `launch` gets a number of blocks and the arguments
    /// of a launch. It launches a kernel of that many blocks of [`JOIN_THREADS`](kauri_kernels::policy::JOIN_THREADS) threads, which calls
    /// [`offer_pairs`](kauri_kernels::join::threshold::offer_pairs) with these arguments and the score. Returns the best pairs with the
    /// ranks of their scores, the best first; [`run_custom`](Self::run_custom) returns the same pairs on the CPU. The score function and the
    /// strategy of the join are not used.
    ///
    /// # Errors
    /// The errors of [`run_on`](Self::run_on) and of `launch`.
    pub fn run_custom_on<P: Point<Coord: Coord<Distance = C>>>(
        &self,
        stream: &Stream,
        workspace: &mut Workspace,
        [left, right]: [&Buffer<C>; 2],
        launch: impl FnMut(u64, CustomScoreLaunch<'_, C>) -> Result<()>,
    ) -> Result<Vec<RankedPair>> {
        let sides = sides_on_device(stream, P::DIMS, right, Some(left))?;
        let params = self.params::<P, i64>(sides.map(|coords| coords.len() / P::DIMS))?;
        if params.k == 0 {
            return Ok(Vec::new());
        }
        as_ranked(&gpu::top_k_by_custom_score(stream, workspace, &params, sides, launch)?)
    }

    /// Validates the parameters of a join of sets of `lens` points.
    pub(super) fn params<P: Point<Coord: Coord<Distance = C>>, S: Score>(
        &self,
        lens: [usize; 2],
    ) -> Result<TopKParams<JoinParams<C>>> {
        let &Self { epsilon, norm, curve, lookup, function, weights, .. } = self;
        let join = JoinParams::new::<P>(epsilon, norm, curve, Pairing::All)?;
        Ok(TopKParams {
            strategy: self.strategy,
            best_points: self.best_points,
            #[cfg(feature = "research")]
            heap_bytes: self.heap_bytes,
            ..TopKParams::new(JoinParams { lookup, ..join }, S::TYPE, (function, weights), self.k, lens)?
        })
    }
}

/// Joins two sets in host memory, whose validated coordinates and scores are given, on GPUs; without any, `on_cpu` joins them.
pub(super) fn run_from_host<J: ScoredJoin, S: Score>(
    device: &Device,
    gpus: &[Gpu],
    params: TopKParams<J>,
    coords: [&[J::Coord]; 2],
    scores: [&[S]; 2],
    device_bytes: Option<u64>,
    on_cpu: impl FnOnce() -> Result<Vec<Bits128>>,
) -> Result<TopPairs> {
    let mut stats = Stats::new(device);
    let pairs = if params.k == 0 {
        stats.phase("join", Vec::new)
    } else if gpus.is_empty() {
        stats.phase("join", on_cpu)?
    } else {
        let params = params.choose_strategy(scores.map(<[S]>::len))?;
        let join = || gpu::top_k_from_host(gpus, params, coords, scores, device_bytes);
        let (pairs, temp_bytes) = stats.phase("join", join)?;
        stats.temp_bytes = temp_bytes;
        pairs
    };
    Ok(TopPairs { pairs: as_scored(&pairs, &params.scoring)?, stats })
}

/// Joins two sets in device memory.
pub(super) fn run_on_device<J: ScoredJoin, S: Score>(
    stream: &Stream,
    workspace: &mut Workspace,
    params: TopKParams<J>,
    sets: [DeviceScored<'_, J::Coord, S>; 2],
) -> Result<Vec<ScoredPair>> {
    for set in sets {
        set.check(stream, params.join.width())?;
        check_count(set.scores.len())?;
    }
    if params.k == 0 {
        return Ok(Vec::new());
    }
    let params = params.choose_strategy(sets.map(|set| set.scores.len()))?;
    as_scored(&gpu::top_k(stream, workspace, params, sets)?, &params.scoring)
}

/// Bytes of a pair of a result, in both of its forms.
pub(super) const PAIR_BYTES: u64 = (size_of::<Bits128>() + size_of::<ScoredPair>()) as u64;

/// Converts pairs from their 128-bit form.
fn as_scored(pairs: &[Bits128], scoring: &Scoring) -> Result<Vec<ScoredPair>> {
    let mut scored = memory::vec_with_capacity(pairs.len(), "best pairs")
        .map_err(|error| error.of_result(pairs.len() as u64, PAIR_BYTES))?;
    scored.extend(pairs.iter().map(|&bits| ScoredPair::unpack(bits, scoring)));
    Ok(scored)
}

/// Converts pairs from their 128-bit form to pairs with ranks.
fn as_ranked(pairs: &[Bits128]) -> Result<Vec<RankedPair>> {
    let mut ranked = memory::vec_with_capacity(pairs.len(), "best pairs")
        .map_err(|error| error.of_result(pairs.len() as u64, PAIR_BYTES))?;
    let pair =
        |bits: &Bits128| RankedPair { left: (bits.1 >> 32) as u32, right: bits.1 as u32, rank: !bits.0 };
    ranked.extend(pairs.iter().map(pair));
    Ok(ranked)
}

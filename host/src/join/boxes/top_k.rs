//! The top-k box join: the `k` best-scored pairs of boxes.

use super::cpu;
use super::method::BoxMethod;
use super::params::BoxParams;
use super::sets::checked_sets;
use crate::device::{Device, Stream, Workspace, gpu_of};
use crate::error::Result;
use crate::join::cpu::best_bytes;
use crate::join::gpu::DeviceScored;
use crate::join::gpu::scored::ScoredJoin;
use crate::join::params::TopKParams;
use crate::join::plan::{JoinMethod, JoinPlan};
use crate::join::scored::{Score, Scored, ScoredPair};
use crate::join::sets::HostSets;
use crate::join::strategy::Strategy;
use crate::join::top_k::{TopPairs, run_from_host, run_on_device};
use crate::point::Cartesian;
use kauri_kernels::join::boxes::geometry::Predicate;
use kauri_kernels::join::cells::Pairing;
use kauri_kernels::join::score::ScoreFunction;
use kauri_kernels::thread::coord::{Coord, Float};
use kauri_kernels::thread::measure::Norm;
use kauri_kernels::thread::words::Bits128;
use std::slice;

/// Top-k box join: the `k` best-scored pairs of a left and a right box that intersect, are within a distance, or of which the left one
/// contains the right one.
///
/// Boxes and the conditions for a pair are those of a [`BoxJoin`](super::BoxJoin); scores and their order are those of a
/// [`TopKDistanceJoin`](crate::TopKDistanceJoin): pairs of equal scores are ordered by left id, then by right id. The result is therefore
/// unique, and every device and [`Strategy`] returns it.
///
/// | method | sets | result |
/// |---|---|---|
/// | [`run`](Self::run) | in host memory, also if they exceed the memory of a GPU | [`TopPairs`] |
/// | [`run_on`](Self::run_on) | in the memory of a GPU | a vector of [`ScoredPair`] |
/// | [`plan`](Self::plan) | in host memory | strategy and memory of `run` |
///
/// ```
/// use kauri::join::{PairScore, Scored};
/// use kauri::{Device, TopKBoxJoin};
/// let parcels = [[[0.0f32, 0.0], [2.0, 2.0]], [[3.0, 0.0], [4.0, 1.0]], [[8.0, 8.0], [9.0, 9.0]]];
/// let roads = [[[1.0f32, 1.5], [3.5, 1.6]], [[3.0, 1.0], [3.5, 1.2]]];
/// let [left, right] = [Scored::new(&parcels, &[3u32, 5, 9])?, Scored::new(&roads, &[4, 2])?];
/// let device = Device::cpu();
///
/// let best = TopKBoxJoin::within(1.0, 2).run(&device, left, right)?;
/// let found: Vec<_> = best.iter().map(|pair| (pair.left, pair.right, pair.score)).collect();
/// assert_eq!(found, [(1, 0, PairScore::Integer(9)), (0, 0, PairScore::Integer(7))]);
/// assert_eq!(TopKBoxJoin::intersects(10).run(&device, left, right)?.pairs().len(), 2);
/// # Ok::<(), kauri::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct TopKBoxJoin<C> {
    predicate: Predicate,
    epsilon: C,
    k: usize,
    function: ScoreFunction,
    weights: [f64; 2],
    norm: Norm,
    strategy: Strategy,
    best_boxes: Option<usize>,
    device_bytes: Option<u64>,
}

impl<C: Float> TopKBoxJoin<C> {
    /// Creates a join of the `k` best pairs of boxes that intersect, by the sum of their scores.
    pub fn intersects(k: usize) -> Self {
        Self::new(Predicate::Intersects, C::ZERO, k)
    }

    /// Creates a join of the `k` best pairs of a left box that contains the right box, by the sum of their scores.
    pub fn contains(k: usize) -> Self {
        Self::new(Predicate::Contains, C::ZERO, k)
    }

    /// Creates a join of the `k` best pairs of boxes whose distance is at most `epsilon`, by the sum of their scores.
    pub fn within(epsilon: C, k: usize) -> Self {
        Self::new(Predicate::Within, epsilon, k)
    }

    fn new(predicate: Predicate, epsilon: C, k: usize) -> Self {
        Self {
            predicate,
            epsilon,
            k,
            function: ScoreFunction::Sum,
            weights: [1.0, 1.0],
            norm: Norm::Euclidean,
            strategy: Strategy::Auto,
            best_boxes: None,
            device_bytes: None,
        }
    }

    /// Sets the function that makes the score of a pair from the scores of its boxes.
    pub fn score(mut self, function: ScoreFunction) -> Self {
        self.function = function;
        self
    }

    /// Scores a pair by the weighted sum of the scores of its boxes, as `f64`.
    pub fn weighted(mut self, left: f64, right: f64) -> Self {
        (self.function, self.weights) = (ScoreFunction::Weighted, [left, right]);
        self
    }

    setters! {
        /// Sets the norm of distances, for [`within`](Self::within).
        norm: Norm;

        /// Sets the strategy on a GPU; results do not depend on it. The strategies of Løvik 2020 are of points:
        /// [`Strategy::Cells`] takes their place.
        strategy: Strategy;

        /// Limits the device memory of a join of sets in host memory; all free memory by default. Sets that need more are uploaded part by
        /// part. The limit is raised to what 256 boxes of each set and the result need.
        device_bytes: u64 = Some(device_bytes);

        /// Sets how many of the best-scored boxes of each set [`Strategy::Threshold`] joins first, at least 1; the default is that of
        /// [`TopKDistanceJoin::best_points`](crate::TopKDistanceJoin::best_points).
        #[cfg(feature = "research")]
        best_boxes: usize = Some(best_boxes.max(1));
    }

    /// Joins two sets in host memory.
    ///
    /// # Errors
    /// The errors of [`BoxJoin::count`](super::BoxJoin::count), [`Error::NonFiniteScore`](crate::Error::NonFiniteScore) for a weight that
    /// is not finite, and [`Error::ResultTooLarge`](crate::Error::ResultTooLarge) if the pairs do not fit into memory.
    pub fn run<P: Cartesian<Coord: Coord<Distance = C>>, S: Score>(
        &self,
        device: &Device,
        left: Scored<'_, [P; 2], S>,
        right: Scored<'_, [P; 2], S>,
    ) -> Result<TopPairs> {
        let _span = tracing::debug_span!("top_k_box_join", k = self.k).entered();
        let scores = [left.scores(), right.scores()];
        let params = self.params::<P, S>(scores.map(<[S]>::len))?;
        let sides = checked_sets(HostSets::two(left.points(), right.points()))?;
        let [right, left] = sides.slices();
        let gpus = gpu_of!(device).map(slice::from_ref).unwrap_or_default();
        run_from_host(device, gpus, params, [left, right], scores, self.device_bytes, || {
            cpu::top_k([left, right], scores, &params)
        })
    }

    /// Joins two sets of boxes with corners of type `P` in the memory of a GPU, and waits for the pairs.
    ///
    /// Coordinates and scores must be finite; this is not checked.
    ///
    /// # Errors
    /// [`Error::Shape`](crate::Error::Shape) if the numbers of scores and boxes differ, [`Error::WrongDevice`](crate::Error::WrongDevice),
    /// and the errors of [`run`](Self::run) that do not concern boxes and scores.
    pub fn run_on<P: Cartesian<Coord: Coord<Distance = C>>, S: Score>(
        &self,
        stream: &Stream,
        workspace: &mut Workspace,
        left: DeviceScored<'_, C, S>,
        right: DeviceScored<'_, C, S>,
    ) -> Result<Vec<ScoredPair>> {
        let params = self.params::<P, S>([left.scores.len(), right.scores.len()])?;
        run_on_device(stream, workspace, params, [left, right])
    }

    /// Plans [`run`](Self::run) with these sets, whose boxes it validates. Takes no device memory.
    ///
    /// ```
    /// use kauri::join::Scored;
    /// use kauri::{Device, TopKBoxJoin};
    /// let boxes = vec![[[0.0f32, 0.0], [1.0, 1.0]]; 1000];
    /// let scores = vec![1.5f64; 1000];
    /// let set = Scored::new(&boxes, &scores)?;
    /// let plan = TopKBoxJoin::intersects(10).plan(&Device::cpu(), set, set)?;
    /// assert_eq!(plan.num_points, [1000, 1000]);
    /// println!("{plan}");
    /// # Ok::<(), kauri::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`run`](Self::run) that concern boxes, distance and weights.
    pub fn plan<P: Cartesian<Coord: Coord<Distance = C>>, S: Score>(
        &self,
        device: &Device,
        left: Scored<'_, [P; 2], S>,
        right: Scored<'_, [P; 2], S>,
    ) -> Result<JoinPlan> {
        let lens = [left.scores().len(), right.scores().len()];
        let params = self.params::<P, S>(lens)?.choose_strategy(lens)?;
        checked_sets(HostSets::two(left.points(), right.points()))?;
        let (is_on_gpu, num_boxes) = (!device.is_cpu(), lens[0] as u64 + lens[1] as u64);
        let box_bytes = (params.join.width() * size_of::<C>()) as u64;
        let copied = if is_on_gpu || P::CONVERTED { box_bytes } else { 0 };
        let score_bytes = if is_on_gpu { size_of::<S>() as u64 } else { 0 };
        // The ranks of the right boxes, too.
        let on_cpu = cpu::sorted_bytes(lens, box_bytes).saturating_add(8 * lens[1] as u64);
        let on_cpu = on_cpu.saturating_add(best_bytes(params.k, lens));
        let has_all_pairs = is_on_gpu && params.strategy == Strategy::Filter;
        Ok(JoinPlan {
            device: device.to_string(),
            num_points: lens,
            grid: None,
            method: if is_on_gpu {
                JoinMethod::Best(params.strategy)
            } else {
                JoinMethod::Boxes(BoxMethod::Cells)
            },
            input_bytes: num_boxes * (copied + score_bytes),
            temp_bytes: if is_on_gpu { BoxParams::scratch_bytes(&params, lens) } else { on_cpu },
            // All pairs, and a second copy where they are sorted.
            pair_bytes: if has_all_pairs { 2 * size_of::<Bits128>() as u64 } else { 0 },
        })
    }

    /// Validates the parameters of a join of sets of `lens` boxes.
    fn params<P: Cartesian<Coord: Coord<Distance = C>>, S: Score>(
        &self,
        lens: [usize; 2],
    ) -> Result<TopKParams<BoxParams<C>>> {
        let &Self { predicate, epsilon, norm, function, weights, .. } = self;
        let join = BoxParams::new::<P>(predicate, epsilon, norm, Pairing::All, BoxMethod::Auto)?;
        let strategy = match self.strategy {
            #[cfg(feature = "research")]
            Strategy::RegisterHeap | Strategy::SharedHeap | Strategy::AppendSort => Strategy::Cells,
            strategy => strategy,
        };
        let params = TopKParams::new(join, S::TYPE, (function, weights), self.k, lens)?;
        Ok(TopKParams { strategy, best_points: self.best_boxes, ..params })
    }
}

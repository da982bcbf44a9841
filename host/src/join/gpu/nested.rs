//! The best pairs by a nested loop over all points or boxes, or over the best-scored ones.

use super::best::{BestPairs, RunningBest};
use super::cells::for_both;
use super::scored::{ScoredJoin, ScoredView};
use crate::device::{Layout, Region, Stream, Temp, Workspace};
use crate::error::Result;
use crate::join::params::TopKParams;
use crate::point::with_kernel_dims;
use crate::primitives::order::{Ascending, NoValue, Order};
use crate::primitives::pairs::empty_view;
use crate::primitives::planned::carve;
use crate::primitives::top_k::{Best as BestKeys, TopK, TopKOutput};
use cuda_std::mem::{Slice, SliceMut};
use kauri_kernels::join::curve::MAX_DIMS;
use kauri_kernels::join::nested::{NestedSets, RIGHTS, join_left_out, join_nested};
use kauri_kernels::join::score::{PairScores, ScoreFunction, ScoreType, Scoring};
use kauri_kernels::policy::{JOIN, JOIN_THREADS};
use kauri_kernels::thread::coord::Float;
use kauri_kernels::thread::radix_key::KeyOrder;
use kauri_kernels::thread::ranked::RankBits;
use kauri_kernels::thread::words::Bits128;

/// The result of a join of the best-scored items.
pub(super) enum BestPointsJoin {
    /// No pair with another item can be better: these are the best pairs of all items.
    Complete(Vec<Bits128>),
    /// The best pairs of all items are not worse than this threshold.
    Threshold(Bits128),
}

/// Returns the best pairs of small sets.
pub(super) fn best_pairs<J: ScoredJoin>(
    stream: &Stream,
    workspace: &mut Workspace,
    params: &TopKParams<J>,
    sets: [ScoredView<'_, J::Coord>; 2],
) -> Result<Vec<Bits128>> {
    let plan = |layout: &mut _| BestPairs::plan(layout, params.k);
    let (best, temp) = carve(stream, workspace, "top-k distance join", plan)?;
    let ids = [empty_view().read_only(), empty_view().read_only()];
    best.run(&temp, params.threshold, |running| {
        // SAFETY: the sets are borrowed, and nothing else uses the memory of the plan.
        unsafe { offer_pairs(stream, params, sets, ids, sets.map(|set| set.len), running) }
    })
}

/// Joins the best-scored points or boxes of both sets, for a monotone score function. `join_best` gets the number of items to join and
/// the threshold so far.
pub(super) fn join_best_points<J>(
    params: &TopKParams<J>,
    lens: [usize; 2],
    mut join_best: impl FnMut(usize, Bits128) -> Result<BestPointsJoin>,
) -> Result<BestPointsJoin> {
    let (points, max_points) = num_best_points(params, params.k, lens);
    match join_best(points, params.threshold)? {
        // For large sets a join of more points costs less than a join by cells.
        BestPointsJoin::Threshold(threshold) if max_points > points => join_best(max_points, threshold),
        found => Ok(found),
    }
}

/// Returns how many points of each set [`join_best_points`] joins first for the best `k` pairs, and at most.
pub(super) fn num_best_points<J>(params: &TopKParams<J>, k: usize, lens: [usize; 2]) -> (usize, usize) {
    let points = params.best_points.unwrap_or(JOIN.best_points(k));
    let are_many = lens.iter().all(|&len| len >= points.saturating_mul(JOIN.more_best_points_from));
    (points, if are_many { points.saturating_mul(JOIN.more_best_points) } else { points })
}

/// [`join_best_points`] of sets in device memory.
pub(super) fn join_best_points_on_device<J: ScoredJoin>(
    stream: &Stream,
    workspace: &mut Workspace,
    params: &TopKParams<J>,
    sets: [ScoredView<'_, J::Coord>; 2],
) -> Result<BestPointsJoin> {
    join_best_points(params, sets.map(|set| set.len), |points, threshold| {
        let mut layout = Layout::new();
        let lens = sets.map(|set| set.len.min(points));
        let top = [0, 1].map(|i| TopScores::plan(&mut layout, sets[i].score_type, sets[i].len, lens[i]));
        let best = BestPairs::plan(&mut layout, params.k);
        let temp = workspace.carve(stream, &layout, "top-k distance join")?;
        // SAFETY: the sets are borrowed, and nothing else uses the memory of the plan.
        unsafe {
            let ids = for_both(stream, sets.map(|set| set.len), |i, stream| {
                let (ScoredView { scores, score_type, .. }, best) = (sets[i], best_keys(&params.scoring, i));
                top[i].run(&temp.on(stream), scores, score_type, best)
            })?;
            let are_all = [0, 1].map(|i| lens[i] == sets[i].len);
            join_chosen_points(stream, params, best.begin(&temp, threshold)?, sets, ids, are_all)
        }
    })
}

/// Joins the items with these ids, which are the best-scored ones in order. `are_all` says for which sets they are all points.
///
/// # Safety
/// The ids are valid. Nothing else uses them, the sets and the memory until the stream has done the work.
pub(super) unsafe fn join_chosen_points<J: ScoredJoin>(
    stream: &Stream,
    params: &TopKParams<J>,
    mut running: RunningBest<'_, '_>,
    sets: [ScoredView<'_, J::Coord>; 2],
    ids: [Slice<'_, u32>; 2],
    are_all: [bool; 2],
) -> Result<BestPointsJoin> {
    let [left_are_all, right_are_all] = are_all.map(u32::from);
    // SAFETY: passed on to the caller.
    let result = unsafe {
        offer_pairs(stream, params, sets, ids, ids.map(|ids| ids.len()), &mut running)?;
        let scores = pair_scores(sets, &params.scoring);
        let args = (ids[0], ids[1], left_are_all, right_are_all, scores, running.state());
        stream.launch::<join_left_out>(1, args)?;
        running.read()?
    };
    // An excluded pair of an equal score could still win by its ids.
    let is_complete = are_all == [true; 2]
        || (result.pairs.len() == params.k && !result.threshold.0 > result.best_excluded);
    Ok(if is_complete && !result.has_overflowed {
        BestPointsJoin::Complete(result.pairs)
    } else {
        BestPointsJoin::Threshold(result.threshold)
    })
}

/// Returns the scores of both sets as arguments of a kernel.
pub(in crate::join) fn pair_scores<'a, C>(
    [left, right]: [ScoredView<'a, C>; 2],
    scoring: &Scoring,
) -> PairScores<'a> {
    let score_type = left.score_type as u32;
    PairScores { left: left.scores, right: right.scores, score_type, scoring: scoring.args() }
}

/// Returns which scores of a set are the best.
pub(super) fn best_keys(scoring: &Scoring, set: usize) -> BestKeys {
    let is_largest = scoring.function != ScoreFunction::Weighted || scoring.weights[set] >= 0.0;
    if is_largest { BestKeys::Largest } else { BestKeys::Smallest }
}

/// Offers all pairs. The first items of both sets come first, then more and more items, so that each launch raises the threshold for
/// the next.
///
/// # Safety
/// There is an id for each item, or none for items in the order of ids. Nothing else uses the ids and the memory until the stream has
/// done the work.
unsafe fn offer_pairs<J: ScoredJoin>(
    stream: &Stream,
    params: &TopKParams<J>,
    sets: [ScoredView<'_, J::Coord>; 2],
    ids: [Slice<'_, u32>; 2],
    lens: [usize; 2],
    running: &mut RunningBest<'_, '_>,
) -> Result<()> {
    let join = &params.join;
    let (dims, shape, bound) = (join.dims() as u32, join.shape_without_grid(), join.bound());
    let (mut num_done, mut num_points) = (0, JOIN_THREADS);
    while num_done < lens[0].max(lens[1]) {
        let part = lens.map(|len| len.min(num_points));
        let num_blocks = [part[0].div_ceil(JOIN_THREADS) as u64, part[1].div_ceil(RIGHTS) as u64];
        let (pairs, state) = running.candidates();
        let items = NestedSets {
            coords: sets[0].coords,
            right_coords: sets[1].coords,
            ids: ids[0],
            right_ids: ids[1],
            num_left: part[0] as u32,
            num_right: part[1] as u32,
            num_done: num_done as u32,
            dims,
            shape,
            bound,
        };
        let args = (items, pair_scores(sets, &params.scoring), pairs, state);
        // SAFETY: passed on to the caller.
        unsafe {
            join.launch_nested(stream, num_blocks[0] * num_blocks[1], args)?;
            running.select_best()?;
        }
        num_done = num_points;
        num_points = num_points.saturating_mul(JOIN.growth_of_sides(params.k));
    }
    Ok(())
}

/// Launches the kernel of a nested loop over points.
///
/// # Safety
/// The requirements of [`ScoredJoin::launch_nested`].
pub(super) unsafe fn launch<C: Float>(
    stream: &Stream,
    num_blocks: u64,
    args: (NestedSets<'_, C>, PairScores<'_>, SliceMut<'_, Bits128>, SliceMut<'_, u64>),
) -> Result<()> {
    // SAFETY: passed on to the caller.
    unsafe {
        with_kernel_dims!(args.0.dims as usize, D in [2, 3] or MAX_DIMS => {
            stream.launch::<join_nested<C, D>>(num_blocks, args)
        })
    }
}

/// Scratch memory for the best-scored points of a set, by the width of the scores.
pub(super) enum TopScores {
    Bits32(TopKeys<u32>),
    Bits64(TopKeys<u64>),
}

impl TopScores {
    /// Plans the best `len` of `all` scores.
    pub(super) fn plan(layout: &mut Layout, score_type: ScoreType, all: usize, len: usize) -> Self {
        match score_type {
            ScoreType::U32 | ScoreType::F32 => Self::Bits32(TopKeys::plan(layout, all, len)),
            ScoreType::I64 | ScoreType::F64 => Self::Bits64(TopKeys::plan(layout, all, len)),
        }
    }

    /// Returns the ids of the best-scored points, the best first.
    ///
    /// # Safety
    /// The number of scores is as planned. Nothing else uses the scores and the memory of the plan until the stream has done the work.
    pub(super) unsafe fn run<'a>(
        &self,
        temp: &Temp<'a>,
        scores: Slice<'_, u32>,
        score_type: ScoreType,
        best: BestKeys,
    ) -> Result<Slice<'a, u32>> {
        let order = match score_type {
            ScoreType::U32 => best.order::<u32>(),
            ScoreType::I64 => best.order::<i64>(),
            ScoreType::F32 => best.order::<f32>(),
            ScoreType::F64 => best.order::<f64>(),
        };
        // SAFETY: passed on to the caller.
        unsafe {
            match self {
                Self::Bits32(top) => top.run(temp, scores, order),
                Self::Bits64(top) => top.run(temp, scores, order),
            }
        }
    }
}

/// Scratch memory for the best-scored points of a set whose scores have the width of `B`.
pub(super) struct TopKeys<B: RankBits> {
    top: TopK<B>,
    keys: Region<B>,
    ids: Region<u32>,
}

impl<B: RankBits> TopKeys<B>
where
    Ascending: Order<B::Ranked, NoValue>,
{
    fn plan(layout: &mut Layout, all: usize, len: usize) -> Self {
        Self { top: TopK::plan(layout, all, len), keys: layout.reserve(len), ids: layout.reserve(len) }
    }

    /// Returns the ids of the best-scored points, the first in an order first.
    ///
    /// # Safety
    /// The requirements of [`TopScores::run`].
    unsafe fn run<'a>(
        &self,
        temp: &Temp<'a>,
        scores: Slice<'_, u32>,
        order: KeyOrder,
    ) -> Result<Slice<'a, u32>> {
        let output = TopKOutput { keys: temp.view(self.keys), ids: temp.view(self.ids) };
        // SAFETY: the words of the scores are viewed as keys of the same bytes; the rest is passed on to the caller.
        unsafe {
            let len = scores.len() / (size_of::<B>() / size_of::<u32>());
            let scores = Slice::from_raw_parts(scores.as_ptr().cast::<B>(), len);
            self.top.run(temp, scores, order, output)?;
        }
        Ok(output.ids.read_only())
    }
}

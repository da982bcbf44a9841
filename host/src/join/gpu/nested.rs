//! The best pairs by a nested loop: of all points, or of those with the best scores.

use super::best::{Best, Keeping};
use super::{Asked, ScoredOn, for_both, with_kernel_dims};
use crate::device::{Layout, Region, Stream, Temp, Workspace};
use crate::error::Result;
use crate::primitives::order::{Ascending, NoValue, Order};
use crate::primitives::pairs::empty_view;
use crate::primitives::top_k::{Best as BestKeys, TopK, TopKOutput};
use cuda_std::mem::Slice;
use kauri_kernels::join::cells::Shape;
use kauri_kernels::join::nested::{PointSets, RIGHTS, join_left_out, join_nested};
use kauri_kernels::join::score::{PairScores, ScoreFunction, ScoreType, Scoring};
use kauri_kernels::policy::{JOIN, JOIN_THREADS};
use kauri_kernels::thread::coord::Coord;
use kauri_kernels::thread::radix_key::KeyOrder;
use kauri_kernels::thread::ranked::RankBits;
use kauri_kernels::thread::words::Bits128;

/// What the points with the best scores say.
pub(super) enum Found {
    /// The best pairs of all points.
    All(Vec<Bits128>),
    /// A limit that the best pairs are not worse than.
    AtLeast(Bits128),
}

/// The best pairs of few points.
pub(super) fn all<C: Coord>(
    asked: &Asked<'_, C>,
    workspace: &mut Workspace,
    sets: [ScoredOn<'_, C>; 2],
) -> Result<Vec<Bits128>> {
    let mut layout = Layout::new();
    let best = Best::plan(&mut layout, asked.k);
    let temp = workspace.carve(asked.stream, &layout, "top-k distance join")?;
    let ids = [empty_view().read_only(), empty_view().read_only()];
    best.of(asked.stream, &temp, asked.limit, |keeping| {
        // SAFETY: the sets are borrowed, and the memory is the plan's own.
        unsafe { loops(asked, sets, ids, sets.map(|set| set.len), keeping) }
    })
}

/// The best pairs where greater scores of points make greater ones of pairs, or lesser do: `of_some` is told how many of the points with
/// the best scores to join, and a limit that is known.
pub(super) fn of_best<C: Coord>(
    asked: &Asked<'_, C>,
    lens: [usize; 2],
    mut of_some: impl FnMut(usize, Bits128) -> Result<Found>,
) -> Result<Found> {
    let (points, most) = some_points(asked.k, asked.best_points, lens);
    match of_some(points, asked.limit)? {
        // Of large sets more of them cost less than cells.
        Found::AtLeast(limit) if most > points => of_some(most, limit),
        found => Ok(found),
    }
}

/// How many points of each set [`of_best`] joins at first, and at most.
pub(super) fn some_points(k: usize, asked: Option<usize>, lens: [usize; 2]) -> (usize, usize) {
    let points = asked.unwrap_or(JOIN.best_points(k));
    let are_many = lens.iter().all(|&len| len >= points.saturating_mul(JOIN.more_best_points_from));
    (points, if are_many { points.saturating_mul(JOIN.more_best_points) } else { points })
}

/// [`of_best`] of sets on the device: chooses the points there.
pub(super) fn of_best_on<C: Coord>(
    asked: &Asked<'_, C>,
    workspace: &mut Workspace,
    sets: [ScoredOn<'_, C>; 2],
) -> Result<Found> {
    let stream = asked.stream;
    of_best(asked, sets.map(|set| set.len), |points, limit| {
        let mut layout = Layout::new();
        let lens = sets.map(|set| set.len.min(points));
        let top = [0, 1].map(|i| Top::plan(&mut layout, sets[i].of, sets[i].len, lens[i]));
        let best = Best::plan(&mut layout, asked.k);
        let temp = workspace.carve(stream, &layout, "top-k distance join")?;
        // SAFETY: the sets are borrowed, and the memory is the plan's own.
        unsafe {
            let ids = for_both(stream, sets.map(|set| set.len), |i, stream| {
                top[i].run(stream, &temp, sets[i].scores, sets[i].of, best_keys(asked, i))
            })?;
            let are_all = [0, 1].map(|i| lens[i] == sets[i].len);
            of_chosen(asked, &temp, &best, sets, ids, are_all, limit)
        }
    })
}

/// The best pairs of the points with these ids, those with the best scores of each set first; and whether these are all points.
///
/// # Safety
/// The ids are of points; nothing else uses them, the sets and the memory until the stream has done the work.
pub(super) unsafe fn of_chosen<C: Coord>(
    asked: &Asked<'_, C>,
    temp: &Temp<'_>,
    best: &Best,
    sets: [ScoredOn<'_, C>; 2],
    ids: [Slice<'_, u32>; 2],
    are_all: [bool; 2],
    limit: Bits128,
) -> Result<Found> {
    let &Asked { stream, scoring, k, .. } = asked;
    let mut keeping = best.begin(stream, temp, limit)?;
    // SAFETY: passed on to the caller.
    let kept = unsafe {
        loops(asked, sets, ids, ids.map(|ids| ids.len()), &mut keeping)?;
        let args = (
            ids[0],
            ids[1],
            u32::from(are_all[0]),
            u32::from(are_all[1]),
            pair_scores(sets, scoring),
            keeping.state(),
        );
        stream.launch::<join_left_out>(1, args)?;
        keeping.kept()?
    };
    // As good is not enough: ids decide then.
    let is_all = are_all == [true; 2] || (kept.pairs.len() == k && !kept.limit.0 > kept.left_out);
    Ok(if is_all && !kept.has_lost { Found::All(kept.pairs) } else { Found::AtLeast(kept.limit) })
}

/// The scores of both sets as kernels take them.
fn pair_scores<'a, C>([left, right]: [ScoredOn<'a, C>; 2], scoring: &Scoring) -> PairScores<'a> {
    PairScores { left: left.scores, right: right.scores, score_type: left.of as u32, scoring: scoring.args() }
}

/// Which scores of a set are the best.
pub(super) fn best_keys<C>(asked: &Asked<'_, C>, set: usize) -> BestKeys {
    let is_largest = asked.scoring.function != ScoreFunction::Weighted || asked.scoring.weights[set] >= 0.0;
    if is_largest { BestKeys::Largest } else { BestKeys::Smallest }
}

/// Offers the pairs of the first points of both sets, of more and more of them, so that the limit rises.
///
/// # Safety
/// As many ids as points, or none for points in their order; nothing else uses them and the memory until the stream has done the work.
unsafe fn loops<C: Coord>(
    asked: &Asked<'_, C>,
    sets: [ScoredOn<'_, C>; 2],
    ids: [Slice<'_, u32>; 2],
    lens: [usize; 2],
    keeping: &mut Keeping<'_, '_>,
) -> Result<()> {
    let &Asked { stream, dims, near, scoring, k, .. } = asked;
    let shape = Shape { bits: 0, curve: near.curve, norm: near.norm, pairing: near.pairing }.to_word();
    let (mut done, mut some) = (0, JOIN_THREADS);
    while done < lens[0].max(lens[1]) {
        let part = lens.map(|len| len.min(some));
        let num_blocks = [part[0].div_ceil(JOIN_THREADS) as u64, part[1].div_ceil(RIGHTS) as u64];
        let (pairs, state) = keeping.room();
        let points = PointSets {
            coords: sets[0].coords,
            right_coords: sets[1].coords,
            ids: ids[0],
            right_ids: ids[1],
            num_left: part[0] as u32,
            num_right: part[1] as u32,
            done: done as u32,
            dims: dims as u32,
            shape,
            bound: near.bound.to_f64(),
        };
        let args = (points, pair_scores(sets, scoring), pairs, state);
        // SAFETY: passed on to the caller.
        unsafe {
            let num_blocks = num_blocks[0] * num_blocks[1];
            with_kernel_dims!(dims, D => stream.launch::<join_nested<C, D>>(num_blocks, args))?;
            keeping.keep_best()?;
        }
        done = some;
        some = some.saturating_mul(JOIN.growth_of_sides(k));
    }
    Ok(())
}

/// Temporary memory of the points of a set with the best scores.
pub(super) enum Top {
    Of4(TopK<u32>, Region<u32>, Region<u32>),
    Of8(TopK<u64>, Region<u64>, Region<u32>),
}

impl Top {
    /// Plans the best `len` of `all` scores.
    pub(super) fn plan(layout: &mut Layout, of: ScoreType, all: usize, len: usize) -> Self {
        match of {
            ScoreType::U32 | ScoreType::F32 => {
                Self::Of4(TopK::plan(layout, all, len), layout.reserve(len), layout.reserve(len))
            }
            ScoreType::I64 | ScoreType::F64 => {
                Self::Of8(TopK::plan(layout, all, len), layout.reserve(len), layout.reserve(len))
            }
        }
    }

    /// Their ids, the best first.
    ///
    /// # Safety
    /// The scores are as many as planned, and nothing else uses them and the plan's memory until the stream has done the work.
    pub(super) unsafe fn run<'a>(
        &self,
        stream: &Stream,
        temp: &Temp<'a>,
        scores: Slice<'_, u32>,
        of: ScoreType,
        best: BestKeys,
    ) -> Result<Slice<'a, u32>> {
        // SAFETY: passed on to the caller.
        unsafe {
            match self {
                Self::Of4(top, keys, ids) => run(stream, temp, scores, top, *keys, *ids, order(of, best)),
                Self::Of8(top, keys, ids) => run(stream, temp, scores, top, *keys, *ids, order(of, best)),
            }
        }
    }
}

fn order(of: ScoreType, best: BestKeys) -> KeyOrder {
    match of {
        ScoreType::U32 => best.order::<u32>(),
        ScoreType::I64 => best.order::<i64>(),
        ScoreType::F32 => best.order::<f32>(),
        ScoreType::F64 => best.order::<f64>(),
    }
}

/// # Safety
/// As [`Top::run`].
unsafe fn run<'a, B: RankBits>(
    stream: &Stream,
    temp: &Temp<'a>,
    scores: Slice<'_, u32>,
    top: &TopK<B>,
    keys: Region<B>,
    ids: Region<u32>,
    order: KeyOrder,
) -> Result<Slice<'a, u32>>
where
    Ascending: Order<B::Ranked, NoValue>,
{
    let (keys, ids) = (temp.view(keys), temp.view(ids));
    // SAFETY: the same memory as scores; the rest is passed on to the caller.
    unsafe {
        let len = scores.len() / (size_of::<B>() / size_of::<u32>());
        let scores = Slice::from_raw_parts(scores.as_ptr().cast::<B>(), len);
        top.run(stream, temp, scores, order, TopKOutput { keys, ids })?;
    }
    Ok(ids.read_only())
}

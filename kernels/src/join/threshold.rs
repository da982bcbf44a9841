//! The best pairs by a running threshold. The probe points are joined in growing parts, and each part raises the threshold for the next.
//! The blocks of a part are spread over the grid. Work of a warp beyond one segment is divided among all warps. Only build points whose
//! scores can reach the threshold are tested for distance.

use super::best::{CandidateList, pair, state};
use super::score::Scoring;
use crate::policy::{JOIN_REST_MIN_BLOCKS, JOIN_SEGMENT, JOIN_THREADS, join_rising_min_blocks};
use crate::thread::coord::Float;
use crate::thread::items::strided;
use crate::thread::operator::Max;
use crate::warp::scan::reduce;
use crate::warp::shuffle::shuffle_idx;
use cuda_std::atomic::{Ordering, Scope};
use cuda_std::prelude::*;

/// The arguments of the kernels.
#[derive(Clone, Copy, KernelArgs)]
pub struct ThresholdArgs<'a, C> {
    /// The two sides.
    pub sides: crate::join::neighbor_cells::JoinSides<'a, C>,
    /// The ranks of their scores.
    pub ranks: crate::join::score::PairRanks<'a>,
    /// The least and the greatest rank of the build side.
    pub extremes: Slice<'a, u64>,
    /// The candidate pairs.
    pub pairs: SliceMut<'a, crate::thread::words::Bits128>,
    /// The state of the candidates.
    pub state: SliceMut<'a, u64>,
}

/// Offers the pairs of a part of the probe points, a thread per point. Block `b` of the launch joins block `(b + first_block) * stride`
/// modulo the number of all blocks, which is coprime to `stride`. A thread visits the points of one [segment](JOIN_SEGMENT) of its
/// neighbor cells. If a lane of a warp has more, the other segments become tasks; `tasks` has capacity for all of them.
#[kernel(family = "join", block = JOIN_THREADS, min_blocks = join_rising_min_blocks(D, size_of::<C>()), hot)]
#[instances(C = [f32, f64], D = [2, 3, 6])]
pub unsafe fn join_rising<C: Float, const D: usize>(
    args: ThresholdArgs<'_, C>,
    first_block: u64,
    stride: u64,
    tasks_per_warp: u32,
    tasks: SliceMut<u64>,
) {
    let join = ThresholdJoin::new(args);
    let probe = probe_of_thread(args.sides.probe_ids.len(), first_block, stride);
    let all = match probe {
        Some(i) => join.offer::<D>(i, (0, JOIN_SEGMENT)),
        None => 0,
    };
    let most = reduce::<u64, Max>(all as u64);
    if most > JOIN_SEGMENT as u64 {
        // If any lane has a probe point, the first lane has one.
        let warp = shuffle_idx(probe.unwrap_or(0) as u64, 0) / 32;
        defer_segments(
            warp,
            most.div_ceil(JOIN_SEGMENT as u64) - 1,
            tasks_per_warp.into(),
            args.state,
            tasks,
        );
    }
}

/// Defers all segments of a warp's probe points but the first to the next launch, as at most `most` tasks of equally many segments, a
/// power of two. All lanes must call it.
#[inline(always)]
unsafe fn defer_segments(
    warp: u64,
    num_segments: u64,
    most: u64,
    state: SliceMut<'_, u64>,
    tasks: SliceMut<'_, u64>,
) {
    let mut shift = 0;
    while (num_segments - 1) >> shift >= most {
        shift += 1;
    }
    let num = ((num_segments - 1) >> shift) + 1;
    let mut begin = 0;
    if warp::lane_id() == 0 {
        begin = state.atomic_add(state::TASKS, num, Ordering::Relaxed, Scope::Device);
    }
    let begin = shuffle_idx(begin, 0);
    for task in strided(u64::from(warp::lane_id()), num, 32) {
        let segment = 1 + (task << shift);
        tasks.store((begin + task) as usize, warp << WARP_SHIFT | segment << SEGMENT_SHIFT | shift);
    }
}

/// Fields of the word of a task: the warp (27 bits), the first segment (32 bits), and the logarithm of the number of segments (5 bits).
const WARP_SHIFT: u32 = 37;
const SEGMENT_SHIFT: u32 = 5;

/// Joins the segments that [`join_rising()`] deferred. A warp takes a task, then the task that is as many further as there are warps.
#[kernel(family = "join", block = JOIN_THREADS, min_blocks = JOIN_REST_MIN_BLOCKS, hot)]
#[instances(C = [f32, f64], D = [2, 3, 6])]
pub unsafe fn join_rising_rest<C: Float, const D: usize>(args: ThresholdArgs<'_, C>, tasks: Slice<u64>) {
    let join = ThresholdJoin::new(args);
    let all = args.state.load(state::TASKS);
    let mut task = thread::index_1d_u64() / 32;
    while task < all {
        let word = tasks.load(task as usize);
        let i = (word >> WARP_SHIFT) as usize * 32 + warp::lane_id() as usize;
        let segment = (word >> SEGMENT_SHIFT) as u32 as usize;
        let end = segment + (1 << (word & 31));
        if i < args.sides.probe_ids.len() {
            join.offer::<D>(i, (JOIN_SEGMENT * segment, JOIN_SEGMENT * end));
        }
        task += u64::from(thread::grid_dim_x()) * (JOIN_THREADS / 32) as u64;
    }
}

/// A join by a running threshold.
#[derive(Clone, Copy)]
struct ThresholdJoin<'a, C> {
    args: ThresholdArgs<'a, C>,
    scoring: Scoring,
    candidates: CandidateList<'a>,
}

impl<'a, C: Float> ThresholdJoin<'a, C> {
    #[inline(always)]
    unsafe fn new(args: ThresholdArgs<'a, C>) -> Self {
        let candidates = CandidateList::new(args.pairs, args.state);
        Self { args, scoring: args.ranks.scoring.scoring(), candidates }
    }

    /// Offers the pairs of probe point `i` with points number `part` of its neighbor cells. Returns the number of points in the neighbor
    /// cells, or 0 if no build point can reach the threshold.
    #[inline(always)]
    unsafe fn offer<const D: usize>(&self, i: usize, part: (usize, usize)) -> usize {
        let Self { args: ThresholdArgs { sides, ranks, extremes, .. }, scoring, candidates } = *self;
        let probe_rank = ranks.probe.load(i);
        let all = [extremes.load(0), extremes.load(1)];
        let Some((first, last)) = scoring.left_ranks_reaching(candidates.least_rank(), probe_rank, all)
        else {
            return 0;
        };
        let cells = sides.neighbor_cells::<D>();
        let Some(probe) = sides.probe_point(&cells, i) else { return 0 };
        cells.for_each_match_where(
            &probe,
            part,
            || candidates.has_capacity(),
            |position| ranks.build.load(position).wrapping_sub(first) <= last - first,
            |position, id| {
                candidates.offer(cells.pair(
                    scoring.rank(ranks.build.load(position), probe_rank),
                    id,
                    probe.id,
                ))
            },
        )
    }
}

/// Returns the index of the probe point of this thread, if there is one.
#[inline(always)]
fn probe_of_thread(num_probes: usize, first_block: u64, stride: u64) -> Option<usize> {
    let block = spread_block(num_probes.div_ceil(JOIN_THREADS) as u64, first_block, stride);
    let i = block as usize * JOIN_THREADS + thread::thread_idx_x() as usize;
    (i < num_probes).then_some(i)
}

/// Returns the block of `num_blocks` that this block joins.
#[inline(always)]
pub(super) fn spread_block(num_blocks: u64, first_block: u64, stride: u64) -> u64 {
    (u64::from(thread::block_idx_x()) + first_block) * stride % num_blocks
}

/// Offers the pairs of a part of the probe points by a custom score. A kernel with a custom score calls this from blocks of
/// [`JOIN_THREADS`] threads. `score` returns the rank of the score of a left and a right id; pairs of greater ranks are better.
/// [`Coord::key`](crate::thread::coord::Coord::key) ranks floats, [`rank_of_integer`](super::score::rank_of_integer) integers.
///
/// # Safety
/// The arguments are those that the host passes for such a launch, and all threads of the block call.
#[inline(always)]
pub unsafe fn offer_pairs<C: Float, const D: usize>(
    launch: CustomScoreLaunch<'_, C>,
    score: impl Fn(u32, u32) -> u64,
) {
    let CustomScoreLaunch { sides, first_block, stride, pairs, state } = launch;
    let Some(i) = probe_of_thread(sides.probe_ids.len(), first_block, stride) else { return };
    let candidates = CandidateList::new(pairs, state);
    let cells = sides.neighbor_cells::<D>();
    let Some(probe) = sides.probe_point(&cells, i) else { return };
    cells.for_each_match_where(
        &probe,
        (0, usize::MAX),
        || candidates.has_capacity(),
        |_| true,
        |_, id| candidates.offer(pair(score(id, probe.id), id, probe.id)),
    );
}

/// The arguments of a launch with a custom score. A kernel takes it as a parameter, besides the input of its score.
#[derive(Clone, Copy, KernelArgs)]
pub struct CustomScoreLaunch<'a, C> {
    /// The two sides.
    pub sides: crate::join::neighbor_cells::JoinSides<'a, C>,
    /// First block of the part.
    pub first_block: u64,
    /// Stride between consecutive blocks of the part.
    pub stride: u64,
    /// The candidate pairs.
    pub pairs: SliceMut<'a, crate::thread::words::Bits128>,
    /// The state of the candidates.
    pub state: SliceMut<'a, u64>,
}

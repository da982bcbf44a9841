//! The best pairs under a limit that rises: right points in parts, larger and larger, each with the limit that those before it made.
//! A part is of blocks from all over the grid, and what takes a warp long is divided among all. Of the left points in the cells around only
//! those are looked at whose scores suffice.

use super::around::CellSets;
use super::best::{Best, pair, state};
use super::score::{PairRanks, Scoring};
use crate::policy::{JOIN_REST_MIN_BLOCKS, JOIN_SEGMENT, JOIN_THREADS, join_rising_min_blocks};
use crate::thread::coord::Coord;
use crate::thread::operator::Max;
use crate::thread::words::Bits128;
use crate::warp::scan::reduce;
use crate::warp::shuffle::shuffle_idx;
use cuda_std::atomic::{Ordering, Scope};
use cuda_std::prelude::*;

/// Offers the pairs of some right points; a thread each. Block `b` of the launch has those of block `(b + first_block) * stride`,
/// modulo the number of all blocks, of which that is no divisor. A thread goes through so many left points as are in a
/// [segment](JOIN_SEGMENT); if a lane of a warp has more, the further segments become tasks, for all of which there is room.
#[kernel(family = "join", block = JOIN_THREADS, min_blocks = join_rising_min_blocks(D, size_of::<C>()), hot)]
#[instances(C = [f32, f64], D = [2, 3, 6])]
pub unsafe fn join_rising<C: Coord, const D: usize>(
    sets: CellSets<'_, C>,
    ranks: PairRanks<'_>,
    extremes: Slice<u64>,
    first_block: u64,
    stride: u64,
    pairs: SliceMut<Bits128>,
    state: SliceMut<u64>,
    tasks_per_warp: u32,
    tasks: SliceMut<u64>,
) {
    let rising =
        Rising { sets, ranks, extremes, scoring: ranks.scoring.scoring(), best: Best::new(pairs, state) };
    let right = right_of_thread(sets.right_ids.len(), first_block, stride);
    let all = match right {
        Some(i) => rising.offer::<D>(i, (0, JOIN_SEGMENT)),
        None => 0,
    };
    let most = reduce::<u64, Max>(all as u64);
    if most > JOIN_SEGMENT as u64 {
        // The first lane has a right point, if any has.
        let warp = shuffle_idx(right.unwrap_or(0) as u64, 0) / 32;
        leave(warp, most.div_ceil(JOIN_SEGMENT as u64) - 1, tasks_per_warp.into(), state, tasks);
    }
}

/// Leaves the segments of a warp's right points behind the first to the next launch, as not more tasks than a warp may have, each of as
/// many segments, a power of two. All lanes call.
#[inline(always)]
unsafe fn leave(warp: u64, num_segments: u64, most: u64, state: SliceMut<'_, u64>, tasks: SliceMut<'_, u64>) {
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
    let mut task = u64::from(warp::lane_id());
    while task < num {
        let segment = 1 + (task << shift);
        tasks.store((begin + task) as usize, warp << WARP_SHIFT | segment << SEGMENT_SHIFT | shift);
        task += 32;
    }
}

/// In the word of a task: its warp, with 27 bits; its first segment, with 32; and with 5 the logarithm of how many these are.
const WARP_SHIFT: u32 = 37;
const SEGMENT_SHIFT: u32 = 5;

/// Does what [`join_rising()`] left: a warp a task, then the task as many further on as there are warps.
#[kernel(family = "join", block = JOIN_THREADS, min_blocks = JOIN_REST_MIN_BLOCKS, hot)]
#[instances(C = [f32, f64], D = [2, 3, 6])]
pub unsafe fn join_rising_rest<C: Coord, const D: usize>(
    sets: CellSets<'_, C>,
    ranks: PairRanks<'_>,
    extremes: Slice<u64>,
    pairs: SliceMut<Bits128>,
    state: SliceMut<u64>,
    tasks: Slice<u64>,
) {
    let rising =
        Rising { sets, ranks, extremes, scoring: ranks.scoring.scoring(), best: Best::new(pairs, state) };
    let all = state.load(state::TASKS);
    let mut task = thread::index_1d_u64() / 32;
    while task < all {
        let word = tasks.load(task as usize);
        let i = (word >> WARP_SHIFT) as usize * 32 + warp::lane_id() as usize;
        let segment = (word >> SEGMENT_SHIFT) as u32 as usize;
        let end = segment + (1 << (word & 31));
        if i < sets.right_ids.len() {
            rising.offer::<D>(i, (JOIN_SEGMENT * segment, JOIN_SEGMENT * end));
        }
        task += u64::from(thread::grid_dim_x()) * (JOIN_THREADS / 32) as u64;
    }
}

/// What both have.
#[derive(Clone, Copy)]
struct Rising<'a, C> {
    sets: CellSets<'a, C>,
    ranks: PairRanks<'a>,
    extremes: Slice<'a, u64>,
    scoring: Scoring,
    best: Best<'a>,
}

impl<C: Coord> Rising<'_, C> {
    /// Offers the pairs of a right point with some of the left points in the cells around it, by their numbers; how many those are, or
    /// none if its score does not suffice.
    #[inline(always)]
    unsafe fn offer<const D: usize>(&self, i: usize, part: (usize, usize)) -> usize {
        let Self { sets, ranks, scoring, best, .. } = *self;
        let right_rank = ranks.right.load(i);
        let all = [self.extremes.load(0), self.extremes.load(1)];
        let Some((first, last)) = scoring.lefts_for(best.least_rank(), right_rank, all) else { return 0 };
        let around = sets.around::<D>();
        let Some(right) = sets.right(&around, i) else { return 0 };
        around.each_wanted(
            &right,
            part,
            || best.has_room(),
            |place| ranks.left.load(place).wrapping_sub(first) <= last - first,
            |place, id| {
                best.offer(around.pair(scoring.rank(ranks.left.load(place), right_rank), id, right.id))
            },
        )
    }
}

/// The place of the right point that a thread has, if there is one.
#[inline(always)]
fn right_of_thread(num_rights: usize, first_block: u64, stride: u64) -> Option<usize> {
    let num_blocks = num_rights.div_ceil(JOIN_THREADS) as u64;
    let block = (u64::from(thread::block_idx_x()) + first_block) * stride % num_blocks;
    let i = block as usize * JOIN_THREADS + thread::thread_idx_x() as usize;
    (i < num_rights).then_some(i)
}

/// Offers the pairs of some right points by a score of one's own: what a kernel with such a score has to do, in blocks of
/// [`JOIN_THREADS`]. The greater the rank that `score` makes of a left and a right id, the better is the pair; of floats it is
/// [`Coord::key`], of integers [`rank_of_integer`](super::score::rank_of_integer).
///
/// # Safety
/// The arguments are those that the host gives for such a launch, and all threads of the block call.
#[inline(always)]
pub unsafe fn offer_all<C: Coord, const D: usize>(launch: OwnLaunch<'_, C>, score: impl Fn(u32, u32) -> u64) {
    let OwnLaunch { sets, first_block, stride, pairs, state } = launch;
    let Some(i) = right_of_thread(sets.right_ids.len(), first_block, stride) else { return };
    let best = Best::new(pairs, state);
    let around = sets.around::<D>();
    let Some(right) = sets.right(&around, i) else { return };
    around.each_wanted(
        &right,
        (0, usize::MAX),
        || best.has_room(),
        |_| true,
        |_, id| best.offer(pair(score(id, right.id), id, right.id)),
    );
}

/// The arguments of a launch with a score of your own. A kernel takes it as a parameter, beside what its score needs.
#[derive(Clone, Copy, KernelArgs)]
pub struct OwnLaunch<'a, C> {
    /// The two sets.
    pub sets: crate::join::around::CellSets<'a, C>,
    /// Which blocks these are.
    pub first_block: u64,
    /// The same.
    pub stride: u64,
    /// The pairs so far.
    pub pairs: SliceMut<'a, crate::thread::words::Bits128>,
    /// And their state.
    pub state: SliceMut<'a, u64>,
}

//! The best pairs of small sets by a nested loop: a thread per left point; tiles of right points are staged in shared memory.

use super::best::{CandidateList, pair, state};
use super::cells::{Shape, load_point};
use super::neighbor_cells::near;
use super::score::{PairScores, Scores};
use crate::policy::JOIN_THREADS;
use crate::thread::coord::Coord;
use crate::thread::measure::Norm;
use crate::thread::words::Bits128;
use cuda_std::prelude::*;

/// Right points of a block.
pub const RIGHTS: usize = 32;
/// Right points that are tested together.
const GROUP: usize = 4;

/// Shared memory of a nested loop: a tile of right points.
#[repr(C, align(16))]
pub struct NestedSmem<C, const D: usize> {
    coords: [[C; RIGHTS]; D],
    ranks: [u64; RIGHTS],
    ids: [u32; RIGHTS],
}

/// Some points of two sets, and the condition for a pair.
#[derive(Clone, Copy, KernelArgs)]
pub struct PointSets<'a, C> {
    /// The coordinates of the left set, by id.
    pub coords: Slice<'a, C>,
    /// The coordinates of the right set, by id.
    pub right_coords: Slice<'a, C>,
    /// The ids of the left points; empty for the first points of the set.
    pub ids: Slice<'a, u32>,
    /// The ids of the right points; empty for the first points of the set.
    pub right_ids: Slice<'a, u32>,
    /// Number of left points.
    pub num_left: u32,
    /// Number of right points.
    pub num_right: u32,
    /// Pairs of two of the first `num_done` points were offered by a previous launch and are skipped.
    pub num_done: u32,
    /// Number of dimensions.
    pub dims: u32,
    /// The norm and the pairing: [`Shape::to_word`].
    pub shape: u32,
    /// The largest distance of near points, as the norm computes it.
    pub bound: f64,
}

/// Offers the pairs of some left points with some right points, which are given by ids, or are the first points if there are no ids.
/// Pairs of two of the first `num_done` points are skipped. A block joins as many left points as it has threads with [`RIGHTS`] right
/// points.
#[kernel(family = "join", block = JOIN_THREADS, shared = NestedSmem<C, D>, hot)]
#[instances(C = [f32, f64], D = [2, 3, 6])]
pub unsafe fn join_nested<C: Coord, const D: usize>(
    sets: PointSets<'_, C>,
    scores: PairScores<'_>,
    pairs: SliceMut<Bits128>,
    state: SliceMut<u64>,
) {
    let smem = shared_mem::<NestedSmem<C, D>>();
    let (staged, staged_ranks, staged_ids) =
        (shared_field!(smem, coords), shared_field!(smem, ranks), shared_field!(smem, ids));
    let (thread, dims) = (thread::thread_idx_x() as usize, sets.dims as usize);
    let (num_left, num_right, num_done) =
        (sets.num_left as usize, sets.num_right as usize, sets.num_done as usize);
    let num_pieces = num_left.div_ceil(JOIN_THREADS);
    let block = thread::block_idx_x() as usize;
    let (i, begin) = ((block % num_pieces) * JOIN_THREADS + thread, (block / num_pieces) * RIGHTS);
    let id_of = |ids: Slice<'_, u32>, i: usize| if ids.is_empty() { i as u32 } else { ids.load(i) };
    let scoring = scores.scoring.scoring();
    let scores = scores.of_sets();

    if thread < RIGHTS {
        // Repeat the last point in the rest of the tile.
        let right = if begin + thread < num_right { begin + thread } else { num_right - 1 };
        let id = id_of(sets.right_ids, right);
        let point: [C; D] = load_point(sets.right_coords, id as usize, dims);
        for axis in 0..D {
            staged.store(axis * RIGHTS + thread, point[axis]);
        }
        staged_ranks.store(thread, scores[1].rank(id as usize));
        staged_ids.store(thread, id);
    }
    thread::sync_threads();
    if i >= num_left {
        return;
    }

    let candidates = CandidateList::new(pairs, state);
    let Shape { norm, pairing, .. } = Shape::from_word(sets.shape);
    let bound = C::from_f64(sets.bound);
    let id = id_of(sets.ids, i);
    let point: [C; D] = load_point(sets.coords, id as usize, dims);
    let rank = scores[0].rank(id as usize);
    let end = if num_right - begin < RIGHTS { num_right - begin } else { RIGHTS };
    // Right points before this one made pairs with the left point in a previous launch.
    let skipped = if i < num_done { num_done.saturating_sub(begin) } else { 0 };
    let mut j = 0;
    while j < end {
        // One branch on the norm for the whole group.
        let near_by = |norm| {
            let mut hits = 0_u32;
            for member in 0..GROUP {
                let mut other = [C::ZERO; D];
                for axis in 0..D {
                    other[axis] = staged.load(axis * RIGHTS + j + member);
                }
                hits |= u32::from(near(norm, &point, &other, bound)) << member;
            }
            hits
        };
        let mut hits = if norm == Norm::Euclidean { near_by(Norm::Euclidean) } else { near_by(norm) };
        // Clear pairs of previous launches, and pairs after the last point.
        hits &= bits_from(skipped.saturating_sub(j)) & !bits_from(end - j);
        while hits != 0 {
            let at = j + hits.trailing_zeros() as usize;
            hits &= hits - 1;
            let other_id = staged_ids.load(at);
            if pairing.includes(id, other_id) {
                candidates.offer(pair(scoring.rank(rank, staged_ranks.load(at)), id, other_id));
            }
        }
        j += GROUP;
    }
}

/// Returns a mask of the bits from `bit` on.
#[inline(always)]
fn bits_from(bit: usize) -> u32 {
    if bit < 32 { u32::MAX << bit } else { 0 }
}

/// Writes to the state the greatest rank of the score of a pair with an excluded point, that is a point that is not among the given ids;
/// 0 if no point is excluded. The ids of each set are sorted by score, the best first. One thread.
#[kernel(family = "join", block = 32)]
pub unsafe fn join_left_out(
    ids: Slice<u32>,
    right_ids: Slice<u32>,
    left_are_all: u32,
    right_are_all: u32,
    scores: PairScores<'_>,
    state: SliceMut<u64>,
) {
    if thread::index_1d() == 0 {
        let scoring = scores.scoring.scoring();
        let [left, right] = scores.of_sets();
        let rank = |scores: Scores<'_>, ids: Slice<'_, u32>, i: usize| scores.rank(ids.load(i) as usize);
        let best = [rank(left, ids, 0), rank(right, right_ids, 0)];
        let mut best_excluded = 0;
        if left_are_all == 0 {
            best_excluded = scoring.rank(rank(left, ids, ids.len() - 1), best[1]);
        }
        if right_are_all == 0 {
            let other = scoring.rank(best[0], rank(right, right_ids, right_ids.len() - 1));
            best_excluded = if other > best_excluded { other } else { best_excluded };
        }
        state.store(state::EXCLUDED, best_excluded);
    }
}

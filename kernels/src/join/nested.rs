//! The best pairs of small sets by a nested loop: a thread per left item; tiles of right items are staged in shared memory. The items are
//! points here, and boxes in [`boxes`](super::boxes).

use super::best::{CandidateList, pair, state};
use super::cells::{Pairing, Shape, load_point};
use super::neighbor_cells::near;
use super::score::{PairScores, Scores};
use crate::policy::JOIN_THREADS;
use crate::thread::coord::Float;
use crate::thread::measure::Norm;
use crate::thread::words::Bits128;
use cuda_std::prelude::*;
use cuda_std::shared::SharedSlice;

/// Right items of a block.
pub const RIGHTS: usize = 32;
/// Right items that are tested together.
pub(super) const GROUP: usize = 4;

/// Shared memory of a nested loop: a tile of right points.
#[repr(C, align(16))]
pub struct NestedSmem<C, const D: usize> {
    coords: [[C; RIGHTS]; D],
    ranks: [u64; RIGHTS],
    ids: [u32; RIGHTS],
}

/// Some points or boxes of two sets, and the condition for a pair.
#[derive(Clone, Copy, KernelArgs)]
pub struct NestedSets<'a, C> {
    /// The coordinates of the left set, by id.
    pub coords: Slice<'a, C>,
    /// The coordinates of the right set, by id.
    pub right_coords: Slice<'a, C>,
    /// The ids of the left items; empty for the first items of the set.
    pub ids: Slice<'a, u32>,
    /// The ids of the right items; empty for the first items of the set.
    pub right_ids: Slice<'a, u32>,
    /// Number of left items.
    pub num_left: u32,
    /// Number of right items.
    pub num_right: u32,
    /// Pairs of two of the first `num_done` items were offered by a previous launch and are skipped.
    pub num_done: u32,
    /// Number of dimensions.
    pub dims: u32,
    /// The norm and the pairing, for boxes also the predicate: [`Shape::to_word`], or
    /// [`boxes::geometry::Shape::to_word`](super::boxes::geometry::Shape::to_word).
    pub shape: u32,
    /// The largest distance of a pair, as the norm computes it.
    pub bound: f64,
}

/// The items of a nested loop: points or boxes.
pub(super) trait NestedItems {
    /// A left item.
    type Item;

    /// Loads a left item, or returns `None` for one without pairs.
    unsafe fn left(&self, id: usize) -> Option<Self::Item>;

    /// Writes a right item to a slot of the tile.
    unsafe fn stage(&self, slot: usize, id: usize);

    /// Returns which of the [`GROUP`] right items from a slot on make a pair with a left item, as a bit for each.
    unsafe fn hits(&self, left: &Self::Item, slot: usize) -> u32;
}

/// A nested loop of a block.
#[derive(Clone, Copy)]
pub(super) struct NestedLoop<'a, C, I> {
    pub(super) sets: NestedSets<'a, C>,
    pub(super) scores: PairScores<'a>,
    pub(super) pairing: Pairing,
    pub(super) items: I,
    /// The ranks of the scores of the tile, in shared memory.
    pub(super) ranks: SharedSlice<'a, u64>,
    /// The ids of the tile, in shared memory.
    pub(super) ids: SharedSlice<'a, u32>,
}

impl<C: Float, I: NestedItems> NestedLoop<'_, C, I> {
    /// Offers the pairs of as many left items as the block has threads with a tile of [`RIGHTS`] right items.
    #[inline(always)]
    pub(super) unsafe fn offer(&self, pairs: SliceMut<'_, Bits128>, state: SliceMut<'_, u64>) {
        let Self { sets, ref items, pairing, .. } = *self;
        let thread = thread::thread_idx_x() as usize;
        let (num_left, num_right, num_done) =
            (sets.num_left as usize, sets.num_right as usize, sets.num_done as usize);
        let num_pieces = num_left.div_ceil(JOIN_THREADS);
        let block = thread::block_idx_x() as usize;
        let (i, begin) = ((block % num_pieces) * JOIN_THREADS + thread, (block / num_pieces) * RIGHTS);
        let id_of = |ids: Slice<'_, u32>, i: usize| if ids.is_empty() { i as u32 } else { ids.load(i) };
        let scoring = self.scores.scoring.scoring();
        let scores = self.scores.of_sets();

        if thread < RIGHTS {
            // Repeat the last item in the rest of the tile.
            let right = if begin + thread < num_right { begin + thread } else { num_right - 1 };
            let id = id_of(sets.right_ids, right);
            items.stage(thread, id as usize);
            self.ranks.store(thread, scores[1].rank(id as usize));
            self.ids.store(thread, id);
        }
        thread::sync_threads();
        if i >= num_left {
            return;
        }

        let candidates = CandidateList::new(pairs, state);
        let id = id_of(sets.ids, i);
        let Some(left) = items.left(id as usize) else { return };
        let rank = scores[0].rank(id as usize);
        let end = if num_right - begin < RIGHTS { num_right - begin } else { RIGHTS };
        // Right items before this one made pairs with the left item in a previous launch.
        let skipped = if i < num_done { num_done.saturating_sub(begin) } else { 0 };
        let mut j = 0;
        while j < end {
            // Clear pairs of previous launches, and pairs after the last item.
            let mut hits = items.hits(&left, j) & bits_from(skipped.saturating_sub(j)) & !bits_from(end - j);
            while hits != 0 {
                let at = j + hits.trailing_zeros() as usize;
                hits &= hits - 1;
                let other_id = self.ids.load(at);
                if pairing.includes(id, other_id) {
                    candidates.offer(pair(scoring.rank(rank, self.ranks.load(at)), id, other_id));
                }
            }
            j += GROUP;
        }
    }
}

/// Points of a nested loop.
#[derive(Clone, Copy)]
struct NestedPoints<'a, C, const D: usize> {
    sets: NestedSets<'a, C>,
    norm: Norm,
    bound: C,
    /// The coordinates of the tile, axis by axis.
    tile: SharedSlice<'a, C>,
}

impl<C: Float, const D: usize> NestedItems for NestedPoints<'_, C, D> {
    type Item = [C; D];

    #[inline(always)]
    unsafe fn left(&self, id: usize) -> Option<[C; D]> {
        Some(load_point(self.sets.coords, id, self.sets.dims as usize))
    }

    #[inline(always)]
    unsafe fn stage(&self, slot: usize, id: usize) {
        let point: [C; D] = load_point(self.sets.right_coords, id, self.sets.dims as usize);
        for axis in 0..D {
            self.tile.store(axis * RIGHTS + slot, point[axis]);
        }
    }

    #[inline(always)]
    unsafe fn hits(&self, left: &[C; D], slot: usize) -> u32 {
        let near_by = |norm| {
            let mut hits = 0_u32;
            for member in 0..GROUP {
                let mut other = [C::ZERO; D];
                for axis in 0..D {
                    other[axis] = self.tile.load(axis * RIGHTS + slot + member);
                }
                hits |= u32::from(near(norm, left, &other, self.bound)) << member;
            }
            hits
        };
        // One branch on the norm for the whole group.
        if self.norm == Norm::Euclidean { near_by(Norm::Euclidean) } else { near_by(self.norm) }
    }
}

/// Offers the pairs of some left points with some right points, which are given by ids, or are the first points if there are no ids.
/// Pairs of two of the first `num_done` points are skipped. A block joins as many left points as it has threads with [`RIGHTS`] right
/// points.
#[kernel(family = "join", block = JOIN_THREADS, shared = NestedSmem<C, D>, hot)]
#[instances(C = [f32, f64], D = [2, 3, 6])]
pub unsafe fn join_nested<C: Float, const D: usize>(
    sets: NestedSets<'_, C>,
    scores: PairScores<'_>,
    pairs: SliceMut<Bits128>,
    state: SliceMut<u64>,
) {
    let smem = shared_mem::<NestedSmem<C, D>>();
    let Shape { norm, pairing, .. } = Shape::from_word(sets.shape);
    let tile = shared_field!(smem, coords);
    let items = NestedPoints::<C, D> { sets, norm, bound: C::from_f64(sets.bound), tile };
    let (ranks, ids) = (shared_field!(smem, ranks), shared_field!(smem, ids));
    NestedLoop { sets, scores, pairing, items, ranks, ids }.offer(pairs, state);
}

/// Returns a mask of the bits from `bit` on.
#[inline(always)]
pub(super) fn bits_from(bit: usize) -> u32 {
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

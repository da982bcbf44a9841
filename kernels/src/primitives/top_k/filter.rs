//! Candidates: all items that are not behind a threshold, in any order.

use super::State;
use crate::block::tile::{self, THREADS, row_begin, tile_items};
use crate::policy::{STREAM_ROWS as ROWS, TOP_K};
use crate::thread::ranked::*;
use crate::warp::scan::inclusive_sum;
use cuda_std::prelude::*;

/// Candidates that a block holds back, to write them at once.
const STAGED: usize = TOP_K.staged_items;

/// Appends to `candidates`, as far as there is room, the items that are not behind the threshold of `state`, or all items
/// if `has_threshold` is 0, and counts them in `state`.
#[kernel(
    family = "primitives-top-k", block = THREADS, min_blocks = TOP_K.min_blocks,
    shared = CandidatesSmem<<B as RankBits>::Ranked>, hot
)]
#[instances(B = [u32, u64])]
pub unsafe fn primitives_top_k_filter<B: RankBits>(
    keys: Slice<B>,
    candidates: SliceMut<<B as RankBits>::Ranked>,
    state: SliceMut<u64>,
    order: u32,
    has_threshold: u32,
) {
    let state = State { words: state };
    let threshold = if has_threshold != 0 { state.threshold() } else { Ranked::LAST };
    let pieces = Pieces { keys, ranks: KeyRanks::new(KeyOrder::from_bits(order)) };
    let candidates = Candidates::begin(candidates, state.words.part(State::FOUND, 1));
    candidates.collect(&pieces, thread::block_idx_x() as usize, thread::grid_dim_x() as usize, threshold)
}

/// Shared memory for candidates.
#[repr(C, align(16))]
pub struct CandidatesSmem<R> {
    staged: [R; STAGED],
    /// Where the block's candidates begin.
    begin: [u64; 1],
    /// Candidates of the block, also those for which there was no room here.
    num_staged: [u32; 1],
}

/// Keys with their ranks, which blocks take in pieces: every so many tiles one.
#[derive(Clone, Copy)]
pub(super) struct Pieces<'a, B> {
    pub(super) keys: Slice<'a, B>,
    pub(super) ranks: KeyRanks<B>,
}

impl<B: RankBits> Pieces<'_, B> {
    /// From a tile of a piece to the next; also where the piece with that number begins.
    #[inline(always)]
    pub(super) const fn stride(num_pieces: usize) -> usize {
        num_pieces * tile_items::<B, ROWS>()
    }

    /// Item `i`.
    #[inline(always)]
    pub(super) unsafe fn item(&self, i: usize) -> B::Ranked {
        B::Ranked::new(self.ranks.rank(self.keys.load(i)), i as u32)
    }

    /// Of the tile that begins at `begin` a bit for each item of the thread that is not behind the threshold.
    #[inline(always)]
    unsafe fn near(&self, begin: usize, threshold: B::Ranked) -> u32 {
        let keys = tile::load::<B, ROWS>(self.keys, begin, B::ZERO);
        let rank = |row: usize, e: usize| self.ranks.rank(keys[row][e]);
        let valid = tile::valid_bits::<B, ROWS>(begin, self.keys.len());
        let near = valid & tile::bits::<B, ROWS>(|row, e| rank(row, e) <= threshold.rank());
        // Most tiles of a thread have none; only with one the ids are looked at.
        if near == 0 {
            return 0;
        }
        let has_rank = tile::bits::<B, ROWS>(|row, e| rank(row, e) == threshold.rank());
        near & (!has_rank | tile::valid_bits::<B, ROWS>(begin, threshold.id() as usize + 1))
    }
}

/// One block's candidates: in shared memory while there is room, then straight to memory.
pub(super) struct Candidates<'a, R> {
    candidates: SliceMut<'a, R>,
    /// One word: how many there are of all blocks.
    count: SliceMut<'a, u64>,
    smem: *mut CandidatesSmem<R>,
}

impl<'a, R: Ranked> Candidates<'a, R> {
    /// Ends with a barrier.
    #[inline(always)]
    pub(super) unsafe fn begin(candidates: SliceMut<'a, R>, count: SliceMut<'a, u64>) -> Self {
        let smem = shared_mem::<CandidatesSmem<R>>();
        if thread::thread_idx_x() == 0 {
            shared_field!(smem, num_staged).store(0, 0);
        }
        thread::sync_threads();
        Self { candidates, count, smem }
    }

    /// Appends the items of a piece that are not behind the threshold.
    #[inline(always)]
    pub(super) unsafe fn collect<B: RankBits<Ranked = R>>(
        self,
        pieces: &Pieces<'_, B>,
        piece: usize,
        num_pieces: usize,
        threshold: R,
    ) where
        R: Ranked<Rank = B>,
    {
        let mut begin = Pieces::<B>::stride(piece);
        while begin < pieces.keys.len() {
            let near = pieces.near(begin, threshold);
            if warp::warp_vote_any(warp::FULL_MASK, near != 0) {
                self.push(pieces, begin, near);
            }
            begin += Pieces::<B>::stride(num_pieces);
        }
        self.finish()
    }

    /// Appends the items of a warp whose bits are set.
    #[inline(always)]
    unsafe fn push<B: RankBits<Ranked = R>>(&self, pieces: &Pieces<'_, B>, begin: usize, near: u32) {
        let staged = shared_field!(self.smem, staged);
        let inclusive = inclusive_sum(near.count_ones());
        let total = warp::shuffle_idx(warp::FULL_MASK, inclusive, 31);
        let (mut place, mut rest_begin) = (0, 0);
        if warp::lane_id() == 0 {
            let num_staged = shared_field!(self.smem, num_staged);
            place = num_staged.atomic_add(0, total, Ordering::Relaxed, Scope::Block);
            let rest = total - Self::fitting(place, total);
            if rest > 0 {
                rest_begin = self.count.atomic_add(0, rest.into(), Ordering::Relaxed, Scope::Device);
            }
        }
        let place = warp::shuffle_idx(warp::FULL_MASK, place, 0);
        let rest_begin = warp::shuffle_idx(warp::FULL_MASK, rest_begin, 0);
        let fitting = Self::fitting(place, total);

        let mut n = inclusive - near.count_ones();
        let mut bits = near;
        while bits != 0 {
            // Read again, since registers have no numbers.
            let (row, e) =
                (bits.trailing_zeros() as usize / B::PER_16, bits.trailing_zeros() as usize % B::PER_16);
            let item = pieces.item(begin + row_begin::<B, ROWS>(row) + e);
            if n < fitting {
                staged.store((place + n) as usize, item);
            } else {
                self.store(rest_begin + u64::from(n - fitting), item);
            }
            n += 1;
            bits &= bits - 1;
        }
    }

    /// How many of `total` candidates have room in shared memory behind the first `place`.
    #[inline(always)]
    fn fitting(place: u32, total: u32) -> u32 {
        let room = (STAGED as u32).saturating_sub(place);
        if total < room { total } else { room }
    }

    #[inline(always)]
    unsafe fn store(&self, i: u64, item: R) {
        if i < self.candidates.len() as u64 {
            self.candidates.store(i as usize, item);
        }
    }

    /// Writes what is in shared memory.
    #[inline(always)]
    unsafe fn finish(self) {
        let (staged, begin) = (shared_field!(self.smem, staged), shared_field!(self.smem, begin));
        let thread = thread::thread_idx_x() as usize;
        thread::sync_threads();
        let num_staged = shared_field!(self.smem, num_staged).load(0) as usize;
        let num_staged = if num_staged < STAGED { num_staged } else { STAGED };
        if num_staged == 0 {
            return;
        }
        if thread == 0 {
            begin.store(0, self.count.atomic_add(0, num_staged as u64, Ordering::Relaxed, Scope::Device));
        }
        thread::sync_threads();
        let mut i = thread;
        while i < num_staged {
            self.store(begin.load(0) + i as u64, staged.load(i));
            i += THREADS;
        }
    }
}

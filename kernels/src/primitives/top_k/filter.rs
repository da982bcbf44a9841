//! Collection of the candidates: all items up to a threshold, in any order.

use super::State;
use crate::block::tile::{self, THREADS, row_begin, tile_items};
use crate::policy::{STREAM_ROWS as ROWS, TOP_K};
use crate::thread::ranked::*;
use crate::warp::scan::inclusive_sum;
use cuda_std::prelude::*;

/// Candidates that a block stages in shared memory before it writes them.
const STAGED: usize = TOP_K.staged_items;

/// Appends the items up to the threshold of `state`, or all items if `has_threshold` is 0, to `candidates`, as far as
/// their capacity goes, and counts them in `state`.
#[kernel(
    family = "primitives-top-k", block = THREADS, min_blocks = TOP_K.min_blocks,
    shared = CandidatesSmem<<B as RankBits>::Ranked>, hot
)]
#[instances(B = [u32, u64])]
pub unsafe fn primitives_top_k_filter<B: RankBits>(
    keys: Slice<B>,
    candidates: SliceMut<<B as RankBits>::Ranked>,
    state: SliceMut<u64>,
    order: KeyOrder,
    has_threshold: u32,
) {
    let state = State { words: state };
    let threshold = if has_threshold != 0 { state.threshold() } else { Ranked::LAST };
    let pieces = Pieces { keys, ranks: KeyRanks::new(order) };
    let candidates = Candidates::begin(candidates, state.words.part(State::FOUND, 1));
    candidates.collect(&pieces, thread::block_idx_x() as usize, thread::grid_dim_x() as usize, threshold)
}

/// Shared memory for candidates.
#[repr(C, align(16))]
pub struct CandidatesSmem<R> {
    staged: [R; STAGED],
    /// The begin of the block's candidates in the output.
    begin: [u64; 1],
    /// The number of the block's candidates, including those beyond the capacity here.
    num_staged: [u32; 1],
}

/// Keys with their ranks, split into interleaved pieces: piece i has every `num_pieces`-th tile from tile i on.
#[derive(Clone, Copy)]
pub(super) struct Pieces<'a, B> {
    pub(super) keys: Slice<'a, B>,
    pub(super) ranks: KeyRanks<B>,
}

impl<B: RankBits> Pieces<'_, B> {
    /// Returns the distance between two tiles of a piece, which is also the begin of the piece with this number.
    #[inline(always)]
    pub(super) const fn stride(num_pieces: usize) -> usize {
        num_pieces * tile_items::<B, ROWS>()
    }

    /// Loads item `i`.
    #[inline(always)]
    pub(super) unsafe fn item(&self, i: usize) -> B::Ranked {
        B::Ranked::new(self.ranks.rank(self.keys.load(i)), i as u32)
    }

    /// Returns a bit per item of the thread in the tile at `begin`, set for items up to the threshold.
    #[inline(always)]
    unsafe fn reaches(&self, begin: usize, threshold: B::Ranked) -> u32 {
        let keys = tile::load::<B, ROWS>(self.keys, begin, B::ZERO);
        let rank = |row: usize, e: usize| self.ranks.rank(keys[row][e]);
        let valid = tile::valid_bits::<B, ROWS>(begin, self.keys.len());
        let reaches = valid & tile::bits::<B, ROWS>(|row, e| rank(row, e) <= threshold.rank());
        // Usually no item reaches the threshold; ids are compared only if one does.
        if reaches == 0 {
            return 0;
        }
        let has_rank = tile::bits::<B, ROWS>(|row, e| rank(row, e) == threshold.rank());
        reaches & (!has_rank | tile::valid_bits::<B, ROWS>(begin, threshold.id() as usize + 1))
    }
}

/// The candidates of one block: staged in shared memory, and written directly when it is full.
pub(super) struct Candidates<'a, R> {
    candidates: SliceMut<'a, R>,
    /// One word: the number of candidates of all blocks.
    count: SliceMut<'a, u64>,
    smem: *mut CandidatesSmem<R>,
}

impl<'a, R: Ranked> Candidates<'a, R> {
    /// Creates an empty set of candidates. Ends with a barrier.
    #[inline(always)]
    pub(super) unsafe fn begin(candidates: SliceMut<'a, R>, count: SliceMut<'a, u64>) -> Self {
        let smem = shared_mem::<CandidatesSmem<R>>();
        if thread::thread_idx_x() == 0 {
            shared_field!(smem, num_staged).store(0, 0);
        }
        thread::sync_threads();
        Self { candidates, count, smem }
    }

    /// Appends the items of a piece up to the threshold.
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
            let reaches = pieces.reaches(begin, threshold);
            if warp::warp_vote_any(warp::FULL_MASK, reaches != 0) {
                self.push(pieces, begin, reaches);
            }
            begin += Pieces::<B>::stride(num_pieces);
        }
        self.finish()
    }

    /// Appends the items of a warp whose bits are set.
    #[inline(always)]
    unsafe fn push<B: RankBits<Ranked = R>>(&self, pieces: &Pieces<'_, B>, begin: usize, reaches: u32) {
        let staged = shared_field!(self.smem, staged);
        let inclusive = inclusive_sum(reaches.count_ones());
        let total = warp::shuffle_idx(warp::FULL_MASK, inclusive, 31);
        let (mut first, mut rest_begin) = (0, 0);
        if warp::lane_id() == 0 {
            let num_staged = shared_field!(self.smem, num_staged);
            first = num_staged.atomic_add(0, total, Ordering::Relaxed, Scope::Block);
            let rest = total - Self::fitting(first, total);
            if rest > 0 {
                rest_begin = self.count.atomic_add(0, rest.into(), Ordering::Relaxed, Scope::Device);
            }
        }
        let first = warp::shuffle_idx(warp::FULL_MASK, first, 0);
        let rest_begin = warp::shuffle_idx(warp::FULL_MASK, rest_begin, 0);
        let fitting = Self::fitting(first, total);

        let mut n = inclusive - reaches.count_ones();
        let mut bits = reaches;
        while bits != 0 {
            // Reloaded, because registers cannot be indexed.
            let (row, e) =
                (bits.trailing_zeros() as usize / B::PER_16, bits.trailing_zeros() as usize % B::PER_16);
            let item = pieces.item(begin + row_begin::<B, ROWS>(row) + e);
            if n < fitting {
                staged.store((first + n) as usize, item);
            } else {
                self.store(rest_begin + u64::from(n - fitting), item);
            }
            n += 1;
            bits &= bits - 1;
        }
    }

    /// Returns how many of `total` candidates fit in shared memory behind the first `first` ones.
    #[inline(always)]
    fn fitting(first: u32, total: u32) -> u32 {
        let free = (STAGED as u32).saturating_sub(first);
        if total < free { total } else { free }
    }

    #[inline(always)]
    unsafe fn store(&self, i: u64, item: R) {
        if i < self.candidates.len() as u64 {
            self.candidates.store(i as usize, item);
        }
    }

    /// Writes the staged candidates.
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

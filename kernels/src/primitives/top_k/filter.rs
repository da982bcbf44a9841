//! Candidates: all items that are not behind a threshold, in any order.

use super::State;
use crate::block::tile::{self, Items, MAX_ITEMS, ROWS, THREADS, row_begin, tile_items};
use crate::policy::TOP_K;
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
#[instance(u32)]
#[instance(u64)]
pub unsafe fn primitives_top_k_filter<B: RankBits>(
    keys: Slice<B>,
    candidates: SliceMut<<B as RankBits>::Ranked>,
    state: SliceMut<u64>,
    order: u32,
    has_threshold: u32,
) {
    let state = State { words: state };
    let threshold = if has_threshold != 0 { state.threshold() } else { Ranked::LAST };
    let pieces = Pieces { keys, ranks: KeyRanks::new(RankOrder::from_bits(order)) };
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
    /// Calls `visit` with each tile's items of the thread and a bit for each that is there.
    #[inline(always)]
    pub(super) unsafe fn for_each_tile(
        &self,
        piece: usize,
        num_pieces: usize,
        mut visit: impl FnMut(Items<B::Ranked>, u32),
    ) {
        let mut begin = piece * tile_items::<B>();
        while begin < self.keys.len() {
            let loaded = tile::load(self.keys, begin, B::ZERO);
            let mut items = [B::Ranked::LAST; MAX_ITEMS];
            let mut there = u32::MAX;
            let mut row = 0;
            while row < ROWS {
                let first = begin + row_begin::<B>(row);
                let mut e = 0;
                while e < B::PER_16 {
                    let i = row * B::PER_16 + e;
                    items[i] = B::Ranked::new(self.ranks.rank(loaded[i]), (first + e) as u32);
                    e += 1;
                }
                row += 1;
            }
            if begin + tile_items::<B>() > self.keys.len() {
                there = Self::there(begin, self.keys.len());
            }
            visit(items, there);
            begin += num_pieces * tile_items::<B>();
        }
    }

    /// A bit for each item of the thread in the tile at `begin` that is before `len`.
    #[inline(always)]
    fn there(begin: usize, len: usize) -> u32 {
        let mut there = 0;
        let mut row = 0;
        while row < ROWS {
            let mut e = 0;
            while e < B::PER_16 {
                let is_there = begin + row_begin::<B>(row) + e < len;
                there |= u32::from(is_there) << (row * B::PER_16 + e);
                e += 1;
            }
            row += 1;
        }
        there
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
    ) {
        pieces.for_each_tile(piece, num_pieces, |items, there| {
            let mut take = 0;
            let mut i = 0;
            while i < ROWS * B::PER_16 {
                take |= u32::from(!threshold.is_before(items[i])) << i;
                i += 1;
            }
            let take = take & there;
            // Most tiles of a warp have none.
            if warp::warp_vote_any(warp::FULL_MASK, take != 0) {
                self.push::<B>(items, take);
            }
        });
        self.finish()
    }

    /// Appends the items of a warp whose bits are set.
    #[inline(always)]
    unsafe fn push<B: RankBits<Ranked = R>>(&self, items: Items<R>, take: u32) {
        let staged = shared_field!(self.smem, staged);
        let inclusive = inclusive_sum(take.count_ones());
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

        let before = inclusive - take.count_ones();
        Self::for_each::<B>(take, before, |i, n| {
            if n < fitting {
                staged.store((place + n) as usize, items[i]);
            }
        });
        // Apart, so that the compiler does not make one store of both, to memory of an unknown kind.
        if fitting < total {
            Self::for_each::<B>(take, before, |i, n| {
                if n >= fitting {
                    self.store(rest_begin + u64::from(n - fitting), items[i]);
                }
            });
        }
    }

    /// Calls `visit` with each item whose bit is set, and its number from `n` on.
    #[inline(always)]
    unsafe fn for_each<B: RankBits<Ranked = R>>(take: u32, mut n: u32, visit: impl Fn(usize, u32)) {
        let mut i = 0;
        while i < ROWS * B::PER_16 {
            if take >> i & 1 != 0 {
                visit(i, n);
                n += 1;
            }
            i += 1;
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

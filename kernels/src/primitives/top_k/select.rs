//! Selection of exactly the k best items, digit by digit, for when the sampled threshold is unusable.
//!
//! One launch: tickets number the work, digit after digit, and a piece of a digit waits for all pieces of the previous
//! digit. Those have lower tickets, so running blocks already have them.

use super::State;
use super::filter::{Candidates, CandidatesSmem, Pieces};
use crate::block::nth::{NthSmem, clear_counts, count_digit, find_digit};
use crate::block::tile::THREADS;
use crate::thread::radix_key::RADIX;
use crate::thread::ranked::*;
use crate::thread::words::Words;
use cuda_std::prelude::*;

/// Sets the number of selected candidates in `state`. If there are at least `k` candidates and they fit, they all stay
/// selected. Else the candidates become the `k` best items; `k` is at most the number of keys.
#[kernel(family = "primitives-top-k", block = THREADS, shared = SelectSmem<<B as RankBits>::Ranked>)]
#[instances(B = [u32, u64])]
pub unsafe fn primitives_top_k_select<B: RankBits>(
    keys: Slice<B>,
    candidates: SliceMut<<B as RankBits>::Ranked>,
    state: SliceMut<u64>,
    order: KeyOrder,
    k: u64,
) {
    let pieces = Pieces { keys, ranks: KeyRanks::new(order) };
    Select { pieces, candidates, state: State { words: state }, k }.run()
}

/// Shared memory of the selection.
#[repr(C)]
pub struct SelectSmem<R> {
    // First, because `Candidates` uses the block's shared memory from its beginning.
    candidates: CandidatesSmem<R>,
    nth: NthSmem,
    ticket: [u64; 1],
}

/// One block's part of the selection.
struct Select<'a, B: RankBits> {
    pieces: Pieces<'a, B>,
    candidates: SliceMut<'a, B::Ranked>,
    state: State<'a>,
    k: u64,
}

impl<B: RankBits> Select<'_, B> {
    #[inline(always)]
    unsafe fn run(self) {
        let words = self.state.words;
        let found = words.load(State::FOUND);
        let is_usable = found >= self.k && found <= self.candidates.len() as u64;
        if thread::index_1d_u64() == 0 {
            words.store(State::SELECTED, if is_usable { found } else { self.k });
        }
        if !is_usable {
            self.select()
        }
    }

    #[inline(always)]
    unsafe fn select(self) {
        let smem = shared_mem::<SelectSmem<B::Ranked>>();
        let ticket = shared_field!(smem, ticket);
        let num_pieces = thread::grid_dim_x() as usize;
        // The leading digits of the k-th item, their number, and the item's rank among the items with these digits.
        let (mut prefix, mut known, mut n) = (B::Ranked::ZEROS, 0, self.k - 1);
        loop {
            let work = self.state.ticket().take(ticket);
            let (digit, piece) = ((work / num_pieces) as u32, work % num_pieces);
            if digit > B::Ranked::DIGITS {
                break;
            }
            while known < digit {
                self.wait_for(known, num_pieces as u64);
                let count = |value| {
                    let i = State::count_of(known, value);
                    self.state.words.atomic_load(i, Ordering::Relaxed, Scope::Device)
                };
                let (value, before) = find_digit(count, n);
                prefix = prefix.with_digit(known, value);
                n -= before;
                known += 1;
            }
            if digit < B::Ranked::DIGITS {
                self.count(digit, prefix, piece, num_pieces);
            } else {
                let count = self.state.words.part(State::COLLECTED, 1);
                Candidates::begin(self.candidates, count).collect(&self.pieces, piece, num_pieces, prefix);
            }
            // Separates this round from the next ticket and the next use of shared memory.
            thread::sync_threads();
        }
    }

    /// Waits until all pieces have counted a digit.
    #[inline(always)]
    unsafe fn wait_for(&self, digit: u32, num_pieces: u64) {
        if thread::thread_idx_x() == 0 {
            let done = State::done(digit);
            while self.state.words.atomic_load(done, Ordering::Acquire, Scope::Device) < num_pieces {
                thread::spin_hint();
            }
        }
        thread::sync_threads();
    }

    /// Counts digit `digit` of the items of a piece whose earlier digits equal `prefix`.
    #[inline(always)]
    unsafe fn count(&self, digit: u32, prefix: B::Ranked, piece: usize, num_pieces: usize) {
        let counts = shared_field!(shared_mem::<SelectSmem<B::Ranked>>(), nth.counts);
        let thread = thread::thread_idx_x() as usize;
        clear_counts(counts);
        thread::sync_threads();
        let num_items = self.pieces.keys.len();
        let mut begin = Pieces::<B>::stride(piece);
        while begin < num_items {
            let end = begin + Pieces::<B>::stride(1);
            let mut i = begin + thread;
            while i < end && i < num_items {
                count_digit(self.pieces.item(i), prefix, digit, counts);
                i += THREADS;
            }
            begin += Pieces::<B>::stride(num_pieces);
        }
        thread::sync_threads();
        let mut value = thread;
        while value < RADIX {
            let count = counts.load(value);
            if count != 0 {
                let i = State::count_of(digit, value);
                self.state.words.atomic_add(i, count.into(), Ordering::Relaxed, Scope::Device);
            }
            value += THREADS;
        }
        thread::sync_threads();
        if thread == 0 {
            self.state.arrive(State::done(digit));
        }
    }
}

//! Decoupled look-back (Merrill, Garland 2016) by one thread per column: the exclusive prefix of a tile's sum in each
//! column, such as a digit of the radix sort.
//!
//! A tile publishes one word per column: first its own sum (partial), then, once known, the sum of all tiles up to it
//! (inclusive). State and sum share a word, so a word is consistent by itself, and relaxed loads and stores at device
//! scope are enough.

use crate::policy::LOOK_BACK_WINDOW;
use cuda_std::atomic::AtomicValue;
use cuda_std::prelude::*;
use cuda_std::shared::SharedElement;

/// A word of state and sum, and the type of the sums: `u32` for up to 2^30 items in all, `u64` for more.
pub trait LookBackWord: AtomicValue + SharedElement + Send + Sync + cust_core::DeviceCopy + 'static {
    /// 0.
    const ZERO: Self;

    /// Packs a word. The highest two bits of the sum are lost. Exactly 2^30 items fit nevertheless, since no tile reads
    /// the sum of all of them.
    fn new(state: u32, sum: Self) -> Self;
    /// Returns the state of a word.
    fn state(self) -> u32;
    /// Returns the sum in a word.
    fn sum(self) -> Self;

    /// Converts a count.
    fn from_count(count: u32) -> Self;
    /// Converts an output index; `u32` keeps it modulo 2^32.
    fn from_index(index: u64) -> Self;
    /// Converts to an index.
    fn index(self) -> usize;
    /// Wrapping addition.
    fn plus(self, other: Self) -> Self;
    /// Wrapping subtraction.
    fn minus(self, other: Self) -> Self;
}

macro_rules! look_back_words {
    ($($word:ty),*) => { $(
        impl LookBackWord for $word {
            const ZERO: Self = 0;

            #[inline(always)]
            fn new(state: u32, sum: Self) -> Self {
                sum << 2 | state as $word
            }
            #[inline(always)]
            fn state(self) -> u32 {
                self as u32 & 3
            }
            #[inline(always)]
            fn sum(self) -> Self {
                self >> 2
            }
            #[inline(always)]
            fn from_count(count: u32) -> Self {
                count.into()
            }
            #[inline(always)]
            fn from_index(index: u64) -> Self {
                index as $word
            }
            #[inline(always)]
            fn index(self) -> usize {
                self as usize
            }
            #[inline(always)]
            fn plus(self, other: Self) -> Self {
                self.wrapping_add(other)
            }
            #[inline(always)]
            fn minus(self, other: Self) -> Self {
                self.wrapping_sub(other)
            }
        }
    )* };
}
look_back_words!(u32, u64);

/// Nothing is published yet; the state of a zeroed word.
const INVALID: u32 = 0;
/// The sum of the tile is published.
const PARTIAL: u32 = 1;
/// The sum of the tile and all tiles before it is published.
const INCLUSIVE: u32 = 2;

/// One column of the published words of all tiles. The word of tile `t` is at `t * stride + column`.
#[derive(Clone, Copy)]
pub struct ColumnLookBack<'a, N> {
    /// The words of all columns; zeroed before the launch.
    pub words: SliceMut<'a, N>,
    /// The number of columns per tile.
    pub stride: usize,
    /// The caller's column.
    pub column: usize,
}

impl<N: LookBackWord> ColumnLookBack<'_, N> {
    #[inline(always)]
    unsafe fn publish(&self, tile: u32, state: u32, sum: N) {
        let word = tile as usize * self.stride + self.column;
        self.words.atomic_store(word, N::new(state, sum), Ordering::Relaxed, Scope::Device);
    }

    #[inline(always)]
    unsafe fn read(&self, tile: u32) -> N {
        self.words.atomic_load(tile as usize * self.stride + self.column, Ordering::Relaxed, Scope::Device)
    }

    /// Publishes the sum of a tile.
    ///
    /// # Safety
    /// Called once per tile and column, before [`exclusive_prefix`](Self::exclusive_prefix).
    #[inline(always)]
    pub unsafe fn publish_sum(&self, tile: u32, own: N) {
        // The first tile's sum is inclusive already.
        self.publish(tile, if tile == 0 { INCLUSIVE } else { PARTIAL }, own);
    }

    /// Returns the sum of all tiles before this one, whose own sum is `own`. Waits for tiles that have published
    /// nothing yet. Tiles must be numbered by a ticket, in the order in which blocks start; otherwise this may wait for
    /// a block that cannot start.
    ///
    /// # Safety
    /// Called once per tile and column, after [`publish_sum`](Self::publish_sum).
    #[inline(always)]
    pub unsafe fn exclusive_prefix(&self, tile: u32, own: N) -> N {
        let mut sum = N::ZERO;
        let mut before = tile;
        let mut done = tile == 0;
        while !done {
            // Several loads are in flight at once. Tile 0 always ends the look-back, so indices below it repeat tile 0.
            let mut words = [N::ZERO; LOOK_BACK_WINDOW];
            for i in 0..LOOK_BACK_WINDOW {
                words[i] = self.read(before.saturating_sub(1 + i as u32));
            }
            if words[0].state() == INVALID {
                thread::spin_hint();
            }
            let mut known = true;
            for i in 0..LOOK_BACK_WINDOW {
                known = known && !done && words[i].state() != INVALID;
                if known {
                    sum = sum.plus(words[i].sum());
                    before -= 1;
                    done = words[i].state() == INCLUSIVE;
                }
            }
        }
        if tile > 0 {
            self.publish(tile, INCLUSIVE, sum.plus(own));
        }
        sum
    }
}

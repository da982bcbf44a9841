//! Decoupled look-back (Merrill, Garland 2016) by a thread a column: a tile's running sum from what the tiles before it
//! have published.
//!
//! A tile publishes one word a column: first its own sum (partial), then, when it knows the sum of all tiles before it,
//! the sum including them (inclusive). State and sum share a word, so a word is consistent by itself, and relaxed loads
//! and stores at device scope are all the order that is needed.

use crate::policy::LOOK_BACK_WINDOW;
use cuda_std::atomic::AtomicValue;
use cuda_std::prelude::*;
use cuda_std::shared::SharedElement;

/// A word of state and sum, and the type of the sums. `u32` is for up to 2^30 items in all, `u64` for more than there
/// can be.
pub trait LookBackWord: AtomicValue + SharedElement + Send + Sync + cust_core::DeviceCopy + 'static {
    /// 0.
    const ZERO: Self;

    /// A word. Of the sum the highest two bits are lost: exactly 2^30 items fit nevertheless, since nobody reads the sum of
    /// all of them.
    fn new(state: u32, sum: Self) -> Self;
    /// The state of a word.
    fn state(self) -> u32;
    /// The sum in a word.
    fn sum(self) -> Self;

    /// A count.
    fn from_count(count: u32) -> Self;
    /// A place; as `u32` modulo 2^32.
    fn from_place(place: u64) -> Self;
    /// As an index.
    fn index(self) -> usize;
    /// Sum modulo the type's size.
    fn plus(self, other: Self) -> Self;
    /// Difference modulo the type's size.
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
            fn from_place(place: u64) -> Self {
                place as $word
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

/// Nothing published yet: what a zeroed word says.
const INVALID: u32 = 0;
/// The tile's own sum.
const PARTIAL: u32 = 1;
/// The sum of the tile and all before it.
const INCLUSIVE: u32 = 2;

/// One column of the published words of all tiles: that of tile `t` is at `t * stride + column`.
#[derive(Clone, Copy)]
pub struct LookBack<'a, N> {
    /// All words; zeroed before the launch.
    pub words: SliceMut<'a, N>,
    /// Columns of a tile.
    pub stride: usize,
    /// The caller's column.
    pub column: usize,
}

impl<N: LookBackWord> LookBack<'_, N> {
    #[inline(always)]
    unsafe fn publish(&self, tile: u32, state: u32, sum: N) {
        let word = tile as usize * self.stride + self.column;
        self.words.atomic_store(word, N::new(state, sum), Ordering::Relaxed, Scope::Device);
    }

    #[inline(always)]
    unsafe fn read(&self, tile: u32) -> N {
        self.words.atomic_load(tile as usize * self.stride + self.column, Ordering::Relaxed, Scope::Device)
    }

    /// Publishes the tile's own sum.
    ///
    /// # Safety
    /// Once a tile and column, before [`prefix`](Self::prefix).
    #[inline(always)]
    pub unsafe fn publish_own(&self, tile: u32, own: N) {
        // The first tile's own sum already includes all before it.
        self.publish(tile, if tile == 0 { INCLUSIVE } else { PARTIAL }, own);
    }

    /// The sum of all tiles before this one, whose own sum is `own`; waits for tiles that have published nothing yet.
    /// Tiles must be numbered in the order in which blocks start, by a ticket, or this may wait for a block that waits for
    /// a place to run.
    ///
    /// # Safety
    /// Once a tile and column, after [`publish_own`](Self::publish_own).
    #[inline(always)]
    pub unsafe fn prefix(&self, tile: u32, own: N) -> N {
        let mut sum = N::ZERO;
        let mut before = tile;
        let mut done = tile == 0;
        while !done {
            // Several words are under way at once; below tile 0, which always ends the walk, nothing is asked for.
            let mut words = [N::ZERO; LOOK_BACK_WINDOW];
            let mut i = 0;
            while i < LOOK_BACK_WINDOW {
                words[i] = self.read(before.saturating_sub(1 + i as u32));
                i += 1;
            }
            if words[0].state() == INVALID {
                thread::spin_hint();
            }
            let mut known = true;
            let mut i = 0;
            while i < LOOK_BACK_WINDOW {
                known = known && !done && words[i].state() != INVALID;
                if known {
                    sum = sum.plus(words[i].sum());
                    before -= 1;
                    done = words[i].state() == INCLUSIVE;
                }
                i += 1;
            }
        }
        if tile > 0 {
            self.publish(tile, INCLUSIVE, sum.plus(own));
        }
        sum
    }
}

//! Top-k: the k best keys with their ids, in one pass over the keys.
//!
//! 1. [`sample`]: a threshold that k keys, or a few more, are expected to reach.
//! 2. [`filter`]: the candidates, keys that reach the threshold, in any order.
//! 3. [`select`]: if there are too few or too many candidates, exactly the k best, digit by digit; else nothing.
//! 4. [`rank`]: each candidate's rank, by counting the candidates before it. Many candidates are sorted instead
//!    ([`merge_sort`](super::merge_sort)), and [`rank`] writes them.
//!
//! Keys are compared together with their ids, so all items are distinct. A sample of random items therefore predicts
//! how many items reach a threshold, whatever the keys are.

pub mod filter;
pub mod rank;
pub mod sample;
pub mod segments;
pub mod select;

use crate::thread::radix_key::RADIX;
use crate::thread::ranked::Ranked;
use crate::thread::words::{join, split};
use crate::warp::look_back::Ticket;
use cuda_std::prelude::*;

/// The most digits of a [`Ranked`] item.
const MAX_DIGITS: usize = 12;

/// The state that the kernels share: words that start as zeros.
#[derive(Clone, Copy)]
pub struct State<'a> {
    /// [`State::WORDS`] words.
    pub words: SliceMut<'a, u64>,
}

impl<'a> State<'a> {
    /// The number of candidates that the filter found; it can exceed their capacity.
    pub const FOUND: usize = 0;
    /// The number of candidates after the selection.
    pub const SELECTED: usize = 1;
    const SAMPLED_BLOCKS: usize = 2;
    const THRESHOLD: usize = 3;
    const COLLECTED: usize = 5;
    const TICKET: usize = 6;
    const DONE: usize = 7;
    const COUNTS: usize = Self::DONE + MAX_DIGITS;
    /// The number of words.
    pub const WORDS: usize = Self::COUNTS + MAX_DIGITS * RADIX;

    /// Sets the threshold. Items reach it if they are not after it.
    #[inline(always)]
    unsafe fn set_threshold<R: Ranked>(&self, threshold: R) {
        let words = threshold.to_words();
        self.words.store(Self::THRESHOLD, join(words));
        self.words.store(Self::THRESHOLD + 1, join([words[2], words[3], 0, 0]));
    }

    #[inline(always)]
    unsafe fn threshold<R: Ranked>(&self) -> R {
        let low = split(self.words.load(Self::THRESHOLD));
        let high = split(self.words.load(Self::THRESHOLD + 1));
        R::from_words([low[0], low[1], high[0], high[1]])
    }

    #[inline(always)]
    unsafe fn ticket(&self) -> Ticket<'a> {
        Ticket { counter: self.words.part(Self::TICKET, 1) }
    }

    /// Adds one to a counter, with release and acquire order, and returns the previous value.
    #[inline(always)]
    unsafe fn arrive(&self, counter: usize) -> u64 {
        self.words.atomic_add(counter, 1, Ordering::AcqRel, Scope::Device)
    }

    /// The counter of pieces whose digit `i` is counted.
    #[inline(always)]
    const fn done(i: u32) -> usize {
        Self::DONE + i as usize
    }

    /// The number of items whose digit `i` is `digit`.
    #[inline(always)]
    const fn count_of(i: u32, digit: usize) -> usize {
        Self::COUNTS + i as usize * RADIX + digit
    }
}

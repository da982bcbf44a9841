//! Bits with their sums: the number of set bits before each bit.

use crate::policy::PER_ITEM_THREADS;
use crate::thread::items::own_item;
use cuda_std::prelude::*;

/// Bits, and the number of set bits before each word of 32.
#[derive(Clone, Copy, KernelArgs)]
pub struct SummedBits<'a> {
    /// The bits, 32 in a word.
    pub words: Slice<'a, u32>,
    /// The number of set bits before each word.
    pub before: Slice<'a, u32>,
}

impl SummedBits<'_> {
    /// Returns a bit, and the number of set bits before it.
    #[inline(always)]
    pub(crate) unsafe fn get(&self, i: usize) -> (bool, u32) {
        let (word, bit) = (self.words.load(i / 32), i as u32 % 32);
        (word >> bit & 1 != 0, self.before.load(i / 32) + (word & ((1 << bit) - 1)).count_ones())
    }
}

/// Writes the number of set bits of each word; one thread per word.
#[kernel(family = "query", block = PER_ITEM_THREADS)]
pub unsafe fn query_count_bits(words: Slice<u32>, counts: SliceMut<u32>) {
    if let Some(i) = own_item(counts.len()) {
        counts.store(i, words.load(i).count_ones());
    }
}

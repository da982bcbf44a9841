//! Bits of the items of an array, and how many are set before each 32 of them: ranks by one popc.

use cuda_std::mem::Slice;

/// Words of bits that items have: one more than they fill, so that there is a rank behind the last item too.
pub const fn num_words(num_items: usize) -> usize {
    num_items / 32 + 1
}

/// A plane of bits with its counts.
pub struct Ranks<'a> {
    /// Bit i % 32 of word i / 32 is that of item i.
    pub bits: Slice<'a, u32>,
    /// Bits that are set in the words before each word.
    pub before: Slice<'a, u64>,
}

impl Ranks<'_> {
    /// The bit of item `i`, and how many of the items before it have theirs set.
    ///
    /// # Safety
    /// `i` is at most the number of items.
    #[inline(always)]
    pub unsafe fn get(&self, i: u64) -> (bool, u64) {
        let (word, bit) = ((i / 32) as usize, (i % 32) as u32);
        let bits = self.bits.load(word);
        let below = (bits & ((1 << bit) - 1)).count_ones();
        (bits >> bit & 1 != 0, self.before.load(word) + u64::from(below))
    }
}

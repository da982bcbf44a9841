//! A bit per item with prefix counts: the rank of an item takes one load and one population count.

use cuda_std::mem::Slice;

/// Returns the number of words for the bits of `num_items` items, plus one: a rank behind the last item exists too.
pub const fn num_words(num_items: usize) -> usize {
    num_items / 32 + 1
}

/// A bit vector with the prefix counts of its words.
pub struct Ranks<'a> {
    /// Bit i % 32 of word i / 32 belongs to item i.
    pub bits: Slice<'a, u32>,
    /// The number of set bits before each word.
    pub before: Slice<'a, u64>,
}

impl Ranks<'_> {
    /// Returns the bit of item `i`, and the number of set bits before it.
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

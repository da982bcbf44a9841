//! What the tiles before a tile add up to, found by looking back at what their blocks have published
//! (Merrill, Garland 2016, *Single-pass Parallel Prefix Scan with Decoupled Look-back*).
//!
//! A published value lies in one 64-bit word for each of its 32-bit words, with a flag beside each. A reader takes a value
//! when all its words have one flag: so relaxed loads and stores of words are enough, without fences, for a value of any
//! width. The words start as zeros. Tiles are numbered by a [`Ticket`], so that a block waits only for blocks that run.

use super::scan::reduce;
use crate::thread::operator::Operator;
use crate::thread::words::{MAX_WORDS, Words};
use cuda_std::prelude::*;

/// Nothing is published yet.
const NOTHING: u32 = 0;
/// The tile's own sum.
const PARTIAL: u32 = 1;
/// The sum of the tile and all before it.
const INCLUSIVE: u32 = 2;

/// Tiles that look back at each other before a sum of them is published.
pub const GROUP: usize = 32;

/// How sums of tiles are handed on.
pub trait LookBack: 'static {
    /// 64-bit words that hold the published sums of that many tiles, each sum of so many words.
    fn num_words(num_tiles: usize, words: usize) -> usize;

    /// Publishes the sum of tile `tile` and returns what the tiles before it add up to.
    ///
    /// # Safety
    /// All lanes of one warp of the tile's block call, with the same arguments; `words` are as many as
    /// [`num_words`](Self::num_words) says and were zeros when the kernel started; tiles are numbered by a [`Ticket`].
    unsafe fn before<T: Words, O: Operator<T>>(
        words: SliceMut<u64>,
        num_tiles: usize,
        tile: usize,
        sum: T,
    ) -> T;
}

/// Each tile looks at the 32 before it, and on until it meets one that knows the sum of all before. Where the brackets
/// are depends on timing.
#[derive(Clone, Copy, Debug)]
pub struct Decoupled;

/// The brackets are always in the same place: tiles are summed in groups of 32 and those in groups of 32 again; the
/// last tile of a group publishes its sum, that of a group of groups the sum of all so far. A tile waits for the tiles of
/// its group, the groups of its group of groups, and the sum before that: three rounds at most, whatever others do.
#[derive(Clone, Copy, Debug)]
pub struct FixedOrder;

/// The words that hold values of a kind, one a tile, word after word.
struct Published<'a> {
    words: SliceMut<'a, u64>,
    /// Number of values.
    len: usize,
}

impl<'a> Published<'a> {
    /// `len` values of so many words from `begin`.
    #[inline(always)]
    unsafe fn new(words: SliceMut<'a, u64>, begin: usize, len: usize, words_of_value: usize) -> Self {
        Self { words: words.part(begin, len * words_of_value), len }
    }

    #[inline(always)]
    unsafe fn publish<T: Words>(&self, i: usize, value: T, flag: u32) {
        let own = value.to_words();
        let mut word = 0;
        while word < T::WORDS {
            let packed = u64::from(own[word]) << 32 | u64::from(flag);
            self.words.atomic_store(word * self.len + i, packed, Ordering::Relaxed, Scope::Device);
            word += 1;
        }
    }

    /// Waits for value `i`; the value and its flag.
    #[inline(always)]
    unsafe fn wait<T: Words>(&self, i: usize) -> (T, u32) {
        loop {
            let mut words = [0; MAX_WORDS];
            let mut flag = NOTHING;
            let mut whole = true;
            let mut word = 0;
            while word < T::WORDS {
                let packed = self.words.atomic_load(word * self.len + i, Ordering::Relaxed, Scope::Device);
                words[word] = (packed >> 32) as u32;
                // A value that is being replaced shows two flags for a moment.
                if word == 0 {
                    flag = packed as u32;
                } else if packed as u32 != flag {
                    whole = false;
                }
                word += 1;
            }
            if whole && flag != NOTHING {
                return (T::from_words(words), flag);
            }
            thread::spin_hint();
        }
    }
}

impl LookBack for Decoupled {
    #[inline(always)]
    fn num_words(num_tiles: usize, words: usize) -> usize {
        num_tiles * words
    }

    #[inline(always)]
    unsafe fn before<T: Words, O: Operator<T>>(
        words: SliceMut<u64>,
        num_tiles: usize,
        tile: usize,
        sum: T,
    ) -> T {
        let tiles = Published::new(words, 0, num_tiles, T::WORDS);
        let lane = warp::lane_id() as usize;
        if tile == 0 {
            if lane == 0 {
                tiles.publish(0, sum, INCLUSIVE);
            }
            return O::IDENTITY;
        }
        if lane == 0 {
            tiles.publish(tile, sum, PARTIAL);
        }
        let mut before = O::IDENTITY;
        // The window's lanes are the tiles end - 32 .. end, so that the order of lanes is the order of tiles.
        let mut end = tile;
        loop {
            let (value, flag) =
                if end + lane >= 32 { tiles.wait::<T>(end + lane - 32) } else { (O::IDENTITY, INCLUSIVE) };
            let inclusive = warp::warp_vote_ballot(warp::FULL_MASK, flag == INCLUSIVE);
            // From the last tile that knows the sum of all before it.
            let first = 31 - (inclusive | 1).leading_zeros();
            let value = if lane >= first as usize { value } else { O::IDENTITY };
            before = O::combine(reduce::<T, O>(value), before);
            if inclusive != 0 {
                break;
            }
            end -= 32;
        }
        if lane == 0 {
            tiles.publish(tile, O::combine(before, sum), INCLUSIVE);
        }
        before
    }
}

impl LookBack for FixedOrder {
    #[inline(always)]
    fn num_words(num_tiles: usize, words: usize) -> usize {
        (num_tiles + num_tiles / GROUP + num_tiles / (GROUP * GROUP)) * words
    }

    #[inline(always)]
    unsafe fn before<T: Words, O: Operator<T>>(
        words: SliceMut<u64>,
        num_tiles: usize,
        tile: usize,
        sum: T,
    ) -> T {
        let (num_groups, num_large) = (num_tiles / GROUP, num_tiles / (GROUP * GROUP));
        let tiles = Published::new(words, 0, num_tiles, T::WORDS);
        let groups = Published::new(words, num_tiles * T::WORDS, num_groups, T::WORDS);
        let large = Published::new(words, (num_tiles + num_groups) * T::WORDS, num_large, T::WORDS);
        let lane = warp::lane_id() as usize;
        let (group, in_group) = (tile / GROUP, tile % GROUP);
        let (large_group, in_large) = (group / GROUP, group % GROUP);

        if lane == 0 {
            tiles.publish(tile, sum, PARTIAL);
        }
        let value = if lane < in_group { tiles.wait::<T>(group * GROUP + lane).0 } else { O::IDENTITY };
        let tiles_before = reduce::<T, O>(value);
        let is_last = in_group == GROUP - 1;
        let group_sum = O::combine(tiles_before, sum);
        // Before any further wait: others wait for it.
        if is_last && lane == 0 {
            groups.publish(group, group_sum, PARTIAL);
        }
        let value =
            if lane < in_large { groups.wait::<T>(large_group * GROUP + lane).0 } else { O::IDENTITY };
        let groups_before = reduce::<T, O>(value);
        let all_before = if large_group > 0 { large.wait::<T>(large_group - 1).0 } else { O::IDENTITY };
        let groups_before = O::combine(all_before, groups_before);
        if is_last && in_large == GROUP - 1 && lane == 0 {
            large.publish(large_group, O::combine(groups_before, group_sum), INCLUSIVE);
        }
        O::combine(groups_before, tiles_before)
    }
}

/// Numbers the blocks of a launch in the order in which they start: a block of a low number runs before one of a high.
#[derive(Clone, Copy)]
pub struct Ticket<'a> {
    /// One word, zero when the kernel starts.
    pub counter: SliceMut<'a, u64>,
}

impl Ticket<'_> {
    /// The block's number; ends with a barrier, and begins with none.
    ///
    /// # Safety
    /// All threads of the block call, once; `smem` is the block's own.
    #[inline(always)]
    pub unsafe fn take(&self, smem: SharedSlice<'_, u64>) -> usize {
        if thread::thread_idx_x() == 0 {
            smem.store(0, self.counter.atomic_add(0, 1, Ordering::Relaxed, Scope::Device));
        }
        thread::sync_threads();
        smem.load(0) as usize
    }
}

//! What the tiles before a tile add up to, found by looking back at what their blocks have published
//! (Merrill, Garland 2016, *Single-pass Parallel Prefix Scan with Decoupled Look-back*).
//!
//! A published value lies in a few 64-bit words, with a state beside its bits in each. A reader takes a value when all its
//! words have one state: so relaxed loads and stores of words are enough, without fences, for a value of any width. The words
//! start as zeros. Tiles are numbered by a [`Ticket`], so that a block waits only for blocks that run.

use super::scan::reduce;
use crate::policy::LOOK_BACK_WORDS;
use crate::thread::operator::Operator;
use crate::thread::words::{MAX_WORDS, Words};
use cuda_std::prelude::*;

/// Nothing is published yet.
const NOTHING: u32 = 0;
/// The tile's own sum.
const PARTIAL: u32 = 1;
/// The sum of the tile and all before it.
const INCLUSIVE: u32 = 2;
/// The bits of those.
const STATE_MASK: u32 = 3;

/// Tiles that look back at each other before a sum of them is published.
pub const GROUP: usize = 32;

/// How sums of tiles are handed on.
///
/// # Safety
/// [`publish`](LookBack::publish) and [`before`](LookBack::before) stay within as many words as [`num_words`](LookBack::num_words) says.
pub unsafe trait LookBack: 'static {
    /// 64-bit words that hold what that many tiles publish.
    fn num_words<T: Words>(num_tiles: usize) -> usize;

    /// Publishes the sum of tile `tile`, as early as can be: the tiles behind wait for it.
    ///
    /// # Safety
    /// By one thread, before [`before`](Self::before); `words` are as many as [`num_words`](Self::num_words) says and were
    /// zeros when the kernel started; tiles are numbered by a [`Ticket`].
    unsafe fn publish<T: Words>(words: SliceMut<u64>, num_tiles: usize, tile: usize, sum: T);

    /// What the tiles before tile `tile`, whose sum is `sum`, add up to.
    ///
    /// # Safety
    /// All lanes of one warp of the tile's block call, with the same arguments, the first of them the one that published.
    unsafe fn before<T: Words, O: Operator<T>>(
        words: SliceMut<u64>,
        num_tiles: usize,
        tile: usize,
        sum: T,
    ) -> T;
}

/// Each tile looks at those before it, several windows of 32 at a time, until it meets one that knows the sum of all before.
/// Where the brackets are depends on timing.
///
/// While a tile waits for an answer from memory, others publish: the more of them, the farther back the next one has to look.
/// With one window at a time it waits for several answers in turn.
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
    /// `len` values from word `begin`.
    #[inline(always)]
    unsafe fn new<T: Words>(words: SliceMut<'a, u64>, begin: usize, len: usize) -> Self {
        Self { words: words.part(begin, len * T::PUBLISHED_WORDS), len }
    }

    #[inline(always)]
    unsafe fn publish<T: Words>(&self, i: usize, value: T, state: u32) {
        let mut word = 0;
        while word < T::PUBLISHED_WORDS {
            let published = value.to_published(word) | u64::from(state);
            self.words.atomic_store(word * self.len + i, published, Ordering::Relaxed, Scope::Device);
            word += 1;
        }
    }

    /// Value `i` and its state, if it has one by now.
    #[inline(always)]
    unsafe fn read<T: Words>(&self, i: usize) -> (T, u32) {
        let mut words = [0; MAX_WORDS];
        let mut state = NOTHING;
        let mut word = 0;
        while word < T::PUBLISHED_WORDS {
            words[word] = self.words.atomic_load(word * self.len + i, Ordering::Relaxed, Scope::Device);
            let of_word = words[word] as u32 & STATE_MASK;
            // A value that is being replaced shows two states for a moment.
            state = if word == 0 || of_word == state { of_word } else { NOTHING };
            word += 1;
        }
        (T::from_published(words), state)
    }

    /// Waits for value `i`, of which `(value, state)` was read last.
    #[inline(always)]
    unsafe fn wait<T: Words>(&self, i: usize, (mut value, mut state): (T, u32)) -> (T, u32) {
        while state == NOTHING {
            thread::spin_hint();
            (value, state) = self.read(i);
        }
        (value, state)
    }
}

/// Most windows that are asked for at once.
const MAX_WINDOWS: usize = LOOK_BACK_WORDS;

impl Decoupled {
    /// Windows that are asked for at once.
    const fn num_windows<T: Words>() -> usize {
        let windows = LOOK_BACK_WORDS / T::PUBLISHED_WORDS;
        if windows > 0 { windows } else { 1 }
    }

    /// The sum of all lanes of all windows, of which each one lies before the one before it.
    #[inline(always)]
    unsafe fn sum_of_windows<T: Words, O: Operator<T>>(values: [T; MAX_WINDOWS]) -> T {
        let of_window =
            |window: usize| if O::COMMUTATIVE { values[window] } else { reduce::<T, O>(values[window]) };
        let mut sum = of_window(0);
        let mut window = 1;
        while window < Self::num_windows::<T>() {
            sum = O::combine(of_window(window), sum);
            window += 1;
        }
        if O::COMMUTATIVE { reduce::<T, O>(sum) } else { sum }
    }
}

// SAFETY: a tile has a place, of as many words as a sum is published in.
unsafe impl LookBack for Decoupled {
    #[inline(always)]
    fn num_words<T: Words>(num_tiles: usize) -> usize {
        num_tiles * T::PUBLISHED_WORDS
    }

    #[inline(always)]
    unsafe fn publish<T: Words>(words: SliceMut<u64>, num_tiles: usize, tile: usize, sum: T) {
        let state = if tile == 0 { INCLUSIVE } else { PARTIAL };
        Published::new::<T>(words, 0, num_tiles).publish(tile, sum, state);
    }

    #[inline(always)]
    unsafe fn before<T: Words, O: Operator<T>>(
        words: SliceMut<u64>,
        num_tiles: usize,
        tile: usize,
        sum: T,
    ) -> T {
        let tiles = Published::new::<T>(words, 0, num_tiles);
        let num_windows = Self::num_windows::<T>();
        let lane = warp::lane_id() as usize;
        if tile == 0 {
            return O::IDENTITY;
        }
        let mut before = O::IDENTITY;
        let mut end = tile;
        let mut is_done = false;
        while !is_done {
            // A window's lanes are the tiles end - 32 .. end, so that the order of lanes is the order of tiles.
            let distance = |window: usize| 32 * (window + 1) - lane;
            let mut read = [(O::IDENTITY, INCLUSIVE); MAX_WINDOWS];
            let mut window = 0;
            while window < num_windows {
                if distance(window) <= end {
                    read[window] = tiles.read(end - distance(window));
                }
                window += 1;
            }
            let mut values = [O::IDENTITY; MAX_WINDOWS];
            let mut window = 0;
            while window < num_windows {
                // In one place for all lanes, needed or not: a vote in a branch may be copied.
                let (mut value, mut state) = read[window];
                if !is_done {
                    (value, state) = tiles.wait(end.wrapping_sub(distance(window)), (value, state));
                }
                let inclusive = warp::warp_vote_ballot(warp::FULL_MASK, state == INCLUSIVE);
                // From the last tile that knows the sum of all before it.
                let first = 31 - (inclusive | 1).leading_zeros();
                if !is_done && lane >= first as usize {
                    values[window] = value;
                }
                is_done = is_done || inclusive != 0;
                window += 1;
            }
            before = O::combine(Self::sum_of_windows::<T, O>(values), before);
            end = end.wrapping_sub(32 * num_windows);
        }
        if lane == 0 {
            tiles.publish(tile, O::combine(before, sum), INCLUSIVE);
        }
        before
    }
}

// SAFETY: a tile has a place, and so has the last tile of a group, and of a group of groups.
unsafe impl LookBack for FixedOrder {
    #[inline(always)]
    fn num_words<T: Words>(num_tiles: usize) -> usize {
        (num_tiles + num_tiles / GROUP + num_tiles / (GROUP * GROUP)) * T::PUBLISHED_WORDS
    }

    #[inline(always)]
    unsafe fn publish<T: Words>(words: SliceMut<u64>, num_tiles: usize, tile: usize, sum: T) {
        Published::new::<T>(words, 0, num_tiles).publish(tile, sum, PARTIAL);
    }

    #[inline(always)]
    unsafe fn before<T: Words, O: Operator<T>>(
        words: SliceMut<u64>,
        num_tiles: usize,
        tile: usize,
        sum: T,
    ) -> T {
        let (num_groups, num_large) = (num_tiles / GROUP, num_tiles / (GROUP * GROUP));
        let tiles = Published::new::<T>(words, 0, num_tiles);
        let groups = Published::new::<T>(words, num_tiles * T::PUBLISHED_WORDS, num_groups);
        let large = Published::new::<T>(words, (num_tiles + num_groups) * T::PUBLISHED_WORDS, num_large);
        let wait = |published: &Published<'_>, i: usize| published.wait::<T>(i, published.read(i)).0;
        let lane = warp::lane_id() as usize;
        let (group, in_group) = (tile / GROUP, tile % GROUP);
        let (large_group, in_large) = (group / GROUP, group % GROUP);

        let value = if lane < in_group { wait(&tiles, group * GROUP + lane) } else { O::IDENTITY };
        let tiles_before = reduce::<T, O>(value);
        let is_last = in_group == GROUP - 1;
        let group_sum = O::combine(tiles_before, sum);
        // Before any further wait: others wait for it.
        if is_last && lane == 0 {
            groups.publish(group, group_sum, PARTIAL);
        }
        let value = if lane < in_large { wait(&groups, large_group * GROUP + lane) } else { O::IDENTITY };
        let groups_before = reduce::<T, O>(value);
        let all_before = if large_group > 0 { wait(&large, large_group - 1) } else { O::IDENTITY };
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

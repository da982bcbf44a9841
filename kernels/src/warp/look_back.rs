//! Decoupled look-back: the exclusive prefix of a tile's sum, from the sums that earlier tiles have published (Merrill,
//! Garland 2016, *Single-pass Parallel Prefix Scan with Decoupled Look-back*).
//!
//! A published value occupies a few 64-bit words, each with a state beside its bits. A reader accepts a value when all
//! its words have the same state, so relaxed loads and stores are enough, without fences, for a value of any width. The
//! words start as zeros. Tiles are numbered by a [`Ticket`], so that a block waits only for running blocks.

use super::scan::reduce;
use crate::policy::LOOK_BACK_WORDS;
use crate::thread::operator::Operator;
use crate::thread::words::{MAX_WORDS, Words};
use cuda_std::prelude::*;

/// Nothing is published yet; the state of a zeroed word.
const INVALID: u32 = 0;
/// The sum of the tile is published.
const PARTIAL: u32 = 1;
/// The sum of the tile and all tiles before it is published.
const INCLUSIVE: u32 = 2;
/// The bits of the state.
const STATE_MASK: u32 = 3;

/// Tiles of a group in [`FixedOrder`].
pub const GROUP: usize = 32;

/// A scheme by which tiles pass on their sums.
///
/// # Safety
/// [`publish`](LookBack::publish) and [`exclusive_prefix`](LookBack::exclusive_prefix) access only the first
/// [`num_words`](LookBack::num_words) words.
pub unsafe trait LookBack: 'static {
    /// Returns the number of 64-bit words that `num_tiles` tiles need for their sums.
    fn num_words<T: Words>(num_tiles: usize) -> usize;

    /// Publishes the sum of tile `tile`. Call it as early as possible: later tiles wait for it.
    ///
    /// # Safety
    /// One thread calls, before [`exclusive_prefix`](Self::exclusive_prefix). `words` has
    /// [`num_words`](Self::num_words) words, which were zeros when the kernel started. Tiles are numbered by a
    /// [`Ticket`].
    unsafe fn publish<T: Words>(words: SliceMut<u64>, num_tiles: usize, tile: usize, sum: T);

    /// Returns the combined sum of the tiles before tile `tile`, whose own sum is `sum`.
    ///
    /// # Safety
    /// All lanes of one warp of the tile's block call, with the same arguments. Its first lane is the thread that
    /// published.
    unsafe fn exclusive_prefix<T: Words, O: Operator<T>>(
        words: SliceMut<u64>,
        num_tiles: usize,
        tile: usize,
        sum: T,
    ) -> T;
}

/// Each tile reads the tiles before it, several windows of 32 at a time, up to the nearest one with an inclusive sum.
/// The association of the sums depends on timing.
///
/// While a tile waits for memory, other tiles publish, and the next tile has to look back farther. Reading several
/// windows at once keeps the number of round trips small.
#[derive(Clone, Copy, Debug)]
pub struct Decoupled;

/// A fixed association: tiles are summed in groups of 32, and groups in large groups of 32. The last tile of a group
/// publishes the group's sum; the last tile of a large group publishes the sum of all tiles so far. A tile waits for
/// the tiles of its group, the groups of its large group, and the sum before that: at most three rounds.
#[derive(Clone, Copy, Debug)]
pub struct FixedOrder;

/// Published values, stored word by word: first word 0 of every value, then word 1, and so on.
struct Published<'a> {
    words: SliceMut<'a, u64>,
    /// The number of values.
    len: usize,
}

impl<'a> Published<'a> {
    /// Returns the view of `len` values that begins at word `begin`.
    #[inline(always)]
    unsafe fn new<T: Words>(words: SliceMut<'a, u64>, begin: usize, len: usize) -> Self {
        Self { words: words.part(begin, len * T::PUBLISHED_WORDS), len }
    }

    #[inline(always)]
    unsafe fn publish<T: Words>(&self, i: usize, value: T, state: u32) {
        for word in 0..T::PUBLISHED_WORDS {
            let published = value.to_published(word) | u64::from(state);
            self.words.atomic_store(word * self.len + i, published, Ordering::Relaxed, Scope::Device);
        }
    }

    /// Reads value `i` and its state. The state is `INVALID` if the value is not published yet or is just being
    /// replaced.
    #[inline(always)]
    unsafe fn read<T: Words>(&self, i: usize) -> (T, u32) {
        let mut words = [0; MAX_WORDS];
        let mut state = INVALID;
        for word in 0..T::PUBLISHED_WORDS {
            words[word] = self.words.atomic_load(word * self.len + i, Ordering::Relaxed, Scope::Device);
            let word_state = words[word] as u32 & STATE_MASK;
            // A value that is being replaced shows two states for a moment.
            state = if word == 0 || word_state == state { word_state } else { INVALID };
        }
        (T::from_published(words), state)
    }

    /// Waits for value `i`; `(value, state)` is the last result of [`read`](Self::read).
    #[inline(always)]
    unsafe fn wait<T: Words>(&self, i: usize, (mut value, mut state): (T, u32)) -> (T, u32) {
        while state == INVALID {
            thread::spin_hint();
            (value, state) = self.read(i);
        }
        (value, state)
    }
}

/// The most windows that a lane reads at once.
const MAX_WINDOWS: usize = LOOK_BACK_WORDS;

impl Decoupled {
    /// Returns the number of windows that a lane reads at once.
    const fn num_windows<T: Words>() -> usize {
        let windows = LOOK_BACK_WORDS / T::PUBLISHED_WORDS;
        if windows > 0 { windows } else { 1 }
    }

    /// Returns the sum over all lanes of all windows. Each window precedes the window before it in the array.
    #[inline(always)]
    unsafe fn sum_of_windows<T: Words, O: Operator<T>>(values: [T; MAX_WINDOWS]) -> T {
        let window_sum =
            |window: usize| if O::COMMUTATIVE { values[window] } else { reduce::<T, O>(values[window]) };
        let mut sum = window_sum(0);
        for window in 1..Self::num_windows::<T>() {
            sum = O::combine(window_sum(window), sum);
        }
        if O::COMMUTATIVE { reduce::<T, O>(sum) } else { sum }
    }
}

// SAFETY: there are `PUBLISHED_WORDS` words per tile.
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
    unsafe fn exclusive_prefix<T: Words, O: Operator<T>>(
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
            for window in 0..num_windows {
                if distance(window) <= end {
                    read[window] = tiles.read(end - distance(window));
                }
            }
            let mut values = [O::IDENTITY; MAX_WINDOWS];
            for window in 0..num_windows {
                // The vote is outside of any branch: a vote in a branch may be duplicated by the compiler.
                let (mut value, mut state) = read[window];
                if !is_done {
                    (value, state) = tiles.wait(end.wrapping_sub(distance(window)), (value, state));
                }
                let inclusive = warp::warp_vote_ballot(warp::FULL_MASK, state == INCLUSIVE);
                // Summation starts at the last tile with an inclusive sum.
                let first = 31 - (inclusive | 1).leading_zeros();
                if !is_done && lane >= first as usize {
                    values[window] = value;
                }
                is_done = is_done || inclusive != 0;
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

// SAFETY: there are `PUBLISHED_WORDS` words per tile, group and large group.
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
    unsafe fn exclusive_prefix<T: Words, O: Operator<T>>(
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
        // Published before any further wait, because other tiles wait for it.
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

/// Numbers the blocks of a launch in the order in which they start, so that a block with a lower number is already
/// running.
#[derive(Clone, Copy)]
pub struct Ticket<'a> {
    /// One word, which is zero when the kernel starts.
    pub counter: SliceMut<'a, u64>,
}

impl Ticket<'_> {
    /// Returns the block's number. Ends with a barrier, and begins with none.
    ///
    /// # Safety
    /// All threads of the block call, once; no other block uses `smem`.
    #[inline(always)]
    pub unsafe fn take(&self, smem: SharedSlice<'_, u64>) -> usize {
        if thread::thread_idx_x() == 0 {
            smem.store(0, self.counter.atomic_add(0, 1, Ordering::Relaxed, Scope::Device));
        }
        thread::sync_threads();
        smem.load(0) as usize
    }
}

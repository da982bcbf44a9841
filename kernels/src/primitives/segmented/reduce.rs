//! Segmented reduce: each warp takes an equal share of the items and of the segments' ends, wherever they are (Merrill, Garland 2016,
//! *Merge-based Parallel Sparse Matrix-Vector Multiplication*). Items are read once, in 16-byte accesses, and each sum is written once.
//!
//! The ends of segments are merged into the items: a share is a run of the merged sequence. A warp reads its items in chunks. In a chunk
//! without an end, each lane adds its items to its part of the open segment's sum. Otherwise the chunk goes to shared memory, where one lane
//! adds the items of a short segment, and the lanes of the warp together add those of a longer one.

use super::{CarrySmem, SinceHead, carry_before};
use crate::block::tile::{self, Items, THREADS, WARPS, load_16, load_shared_16, row_items, store_shared_16};
use crate::policy::{
    SEGMENTED_REDUCE_LANE_ITEMS, SEGMENTED_REDUCE_MAX_BLOCKS, SEGMENTED_REDUCE_MIN_BLOCKS,
    SEGMENTED_REDUCE_MIN_SHARE, SEGMENTED_REDUCE_ROWS as ROWS,
};
use crate::thread::operator::*;
use crate::thread::words::{MAX_WORDS, Words};
use crate::warp::look_back::*;
use crate::warp::scan::reduce;
use crate::warp::search::merge_split;
use cuda_std::prelude::*;

/// Writes the sum of every segment to its entry of `sums`, the identity for an empty one. A segment begins at its entry of `starts`, and ends
/// where the next one begins. A warp's share has `share` items and ends.
#[kernel(
    family = "primitives-segmented",
    block = THREADS,
    min_blocks = SEGMENTED_REDUCE_MIN_BLOCKS,
    shared = ReduceSmem<T>,
    hot
)]
#[instances(T = [u32, u64, f32, f64], O = [Min, Max], L = [Decoupled])]
#[instances(T = [u32, u64], O = [Sum], L = [Decoupled])]
#[instances(T = [f32, f64], O = [Sum], L = [FixedOrder])]
pub unsafe fn primitives_segmented_reduce<T: Words, O: Operator<T>, L: LookBack>(
    input: Slice<T>,
    starts: Slice<u64>,
    sums: SliceMut<T>,
    words: SliceMut<u64>,
    share: u64,
) {
    let smem = shared_mem::<ReduceSmem<T>>();
    let block = Ticket { counter: words.part(0, 1) }.take(shared_field!(smem, carry.ticket));
    let warp = block * WARPS + thread::thread_idx_x() as usize / 32;
    let share = Share::of_warp(&input, starts, warp, share as usize);
    let (first, warp_sum) = Reduce { input, starts, sums, share, smem }.run::<O>();
    let words = words.part(1, words.len() - 1);
    let before = carry_before::<T, O, L>(&raw mut (*smem).carry, words, block, warp_sum);
    // The first segment that ends in the share may begin before it.
    if warp::lane_id() == 0 && share.has_ends() && share.ends[0] > 0 {
        sums.store(share.ends[0] - 1, O::combine(before, first));
    }
}

/// The items of a warp's chunk.
pub const fn chunk_items<T: Words>() -> usize {
    ROWS * row_items::<T>()
}

/// Returns the number of items and ends of a warp's share, and the number of blocks.
pub const fn shares(num_items: usize, num_segments: usize) -> (usize, usize) {
    // The end of no segment is at the first start.
    let num_all = num_items + num_segments + 1;
    let even = num_all.div_ceil(SEGMENTED_REDUCE_MAX_BLOCKS * WARPS);
    let share = if even < SEGMENTED_REDUCE_MIN_SHARE { SEGMENTED_REDUCE_MIN_SHARE } else { even };
    (share, num_all.div_ceil(share * WARPS))
}

/// Shared memory of [`primitives_segmented_reduce()`].
#[repr(C, align(16))]
pub struct ReduceSmem<T> {
    /// The chunk of each warp.
    chunks: [[[u32; MAX_WORDS]; 32 * ROWS]; WARPS],
    carry: CarrySmem<T>,
}

/// A run of the items, and of the ends of segments. End `s` is the begin of segment `s`, where segment `s - 1` ends; the last end is the end of
/// the items.
#[derive(Clone, Copy)]
struct Share {
    items: [usize; 2],
    ends: [usize; 2],
}

impl Share {
    /// Splits the merged items and ends at both sides of the share. An end comes before the item at its index.
    #[inline(always)]
    unsafe fn of_warp<T>(input: &Slice<'_, T>, starts: Slice<'_, u64>, warp: usize, len: usize) -> Self {
        const LANES: u32 = 16;
        let (num_items, num_ends) = (input.len(), starts.len() + 1);
        let diagonal = (warp + (warp::lane_id() / LANES) as usize) * len;
        let diagonal = if diagonal < num_items + num_ends { diagonal } else { num_items + num_ends };
        let end = merge_split::<LANES>(num_ends, num_items, diagonal, |end, item| {
            end < starts.len() && starts.load(end) <= item as u64
        });
        let ends = [0, LANES].map(|lane| warp::shuffle_idx(warp::FULL_MASK, end as u64, lane) as usize);
        let diagonals =
            [0, LANES].map(|lane| warp::shuffle_idx(warp::FULL_MASK, diagonal as u64, lane) as usize);
        Self { items: [diagonals[0] - ends[0], diagonals[1] - ends[1]], ends }
    }

    #[inline(always)]
    fn has_ends(&self) -> bool {
        self.ends[0] < self.ends[1]
    }
}

/// The reduction of one warp's share.
struct Reduce<'a, T> {
    input: Slice<'a, T>,
    starts: Slice<'a, u64>,
    sums: SliceMut<'a, T>,
    share: Share,
    smem: *mut ReduceSmem<T>,
}

impl<T: Words> Reduce<'_, T> {
    /// Writes the sums of the segments that end in the share, but for the first one. Returns the sum of its items, in lane 0, and the sum since
    /// the last end.
    #[inline(always)]
    unsafe fn run<O: Operator<T>>(&self) -> (T, SinceHead<T>) {
        let mut state = State { next: self.share.ends[0], open: O::IDENTITY, first: O::IDENTITY };
        let mut begin = self.share.items[0] - self.share.items[0] % row_items::<T>();
        let mut end = self.end(state.next);
        loop {
            let items = self.load::<O>(begin);
            let next_chunk = begin + chunk_items::<T>();
            if end > next_chunk as u64 {
                let mut row = 0;
                while row < ROWS {
                    let mut e = 0;
                    while e < T::PER_16 {
                        state.open = O::combine(state.open, items[row][e]);
                        e += 1;
                    }
                    row += 1;
                }
            } else {
                self.reduce_chunk::<O>(begin, items, &mut state);
                end = self.end(state.next);
            }
            begin = next_chunk;
            if begin >= self.share.items[1] {
                break;
            }
        }
        (state.first, SinceHead::new(reduce::<T, O>(state.open), self.share.has_ends()))
    }

    /// Returns the item at which end `end` is; the largest number behind the share's ends.
    #[inline(always)]
    unsafe fn end(&self, end: usize) -> u64 {
        if end >= self.share.ends[1] {
            u64::MAX
        } else if end < self.starts.len() {
            self.starts.load(end)
        } else {
            self.input.len() as u64
        }
    }

    /// Loads the lane's items of the chunk at `begin`; identities outside of the share.
    #[inline(always)]
    unsafe fn load<O: Operator<T>>(&self, begin: usize) -> Items<T, ROWS> {
        let [share_begin, share_end] = self.share.items;
        let first = begin + warp::lane_id() as usize * T::PER_16;
        let is_inside = |i: usize| share_begin <= i && i < share_end;
        let mut items = [[O::IDENTITY; MAX_WORDS]; ROWS];
        if begin + chunk_items::<T>() <= self.input.len() && tile::is_aligned(self.input.as_ptr()) {
            for row in 0..ROWS {
                items[row] = load_16(self.input, first + row * row_items::<T>());
            }
            if begin < share_begin || begin + chunk_items::<T>() > share_end {
                for row in 0..ROWS {
                    for e in 0..T::PER_16 {
                        if !is_inside(first + row * row_items::<T>() + e) {
                            items[row][e] = O::IDENTITY;
                        }
                    }
                }
            }
        } else {
            for row in 0..ROWS {
                for e in 0..T::PER_16 {
                    let i = first + row * row_items::<T>() + e;
                    if is_inside(i) {
                        items[row][e] = self.input.load(i);
                    }
                }
            }
        }
        items
    }

    /// Reduces the parts of segments in a chunk with ends.
    #[inline(always)]
    unsafe fn reduce_chunk<O: Operator<T>>(&self, begin: usize, items: Items<T, ROWS>, state: &mut State<T>) {
        let lane = warp::lane_id();
        let chunk = self.chunk();
        for row in 0..ROWS {
            store_shared_16(chunk, row * row_items::<T>() + lane as usize * T::PER_16, items[row]);
        }
        warp::sync_warp(warp::FULL_MASK);
        let len = chunk_items::<T>() as u32;
        // The begin, in the chunk, of the part of the segment that ends next.
        let mut done = self.share.items[0].saturating_sub(begin) as u32;
        let mut is_open = true;
        loop {
            let own = state.next + lane as usize;
            let end = self.end(own);
            let is_own = end <= begin as u64 + u64::from(len);
            let num_ends = (!warp::warp_vote_ballot(warp::FULL_MASK, is_own)).trailing_zeros();
            if num_ends == 0 {
                break;
            }
            // Ends that do not ascend make wrong sums, but no access beyond the chunk.
            let is_own = lane < num_ends;
            let to = if is_own { end.saturating_sub(begin as u64) as u32 } else { len };
            let below = warp::shuffle_up(warp::FULL_MASK, to, 1);
            let from = if lane == 0 { done } else { below };
            let is_long = is_own && (is_open && lane == 0 || to > from + SEGMENTED_REDUCE_LANE_ITEMS);
            let mut sum = O::IDENTITY;
            let mut i = from;
            while is_own && !is_long && i < to {
                sum = O::combine(sum, chunk.load(i as usize));
                i += 1;
            }
            let mut long = warp::warp_vote_ballot(warp::FULL_MASK, is_long);
            while long != 0 {
                let owner = long.trailing_zeros();
                long &= long - 1;
                let part = [from, to].map(|i| warp::shuffle_idx(warp::FULL_MASK, i, owner));
                let of_part = reduce::<T, O>(Self::add::<O>(chunk, state.open, part));
                state.open = O::IDENTITY;
                sum = if lane == owner { of_part } else { sum };
            }
            if own == self.share.ends[0] {
                state.first = sum;
            } else if is_own {
                self.sums.store(own - 1, sum);
            }
            done = warp::shuffle_idx(warp::FULL_MASK, to, num_ends - 1);
            state.next += num_ends as usize;
            is_open = false;
        }
        state.open = Self::add::<O>(chunk, state.open, [done, len]);
        warp::sync_warp(warp::FULL_MASK);
    }

    /// Returns the warp's chunk in shared memory.
    #[inline(always)]
    unsafe fn chunk(&self) -> SharedSlice<'_, T> {
        let words = shared_field!(self.smem, chunks);
        let chunks = SharedSlice::from_raw_parts(words.as_raw_ptr().cast(), words.len() / T::WORDS);
        chunks.part(thread::thread_idx_x() as usize / 32 * chunk_items::<T>(), chunk_items::<T>())
    }

    /// Adds the lane's items of a part of the chunk to `sum`: the items that the lane has loaded.
    #[inline(always)]
    unsafe fn add<O: Operator<T>>(chunk: SharedSlice<'_, T>, mut sum: T, [from, to]: [u32; 2]) -> T {
        let row_len = row_items::<T>() as u32;
        let mut row_begin = from / row_len * row_len;
        while row_begin < to {
            let first = row_begin + warp::lane_id() * T::PER_16 as u32;
            let items = load_shared_16(chunk, first as usize);
            let mut e = 0;
            while e < T::PER_16 {
                let i = first + e as u32;
                if from <= i && i < to {
                    sum = O::combine(sum, items[e]);
                }
                e += 1;
            }
            row_begin += row_len;
        }
        sum
    }
}

/// The state of a warp between two chunks.
struct State<T> {
    /// The next end.
    next: usize,
    /// The lane's part of the sum since the last end.
    open: T,
    /// The sum up to the share's first end, in lane 0.
    first: T,
}

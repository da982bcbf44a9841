//! Segmented scan: a block per tile of items, as in a plain scan.

use super::{CarrySmem, SinceHead, carry_before};
use crate::block::tile::{self, Items, THREADS, WARPS, row_items, tile_items};
use crate::policy::{PER_ITEM_THREADS, SEGMENTED_MIN_BLOCKS, SEGMENTED_ROWS as ROWS};
use crate::primitives::select::flag_bits;
use crate::thread::items::strided;
use crate::thread::operator::*;
use crate::thread::words::{MAX_WORDS, Words, computed};
use crate::warp::look_back::*;
use crate::warp::scan::{exclusive_of, inclusive_since};
use crate::warp::search::partition_point;
use cuda_std::prelude::*;

/// Writes the number of starts before each tile of `tile_len` items, and zeros to the words of the scan that follows. A warp per tile.
#[kernel(family = "primitives-segmented", block = PER_ITEM_THREADS)]
pub unsafe fn primitives_segmented_starts_before(
    starts: Slice<u64>,
    tile_len: u32,
    starts_before: SliceMut<u64>,
    words: SliceMut<u64>,
) {
    let i = thread::index_1d_u64() as usize;
    for word in strided(i, words.len(), thread::grid_dim_x() as usize * PER_ITEM_THREADS) {
        words.store(word, 0);
    }
    let tile = i / 32;
    let begin = tile as u64 * u64::from(tile_len);
    let before = partition_point::<32>(0, starts.len(), |s| starts.load(s) < begin);
    if warp::lane_id() == 0 && tile < starts_before.len() {
        starts_before.store(tile, before as u64);
    }
}

/// Scans every segment; a block per tile. Segments begin at the items whose byte in `heads` is not 0, or, without heads, at `starts`, of
/// which there are `starts_before` before each tile and before the end. Otherwise like `primitives_scan`.
#[kernel(
    family = "primitives-segmented",
    block = THREADS,
    min_blocks = SEGMENTED_MIN_BLOCKS,
    shared = ScanSmem<T>,
    hot
)]
#[instances(T = [u32, u64, f32, f64], O = [Min, Max], L = [Decoupled])]
#[instances(T = [u32, u64], O = [Sum], L = [Decoupled])]
#[instances(T = [f32, f64], O = [Sum], L = [FixedOrder])]
pub unsafe fn primitives_segmented_scan<T: Words, O: Operator<T>, L: LookBack>(
    input: Slice<T>,
    heads: Slice<u8>,
    starts: Slice<u64>,
    starts_before: Slice<u64>,
    output: SliceMut<T>,
    words: SliceMut<u64>,
    exclusive: u32,
) {
    Segmented { input, heads, starts, starts_before, words }.scan::<O, L>(output, exclusive != 0)
}

/// Shared memory of [`primitives_segmented_scan()`].
#[repr(C)]
pub struct ScanSmem<T> {
    carry: CarrySmem<T>,
    /// A bit per item of the tile, set if it begins a segment.
    heads: [u32; HEAD_WORDS],
}

/// The most words of a tile's bits.
const HEAD_WORDS: usize = ROWS * MAX_WORDS * WARPS;
/// The starts that a lane loads at once.
const BATCH: usize = 4;

/// The scan of one tile.
struct Segmented<'a, T> {
    input: Slice<'a, T>,
    heads: Slice<'a, u8>,
    starts: Slice<'a, u64>,
    starts_before: Slice<'a, u64>,
    words: SliceMut<'a, u64>,
}

impl<T: Words> Segmented<'_, T> {
    /// Writes every item's sum.
    #[inline(always)]
    unsafe fn scan<O: Operator<T>, L: LookBack>(self, output: SliceMut<'_, T>, exclusive: bool) {
        let smem = shared_mem::<ScanSmem<T>>();
        let ticket = shared_field!(smem, carry.ticket);
        let tile = Ticket { counter: self.words.part(0, 1) }.take(ticket);
        let begin = tile * tile_items::<T, ROWS>();
        let items = tile::load(self.input, begin, O::IDENTITY);
        let heads = if self.heads.is_empty() {
            self.head_bits(tile, shared_field!(smem, heads))
        } else {
            flag_bits::<T, ROWS>(self.heads, begin, self.input.len())
        };

        let (mut sums, is_open, warp_sum) = Self::scan_warp::<O>(items, heads, exclusive);
        let words = self.words.part(1, self.words.len() - 1);
        let before = carry_before::<T, O, L>(&raw mut (*smem).carry, words, tile, warp_sum);
        let mut row = 0;
        while row < ROWS {
            let mut e = 0;
            while e < T::PER_16 {
                if is_open >> (row * T::PER_16 + e) & 1 != 0 {
                    sums[row][e] = O::combine(before, sums[row][e]);
                }
                e += 1;
            }
            row += 1;
        }
        // Reloaded: the items leave few registers for other values.
        tile::store(output, ticket.load(0) as usize * tile_items::<T, ROWS>(), sums)
    }

    /// Returns a bit per item of the thread, set for items at which a segment begins. Each warp reads an equal part of the starts in the
    /// tile. Executes two barriers.
    #[inline(always)]
    unsafe fn head_bits(&self, tile: usize, bits: SharedSlice<'_, u32>) -> u32 {
        let (lane, warp) = (warp::lane_id() as usize, thread::thread_idx_x() as usize / 32);
        let (before, end) =
            (self.starts_before.load(tile) as usize, self.starts_before.load(tile + 1) as usize);
        let items = (tile * tile_items::<T, ROWS>()) as u64..((tile + 1) * tile_items::<T, ROWS>()) as u64;
        const { assert!(HEAD_WORDS <= THREADS) };
        if (thread::thread_idx_x() as usize) < HEAD_WORDS {
            bits.store(thread::thread_idx_x() as usize, 0);
        }
        thread::sync_threads();
        let part = end.saturating_sub(before).div_ceil(WARPS);
        let mut next = before + warp * part;
        let end = if next + part < end { next + part } else { end };
        while next < end {
            let mut batch = [u64::MAX; BATCH];
            let mut b = 0;
            while b < BATCH {
                let s = next + b * 32 + lane;
                if s < end {
                    batch[b] = self.starts.load(s);
                }
                b += 1;
            }
            let last = warp::shuffle_idx(warp::FULL_MASK, batch[BATCH - 1], 31);
            let mut all_equal = true;
            let mut b = 0;
            while b < BATCH {
                if items.contains(&batch[b]) {
                    let item = (batch[b] - items.start) as usize;
                    bits.atomic_or(item / 32, 1 << (item % 32), Ordering::Relaxed, Scope::Block);
                }
                all_equal = all_equal && batch[b] == last;
                b += 1;
            }
            next += BATCH * 32;
            // A long run of empty segments is skipped.
            if warp::warp_vote_all(warp::FULL_MASK, all_equal) {
                next = partition_point::<32>(next, end, |s| self.starts.load(s) <= last);
            }
        }
        thread::sync_threads();
        let mut heads = 0;
        let mut row = 0;
        while row < ROWS {
            let item = (warp * ROWS + row) * row_items::<T>() + lane * T::PER_16;
            let of_row = bits.load(item / 32) >> (item % 32) & ((1 << T::PER_16) - 1);
            heads |= of_row << (row * T::PER_16);
            row += 1;
        }
        heads
    }

    /// Returns the items scanned within the warp, a bit per item of the thread whose segment began before the warp's
    /// items, and the sum of the warp.
    #[inline(always)]
    unsafe fn scan_warp<O: Operator<T>>(
        items: Items<T, ROWS>,
        heads: u32,
        exclusive: bool,
    ) -> (Items<T, ROWS>, u32, SinceHead<T>) {
        let mut sums = items;
        let mut is_open = 0;
        // The sum of the warp's rows so far since their last head, and whether they have a head.
        let (mut warp_sum, mut has_head) = (O::IDENTITY, false);
        let mut row = 0;
        while row < ROWS {
            let is_head = |e: usize| heads >> (row * T::PER_16 + e) & 1 != 0;
            let mut sum = items[row][0];
            let mut any = is_head(0);
            let mut e = 1;
            while e < T::PER_16 {
                sum = O::combine(if is_head(e) { O::IDENTITY } else { sum }, items[row][e]);
                any = any || is_head(e);
                e += 1;
            }
            let head_lanes = warp::warp_vote_ballot(warp::FULL_MASK, any);
            let (lanes_before, row_sum) = exclusive_of::<T, O>(inclusive_since::<T, O>(sum, head_lanes));
            let head_below = head_lanes & warp::lane_mask_lt() != 0;
            let mut sum = if head_below { lanes_before } else { O::combine(warp_sum, lanes_before) };
            let mut is_closed = has_head || head_below;
            let mut e = 0;
            while e < T::PER_16 {
                let before = if is_head(e) { O::IDENTITY } else { sum };
                sum = O::combine(before, items[row][e]);
                sums[row][e] = computed(if exclusive { before } else { sum });
                is_closed = is_closed || is_head(e);
                is_open |= u32::from(!is_closed) << (row * T::PER_16 + e);
                e += 1;
            }
            warp_sum = if head_lanes != 0 { row_sum } else { O::combine(warp_sum, row_sum) };
            has_head = has_head || head_lanes != 0;
            is_open = computed(is_open);
            row += 1;
        }
        let warp_sum = SinceHead::new(warp_sum, has_head);
        (sums, is_open, warp_sum)
    }
}

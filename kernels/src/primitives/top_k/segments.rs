//! Top-k of every segment: by a warp or a block per segment, or, for large k, by a sort of all items.

use super::rank::{Best, TopKOutput};
use crate::block::merge::{Tile, TileSmem};
use crate::policy::{PER_ITEM_THREADS, TOP_K};
use crate::thread::order::{Ascending, Lookup, NoValue, Order};
use crate::thread::ranked::*;
use crate::thread::segments::segment_of;
use crate::thread::words::Bits128;
use crate::warp::bitonic::keep_first;
use crate::warp::shuffle::shuffle_idx;
use cuda_std::prelude::*;

/// The largest k of the warp kernel: one key per lane.
pub const WARP_K: usize = 32;
const THREADS: usize = TOP_K.segment_threads;
/// Items of a thread in a block's tile.
const ITEMS: usize = TOP_K.segment_items;
/// Items that a thread adds per round.
const ROUND_ITEMS: usize = TOP_K.segment_round_items;
/// The largest k of the block kernel: the tile without the items of a round.
pub const BLOCK_K: usize = (ITEMS - ROUND_ITEMS) * THREADS;

/// Writes the `k` best keys of each segment, and their indices, to the segment's row of the output; a warp per segment.
/// `k` is at most [`WARP_K`]. `offsets` has one entry more than there are segments.
#[kernel(family = "primitives-top-k", block = PER_ITEM_THREADS, hot)]
#[instances(B = [u32, u64])]
pub unsafe fn primitives_top_k_by_warps<B: RankBits>(
    keys: Slice<B>,
    offsets: Slice<u64>,
    out: TopKOutput<'_, B>,
    order: KeyOrder,
    k: u32,
) {
    let segment = (thread::index_1d_u64() / 32) as usize;
    if segment + 1 < offsets.len() {
        let rows = Rows { keys, best: Best { out, ranks: KeyRanks::new(order) } };
        rows.by_warp(offsets.load(segment) as usize, offsets.load(segment + 1) as usize, segment, k as usize)
    }
}

/// Like `primitives_top_k_by_warps`, with a block per segment. `k` is at most [`BLOCK_K`].
#[kernel(
    family = "primitives-top-k", block = THREADS, min_blocks = TOP_K.segment_min_blocks,
    shared = SegmentSmem<<B as RankBits>::Ranked>, hot
)]
#[instances(B = [u32, u64])]
pub unsafe fn primitives_top_k_by_blocks<B: RankBits>(
    keys: Slice<B>,
    offsets: Slice<u64>,
    out: TopKOutput<'_, B>,
    order: KeyOrder,
    k: u32,
) where
    Ascending: Order<<B as RankBits>::Ranked, NoValue>,
{
    let segment = thread::block_idx_x() as usize;
    let rows = Rows { keys, best: Best { out, ranks: KeyRanks::new(order) } };
    rows.by_block(offsets.load(segment) as usize, offsets.load(segment + 1) as usize, segment, k as usize)
}

/// Packs every key's segment, rank and index, to be sorted; a thread per key. `starts` are the begins of the segments.
#[kernel(family = "primitives-top-k", block = PER_ITEM_THREADS)]
#[instances(B = [u32, u64])]
pub unsafe fn primitives_top_k_compose<B: RankBits>(
    keys: Slice<B>,
    starts: Slice<u64>,
    composed: SliceMut<Bits128>,
    order: KeyOrder,
) {
    let i = thread::index_1d_u64();
    if i < keys.len() as u64 {
        let segment = segment_of(starts, i, 0, starts.len() - 1);
        let rank = KeyRanks::new(order).rank(keys.load(i as usize)).to_high_bits();
        composed.store(i as usize, Bits128((segment as u64) << 32 | rank >> 32, rank << 32 | i));
    }
}

/// Writes the first `k` of each segment of the packed and sorted items; a thread per entry of the output.
#[kernel(family = "primitives-top-k", block = PER_ITEM_THREADS)]
#[instances(B = [u32, u64])]
pub unsafe fn primitives_top_k_pick<B: RankBits>(
    sorted: Slice<Bits128>,
    offsets: Slice<u64>,
    out: TopKOutput<'_, B>,
    order: KeyOrder,
    k: u32,
) {
    let i = thread::index_1d_u64();
    if i < out.ids.len() as u64 {
        let segment = (i / u64::from(k)) as usize;
        let index = offsets.load(segment) + i % u64::from(k);
        let mut item = B::Ranked::LAST;
        if index < offsets.load(segment + 1) {
            let Bits128(high, low) = sorted.load(index as usize);
            item = Ranked::new(B::from_high_bits(high << 32 | low >> 32), low as u32);
        }
        let best = Best { out, ranks: KeyRanks::new(order) };
        best.store(i as usize, item);
    }
}

/// Shared memory of a block that handles a segment.
#[repr(C)]
pub struct SegmentSmem<R> {
    tile: TileSmem<R, NoValue, THREADS, ITEMS>,
    /// The number of items in the tile.
    len: [u32; 1],
}

/// The keys, and the rows for the best keys of each segment.
struct Rows<'a, B> {
    keys: Slice<'a, B>,
    best: Best<'a, B>,
}

impl<B: RankBits> Rows<'_, B> {
    /// Loads item `i`, or the last value of the order from `end` on.
    #[inline(always)]
    unsafe fn item(&self, i: usize, end: usize) -> B::Ranked {
        let mut item = B::Ranked::LAST;
        if i < end {
            item = Ranked::new(self.best.ranks.rank(self.keys.load(i)), i as u32);
        }
        item
    }

    /// Finds the best items of a segment by one warp. Each lane holds one of the best items, in order.
    #[inline(always)]
    unsafe fn by_warp(&self, begin: usize, end: usize, segment: usize, k: usize) {
        let lane = warp::lane_id() as usize;
        let mut best = B::Ranked::LAST;
        let mut i = begin;
        while i < end {
            let item = self.item(i + lane, end);
            let bound = shuffle_idx(best, k as u32 - 1);
            if warp::warp_vote_any(warp::FULL_MASK, item.is_before(bound)) {
                best = keep_first(best, item);
            }
            i += 32;
        }
        if lane < k {
            self.best.store(segment * k + lane, best);
        }
    }

    /// Finds the best items of a segment by one block. A tile holds the best items and new candidates; it is sorted
    /// when it is full.
    #[inline(always)]
    unsafe fn by_block(&self, begin: usize, end: usize, segment: usize, k: usize)
    where
        Ascending: Order<B::Ranked, NoValue>,
    {
        let smem = shared_mem::<SegmentSmem<B::Ranked>>();
        let tile_len = shared_field!(smem, len);
        let lookup = Lookup { coords: Slice::from_raw_parts(core::ptr::null(), 0), dims: 0, axis: 0 };
        let tile = Tile::<B::Ranked, NoValue, Ascending, ITEMS>::new(&raw mut (*smem).tile, lookup);
        let thread = thread::thread_idx_x() as usize;
        if thread == 0 {
            tile_len.store(0, 0);
        }
        let mut bound = B::Ranked::LAST;
        let mut i = begin;
        loop {
            thread::sync_threads();
            let len = tile_len.load(0) as usize;
            thread::sync_threads();
            if len > BLOCK_K || i >= end {
                tile.sort(len);
                thread::sync_threads();
                if i >= end {
                    self.store(&tile, len, segment, k);
                    break;
                }
                bound = tile.get(k - 1).0;
                if thread == 0 {
                    tile_len.store(0, k as u32);
                }
                thread::sync_threads();
            }
            for item in 0..ROUND_ITEMS {
                self.push(&tile, tile_len, self.item(i + item * THREADS + thread, end), bound);
            }
            i += ROUND_ITEMS * THREADS;
        }
    }

    /// Writes the first items of a tile to the row of a segment, padded.
    #[inline(always)]
    unsafe fn store<O: Order<B::Ranked, NoValue>>(
        &self,
        tile: &Tile<'_, B::Ranked, NoValue, O, ITEMS>,
        len: usize,
        segment: usize,
        k: usize,
    ) {
        let mut index = thread::thread_idx_x() as usize;
        while index < k {
            let mut item = B::Ranked::LAST;
            if index < len {
                item = tile.get(index).0;
            }
            self.best.store(segment * k + index, item);
            index += THREADS;
        }
    }

    /// Appends the items of a warp that come before `bound` to the tile.
    #[inline(always)]
    unsafe fn push<O: Order<B::Ranked, NoValue>>(
        &self,
        tile: &Tile<'_, B::Ranked, NoValue, O, ITEMS>,
        tile_len: SharedSlice<'_, u32>,
        item: B::Ranked,
        bound: B::Ranked,
    ) {
        let takes = item.is_before(bound);
        let lanes = warp::warp_vote_ballot(warp::FULL_MASK, takes);
        let mut index = 0;
        if warp::lane_id() == 0 && lanes != 0 {
            index = tile_len.atomic_add(0, lanes.count_ones(), Ordering::Relaxed, Scope::Block);
        }
        let index = warp::shuffle_idx(warp::FULL_MASK, index, 0);
        if takes {
            tile.set((index + (lanes & warp::lane_mask_lt()).count_ones()) as usize, (item, NoValue));
        }
    }
}

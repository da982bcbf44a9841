//! Expand: for each output of a set of segments, its segment and its index within the segment. Load-balancing search
//! (Baxter 2013, *moderngpu*) gives every tile the same total of outputs and segments, so that neither long segments
//! nor many empty ones slow a block down.

use crate::block::merge::clip;
use crate::policy::{EXPAND, PER_ITEM_THREADS};
use crate::thread::items::{own_item, strided};
use crate::thread::merge_path::split_u32;
use crate::warp::search::merge_split;
use cuda_std::prelude::*;

const THREADS: usize = EXPAND.threads_per_block;
/// The outputs and segments of a thread.
const ITEMS: usize = EXPAND.items_per_thread;
/// The outputs and segments of a tile.
pub const TILE: usize = THREADS * ITEMS;

/// Widens counts to 64 bits as input of an exclusive scan, with a 0 appended; a thread per offset.
#[kernel(family = "primitives-search", block = PER_ITEM_THREADS)]
pub unsafe fn primitives_expand_counts(counts: Slice<u32>, offsets: SliceMut<u64>) {
    let Some(i) = own_item(offsets.len()) else { return };
    offsets.store(i, if i < counts.len() { counts.load(i).into() } else { 0 });
}

/// Writes the segment of each output and its index in the segment, up to the capacity of the output; a block per tile.
#[kernel(family = "primitives-search", block = THREADS, shared = ExpandSmem, hot)]
pub unsafe fn primitives_expand(expand: Expand<'_>) {
    expand.run()
}

/// Shared memory of an expansion.
#[repr(C)]
pub struct ExpandSmem {
    /// The begins of the tile's segments, relative to its first output.
    begins: [u32; TILE],
    /// For each output, the number of the tile's segments that begin at or before it.
    ranks: [u32; TILE],
    /// The number of outputs before the tile, and before its end.
    splits: [u64; 2],
}

/// An expansion, of which each block handles one tile.
#[derive(Clone, Copy, KernelArgs)]
pub struct Expand<'a> {
    /// The begin of each segment and, at the end, the number of outputs.
    pub offsets: Slice<'a, u64>,
    /// The segment of each output.
    pub segments: SliceMut<'a, u32>,
    /// The index of each output in its segment; empty if it is not needed.
    pub indices: SliceMut<'a, u32>,
    /// One word: 1 if there are more outputs than their capacity, else 0.
    pub overflow: SliceMut<'a, u32>,
}

impl Expand<'_> {
    #[inline(always)]
    unsafe fn run(self) {
        let smem = shared_mem::<ExpandSmem>();
        let (begins, ranks) = (shared_field!(smem, begins), shared_field!(smem, ranks));
        let splits = shared_field!(smem, splits);
        let thread = thread::thread_idx_x() as usize;

        let num_segments = self.offsets.len() - 1;
        let (total, capacity) = (self.offsets.load(num_segments), self.segments.len());
        if thread::index_1d_u64() == 0 {
            self.overflow.store(0, u32::from(total > capacity as u64));
        }
        let num_outputs = if total < capacity as u64 { total as usize } else { capacity };
        let diagonal = thread::block_idx_x() as usize * TILE;
        let len = clip(num_outputs + num_segments, diagonal, TILE);
        // The whole block returns.
        if len == 0 {
            return;
        }
        // One warp searches for the begin of the tile, another for its end.
        let warp = thread / 32;
        if warp < 2 {
            // Segments that begin at an output precede it.
            let split =
                merge_split::<32>(num_outputs, num_segments, diagonal + warp * len, |output, segment| {
                    (output as u64) < self.offsets.load(segment)
                });
            if warp::lane_id() == 0 {
                splits.store(warp, split as u64);
            }
        }
        thread::sync_threads();
        let (first, end) = (splits.load(0) as usize, splits.load(1) as usize);
        let (tile_outputs, first_segment) = (end - first, diagonal - first);
        let tile_segments = len - tile_outputs;

        for i in strided(thread, tile_segments, THREADS) {
            let begin = self.offsets.load(first_segment + i) - first as u64;
            // Segments behind the tile's last output may begin far away: clamped to 32 bits.
            begins.store(i, if begin < TILE as u64 { begin as u32 } else { TILE as u32 });
        }
        thread::sync_threads();
        Self::rank_outputs(begins, ranks, tile_outputs, tile_segments);
        thread::sync_threads();

        for i in strided(thread, tile_outputs, THREADS) {
            let rank = ranks.load(i) as usize;
            let segment = first_segment + rank - 1;
            let output = first + i;
            let index = if rank > 0 {
                i as u32 - begins.load(rank - 1)
            } else {
                // The segment began in an earlier tile.
                (output as u64 - self.offsets.load(segment)) as u32
            };
            self.segments.store(output, segment as u32);
            if !self.indices.is_empty() {
                self.indices.store(output, index);
            }
        }
    }

    /// Ranks the outputs: each thread follows its part of the merge path.
    #[inline(always)]
    unsafe fn rank_outputs(
        begins: SharedSlice<'_, u32>,
        ranks: SharedSlice<'_, u32>,
        tile_outputs: usize,
        tile_segments: usize,
    ) {
        let len = tile_outputs + tile_segments;
        let diagonal = thread::thread_idx_x() as usize * ITEMS;
        if diagonal < len {
            let is_before = |output: u32, segment: u32| output < begins.load(segment as usize);
            let output = split_u32(tile_outputs as u32, tile_segments as u32, diagonal as u32, is_before);
            let mut output = output as usize;
            let mut segment = diagonal - output;
            for _ in 0..ITEMS {
                if segment < tile_segments && begins.load(segment) as usize <= output {
                    segment += 1;
                } else if output < tile_outputs {
                    ranks.store(output, segment as u32);
                    output += 1;
                }
            }
        }
    }
}

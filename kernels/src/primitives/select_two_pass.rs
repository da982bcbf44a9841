//! Select in two passes (Robinson): each warp compacts its piece of the input into its own region, then sums the counts
//! of the earlier warps and moves its items behind theirs.

use crate::block::tile::THREADS;
use crate::thread::items::strided;
use crate::thread::operator::Sum;
use crate::thread::words::*;
use crate::warp::coalescing_buffer::{BUFFER_ITEMS, CoalescingBuffer};
use crate::warp::scan::reduce;
use cuda_std::prelude::*;

const WARPS: usize = THREADS / 32;

/// Compacts the flagged items of each warp's piece to the same offset of another array, and counts them.
#[kernel(family = "research-primitives", block = THREADS, shared = CompactSmem<T>)]
#[instances(T = [u32, u64, Bits128])]
pub unsafe fn primitives_select_pieces<T: Words>(pieces: Pieces<'_, T>) {
    pieces.run()
}

/// Moves each warp's items behind those of the earlier warps, and writes the total.
#[kernel(family = "research-primitives", block = THREADS)]
#[instances(T = [u32, u64, Bits128])]
pub unsafe fn primitives_select_close_gaps<T: Words>(gaps: CloseGaps<'_, T>) {
    gaps.run()
}

/// Shared memory of the first pass.
#[repr(C, align(16))]
pub struct CompactSmem<T> {
    segments: [[T; BUFFER_ITEMS]; WARPS],
}

/// Returns the warp's index in the grid.
#[inline(always)]
fn warp_index() -> usize {
    (thread::index_1d_u64() / 32) as usize
}

/// The first pass.
#[derive(Clone, Copy, KernelArgs)]
pub struct Pieces<'a, T> {
    /// The items.
    pub input: Slice<'a, T>,
    /// A byte per item, not 0 for the items that are kept.
    pub flags: Slice<'a, u8>,
    /// The kept items of each piece, at its begin.
    pub compacted: SliceMut<'a, T>,
    /// The number of kept items of each warp.
    pub counts: SliceMut<'a, u64>,
    /// The items of a piece, a multiple of 32.
    pub piece: u64,
}

impl<T: Words> Pieces<'_, T> {
    #[inline(always)]
    unsafe fn run(self) {
        let warp = warp_index();
        if warp >= self.counts.len() {
            return;
        }
        let piece = self.piece as usize;
        let begin = warp * piece;
        let len = if self.input.len() - begin < piece { self.input.len() - begin } else { piece };
        let segments = shared_field!(shared_mem::<CompactSmem<T>>(), segments);
        let own = segments.part(warp % WARPS * BUFFER_ITEMS, BUFFER_ITEMS);
        let output = self.compacted.part(begin, len);
        let mut buffer = CoalescingBuffer::<_, 1> { segments: own, output, len: 0 };
        let lane = warp::lane_id() as usize;
        for round in strided(0, len, 32) {
            let is_item = round + lane < len;
            // Lanes beyond the end load the last item: a value out of a branch would go through local memory.
            let i = begin + if is_item { round + lane } else { len - 1 };
            buffer.push(is_item && self.flags.load(i) != 0, self.input.load(i));
        }
        if lane == 0 {
            self.counts.store(warp, buffer.len as u64);
        }
        buffer.finish()
    }
}

/// The second pass.
#[derive(Clone, Copy, KernelArgs)]
pub struct CloseGaps<'a, T> {
    /// The kept items of each piece, at its begin.
    pub compacted: Slice<'a, T>,
    /// The number of kept items of each warp.
    pub counts: Slice<'a, u64>,
    /// The output, with capacity for all items.
    pub kept: SliceMut<'a, T>,
    /// One word: the number of kept items.
    pub count: SliceMut<'a, u64>,
    /// The items of a piece.
    pub piece: u64,
}

impl<T: Words> CloseGaps<'_, T> {
    #[inline(always)]
    pub(crate) unsafe fn run(self) {
        let warp = warp_index();
        if warp >= self.counts.len() {
            return;
        }
        let lane = warp::lane_id() as usize;
        let mut before = 0;
        for other in strided(lane, warp, 32) {
            before += self.counts.load(other);
        }
        let before = reduce::<u64, Sum>(before) as usize;
        let own = self.counts.load(warp) as usize;
        if lane == 0 && warp + 1 == self.counts.len() {
            self.count.store(0, (before + own) as u64);
        }
        for i in strided(lane, own, 32) {
            self.kept.store(before + i, self.compacted.load(warp * self.piece as usize + i));
        }
    }
}

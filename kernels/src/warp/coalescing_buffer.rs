//! Compaction by one warp through a buffer of two segments (Robinson; Billeter, Olsson, Assarsson 2009). Kept items go
//! to shared memory by output index modulo 64; when a segment of 32 is full, the warp writes it with one coalesced
//! store. Without the buffer, each lane stores its item straight to the output.

use cuda_std::prelude::*;

/// The capacity of the buffer: two segments.
pub const BUFFER_ITEMS: usize = 64;

/// The kept items of a warp on their way to the output, without the buffer if `BUFFERED` is 0.
pub struct CoalescingBuffer<'a, T, const BUFFERED: usize> {
    /// The warp's [`BUFFER_ITEMS`] items of shared memory.
    pub segments: SharedSlice<'a, T>,
    /// The output, with capacity for every item that the warp may keep.
    pub output: SliceMut<'a, T>,
    /// The number of items kept so far.
    pub len: usize,
}

impl<T: Copy, const BUFFERED: usize> CoalescingBuffer<'_, T, BUFFERED> {
    /// Appends the items of the lanes with `keep`, in lane order.
    ///
    /// # Safety
    /// All lanes call.
    #[inline(always)]
    pub unsafe fn push(&mut self, keep: bool, item: T) {
        let kept = warp::warp_vote_ballot(warp::FULL_MASK, keep);
        let index = self.len + (kept & warp::lane_mask_lt()).count_ones() as usize;
        if BUFFERED == 0 {
            if keep {
                self.output.store(index, item);
            }
            self.len += kept.count_ones() as usize;
            return;
        }
        if keep {
            // Masking wraps around without a branch.
            self.segments.store(index & (BUFFER_ITEMS - 1), item);
        }
        warp::sync_warp(warp::FULL_MASK);
        let segment = self.len & !31;
        self.len += kept.count_ones() as usize;
        if self.len & !31 != segment {
            self.store(segment);
            // The next round may write to this segment again.
            warp::sync_warp(warp::FULL_MASK);
        }
    }

    /// Writes the items of the last, partial segment.
    ///
    /// # Safety
    /// All lanes call, once, at the end.
    #[inline(always)]
    pub unsafe fn finish(self) {
        if BUFFERED != 0 && (warp::lane_id() as usize) < self.len & 31 {
            self.store(self.len & !31);
        }
    }

    /// Writes the lane's item of the segment that begins at `segment`.
    #[inline(always)]
    unsafe fn store(&self, segment: usize) {
        let index = segment + warp::lane_id() as usize;
        self.output.store(index, self.segments.load(index & (BUFFER_ITEMS - 1)));
    }
}

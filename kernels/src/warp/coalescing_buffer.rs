//! Compaction by one warp through a buffer of two segments (Robinson; Billeter, Olsson, Assarsson 2009): kept items go to
//! shared memory by place modulo 64, and when a segment of 32 is full the warp writes it by one coalesced store.

use cuda_std::prelude::*;

/// Items of the buffer: two segments.
pub const BUFFER_ITEMS: usize = 64;

/// A warp's kept items on their way to its output.
pub struct CoalescingBuffer<'a, T> {
    /// [`BUFFER_ITEMS`] items of the warp's own.
    pub segments: SharedSlice<'a, T>,
    /// Room for all items that the warp may keep.
    pub output: SliceMut<'a, T>,
    /// Items kept so far.
    pub len: usize,
}

impl<T: Copy> CoalescingBuffer<'_, T> {
    /// Takes the items of the lanes that keep theirs, in the order of lanes.
    ///
    /// # Safety
    /// All lanes call.
    #[inline(always)]
    pub unsafe fn push(&mut self, keep: bool, item: T) {
        let kept = warp::warp_vote_ballot(warp::FULL_MASK, keep);
        let place = self.len + (kept & warp::lane_mask_lt()).count_ones() as usize;
        if keep {
            // Masking wraps around without a branch.
            self.segments.store(place & (BUFFER_ITEMS - 1), item);
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

    /// Writes the items of the segment that is not full.
    ///
    /// # Safety
    /// All lanes call, once, at the end.
    #[inline(always)]
    pub unsafe fn finish(self) {
        if (warp::lane_id() as usize) < self.len & 31 {
            self.store(self.len & !31);
        }
    }

    /// The lane's item of the segment at `segment`.
    #[inline(always)]
    unsafe fn store(&self, segment: usize) {
        let place = segment + warp::lane_id() as usize;
        self.output.store(place, self.segments.load(place & (BUFFER_ITEMS - 1)));
    }
}

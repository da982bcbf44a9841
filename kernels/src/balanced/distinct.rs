//! Removal of equal points from a sorted array, in which equal points are adjacent. Each warp compacts its piece; a second pass closes the
//! gaps, as in a [selection in two passes](crate::primitives::select_two_pass) (Robinson, after Billeter, Olsson, Assarsson 2009).

use super::is_before;
use crate::block::tile::THREADS;
use crate::policy::PER_ITEM_THREADS;
use crate::primitives::select_two_pass::CloseGaps;
use crate::thread::coord::Float;
use crate::thread::items::own_item;
use crate::thread::order::Lookup;
use crate::warp::coalescing_buffer::{BUFFER_ITEMS, CoalescingBuffer};
use cuda_std::prelude::*;

const WARPS: usize = THREADS / 32;

/// Compacts the ids of the first of equal points within the piece of each warp, and counts them.
#[kernel(family = "balanced", block = THREADS, shared = DistinctSmem<C>)]
#[instances(C = [f32, f64])]
pub unsafe fn balanced_distinct_pieces<C: Float>(pieces: Pieces<'_, C>) {
    pieces.run::<1>()
}

/// As [`balanced_distinct_pieces`](balanced_distinct_pieces()), without coalescing buffers.
#[kernel(family = "research-balanced", block = THREADS, shared = DistinctSmem<C>)]
#[instances(C = [f32, f64])]
pub unsafe fn balanced_distinct_pieces_direct<C: Float>(pieces: Pieces<'_, C>) {
    pieces.run::<0>()
}

/// Moves the kept ids of each warp behind those of the earlier warps, and writes their number.
#[kernel(family = "balanced", block = THREADS)]
pub unsafe fn balanced_distinct_close_gaps(gaps: CloseGaps<'_, u32>) {
    gaps.run()
}

/// Shared memory of a block. Each warp stores the points of a round after the last point of the round before.
#[repr(C, align(16))]
pub struct DistinctSmem<C> {
    segments: [[u32; BUFFER_ITEMS]; WARPS],
    keys: [[C; 33]; WARPS],
    ids: [[u32; 33]; WARPS],
}

/// The first pass.
#[derive(Clone, Copy, KernelArgs)]
pub struct Pieces<'a, C> {
    /// The ids of the points, with their first coordinates.
    pub sorted: crate::thread::carried::Source<'a, C, u32>,
    /// The points, by the super key that they are sorted by.
    pub points: crate::thread::order::Lookup<'a, C>,
    /// The kept ids of each piece, at its begin.
    pub compacted: SliceMut<'a, u32>,
    /// The number of kept ids of each warp.
    pub counts: SliceMut<'a, u64>,
    /// Receives the first position whose point comes before its predecessor, if the array is not sorted; initialized to `u64::MAX`.
    pub failed: SliceMut<'a, u64>,
    /// The points of a piece, a multiple of 32.
    pub piece: u64,
}

impl<C: Float> Pieces<'_, C> {
    /// Compacts the piece of a warp, without a coalescing buffer if `BUFFERED` is 0.
    #[inline(always)]
    unsafe fn run<const BUFFERED: usize>(self) {
        let warp = (thread::index_1d_u64() / 32) as usize;
        if warp >= self.counts.len() {
            return;
        }
        let piece = self.piece as usize;
        let begin = warp * piece;
        let remaining = self.sorted.keys.len() - begin;
        let len = if remaining < piece { remaining } else { piece };
        let smem = shared_mem::<DistinctSmem<C>>();
        let warp_in_block = warp % WARPS;
        let keys = shared_field!(smem, keys).part(warp_in_block * 33, 33);
        let ids = shared_field!(smem, ids).part(warp_in_block * 33, 33);
        let segments = shared_field!(smem, segments).part(warp_in_block * BUFFER_ITEMS, BUFFER_ITEMS);
        let output = self.compacted.part(begin, len);
        let mut buffer = CoalescingBuffer::<_, BUFFERED> { segments, output, len: 0 };
        let lane = warp::lane_id() as usize;
        // The predecessor of lane 0 is the last point of the round before; in the first round, the point before the piece.
        if lane == 0 && begin > 0 {
            keys.store(0, self.sorted.keys.load(begin - 1));
            ids.store(0, self.sorted.values.load(begin - 1));
        }
        let mut round = 0;
        while round < len {
            let is_item = round + lane < len;
            let i = begin + if is_item { round + lane } else { len - 1 };
            let (key, id) = (self.sorted.keys.load(i), self.sorted.values.load(i));
            keys.store(lane + 1, key);
            ids.store(lane + 1, id);
            warp::sync_warp(warp::FULL_MASK);
            let mut keep = is_item;
            if is_item && i > 0 {
                keep = self.differs((key, id), (keys.load(lane), ids.load(lane)), i);
            }
            warp::sync_warp(warp::FULL_MASK);
            if lane == 31 {
                keys.store(0, key);
                ids.store(0, id);
            }
            buffer.push(keep, id);
            round += 32;
        }
        if lane == 0 {
            self.counts.store(warp, buffer.len as u64);
        }
        buffer.finish()
    }

    /// Returns true if a point differs from its predecessor. Records the position if the predecessor comes after it.
    #[inline(always)]
    unsafe fn differs(&self, point: (C, u32), predecessor: (C, u32), position: usize) -> bool {
        let (key, other) = (point.0.key(), predecessor.0.key());
        let (mut is_less, mut is_greater) = (key < other, key > other);
        let (dims, axis) = (self.points.dims as usize, self.points.axis as usize);
        // The other coordinates are loaded only if the first ones are equal.
        let mut beyond = 1;
        while beyond < dims && !is_less && !is_greater {
            let at = if axis + beyond < dims { axis + beyond } else { axis + beyond - dims };
            let key = self.points.coords.load(point.1 as usize * dims + at).key();
            let other = self.points.coords.load(predecessor.1 as usize * dims + at).key();
            (is_less, is_greater) = (key < other, key > other);
            beyond += 1;
        }
        if is_less {
            self.failed.atomic_min(0, position as u64, Ordering::Relaxed, Scope::Device);
        }
        is_greater
    }
}

/// Writes the representative of each point: the first point that equals it. `ids` is sorted by the super key of `points`; `kept` is the
/// subsequence of the representatives. One thread per position.
#[kernel(family = "balanced", block = PER_ITEM_THREADS)]
#[instances(C = [f32, f64])]
pub unsafe fn balanced_representatives<C: Float>(
    points: Lookup<'_, C>,
    ids: Slice<u32>,
    kept: Slice<u32>,
    representatives: SliceMut<u32>,
) {
    let Some(position) = own_item(ids.len()) else { return };
    let id = ids.load(position);
    // The last kept point that does not come after this point. The first of equal points is kept, so it is not after any of them.
    let (mut low, mut high) = (0, kept.len());
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if is_before(&points, id, kept.load(middle)) {
            high = middle;
        } else {
            low = middle;
        }
    }
    representatives.store(id as usize, kept.load(low));
}

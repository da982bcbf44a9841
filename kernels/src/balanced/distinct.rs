//! Removal of equal points from a sorted array, in which they lie side by side: each warp compacts its piece, and the gaps are closed
//! as those of a [selection in two passes](crate::primitives::select_two_pass) (Robinson, after Billeter, Olsson, Assarsson 2009).

use super::is_before;
use crate::block::tile::THREADS;
use crate::policy::PER_ITEM_THREADS;
use crate::thread::coord::Coord;
use crate::thread::order::Lookup;
use crate::warp::coalescing_buffer::{BUFFER_ITEMS, CoalescingBuffer};
use cuda_std::prelude::*;

const WARPS: usize = THREADS / 32;

/// Compacts the ids of the first of equal points in each warp's piece of `piece` points, a multiple of 32, to the same place in
/// `compacted`; their number to `counts`, one a warp. The first place at which a point comes before its neighbor, which none does if
/// the sort is right, goes to `failed`, which starts at `u64::MAX`.
#[kernel(family = "balanced", block = THREADS, shared = DistinctSmem<C>)]
#[instances(C = [f32, f64])]
pub unsafe fn balanced_distinct_pieces<C: Coord>(
    keys: Slice<C>,
    ids: Slice<u32>,
    coords: Slice<C>,
    dims: u32,
    axis: u32,
    compacted: SliceMut<u32>,
    counts: SliceMut<u64>,
    failed: SliceMut<u64>,
    piece: u64,
) {
    let points = Lookup { coords, dims, axis };
    Pieces { keys, ids, points, compacted, counts, failed, piece: piece as usize }.run()
}

/// Shared memory: the points of a round, each behind its neighbor.
#[repr(C, align(16))]
pub struct DistinctSmem<C> {
    segments: [[u32; BUFFER_ITEMS]; WARPS],
    keys: [[C; 33]; WARPS],
    ids: [[u32; 33]; WARPS],
}

struct Pieces<'a, C> {
    keys: Slice<'a, C>,
    ids: Slice<'a, u32>,
    points: Lookup<'a, C>,
    compacted: SliceMut<'a, u32>,
    counts: SliceMut<'a, u64>,
    failed: SliceMut<'a, u64>,
    piece: usize,
}

impl<C: Coord> Pieces<'_, C> {
    #[inline(always)]
    unsafe fn run(self) {
        let warp = (thread::index_1d_u64() / 32) as usize;
        if warp >= self.counts.len() {
            return;
        }
        let begin = warp * self.piece;
        let len = if self.ids.len() - begin < self.piece { self.ids.len() - begin } else { self.piece };
        let smem = shared_mem::<DistinctSmem<C>>();
        let of_warp = warp % WARPS;
        let keys = shared_field!(smem, keys).part(of_warp * 33, 33);
        let ids = shared_field!(smem, ids).part(of_warp * 33, 33);
        let segments = shared_field!(smem, segments).part(of_warp * BUFFER_ITEMS, BUFFER_ITEMS);
        let mut buffer = CoalescingBuffer { segments, output: self.compacted.part(begin, len), len: 0 };
        let lane = warp::lane_id() as usize;
        // The neighbor of lane 0 is the last point of the round before, and at first that before the piece.
        if lane == 0 && begin > 0 {
            keys.store(0, self.keys.load(begin - 1));
            ids.store(0, self.ids.load(begin - 1));
        }
        let mut round = 0;
        while round < len {
            let is_item = round + lane < len;
            let i = begin + if is_item { round + lane } else { len - 1 };
            let (key, id) = (self.keys.load(i), self.ids.load(i));
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

    /// True if a point is another than its neighbor, which does not come behind it.
    #[inline(always)]
    unsafe fn differs(&self, point: (C, u32), neighbor: (C, u32), place: usize) -> bool {
        let (key, other) = (point.0.key(), neighbor.0.key());
        let (mut is_less, mut is_greater) = (key < other, key > other);
        let (dims, axis) = (self.points.dims as usize, self.points.axis as usize);
        // Coordinates are fetched where the first ones are equal.
        let mut beyond = 1;
        while beyond < dims && !is_less && !is_greater {
            let at = if axis + beyond < dims { axis + beyond } else { axis + beyond - dims };
            let key = self.points.coords.load(point.1 as usize * dims + at).key();
            let other = self.points.coords.load(neighbor.1 as usize * dims + at).key();
            (is_less, is_greater) = (key < other, key > other);
            beyond += 1;
        }
        if is_less {
            self.failed.atomic_min(0, place as u64, Ordering::Relaxed, Scope::Device);
        }
        is_greater
    }
}

/// Writes for each point of the array sorted on the first axis which point stays for it; a thread a place. `kept` are the ids of the
/// points that stay, in the same order.
#[kernel(family = "balanced", block = PER_ITEM_THREADS)]
#[instances(C = [f32, f64])]
pub unsafe fn balanced_stays<C: Coord>(
    ids: Slice<u32>,
    kept: Slice<u32>,
    coords: Slice<C>,
    dims: u32,
    stays: SliceMut<u32>,
) {
    let place = thread::index_1d_u64() as usize;
    if place < ids.len() {
        let (points, id) = (Lookup { coords, dims, axis: 0 }, ids.load(place));
        // The last that does not come behind it. Of equal points the first by id stays, so that it is not behind any of them.
        let (mut low, mut high) = (0, kept.len());
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if is_before(&points, id, kept.load(middle)) {
                high = middle;
            } else {
                low = middle;
            }
        }
        stays.store(id as usize, kept.load(low));
    }
}

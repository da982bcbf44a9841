//! Moves of points: from the buckets of a tree into buckets with gaps, or together into one array, from which a tree is built. Coordinates
//! are moved as 32-bit words, so that one kernel serves all types.

use crate::policy::PER_ITEM_THREADS;
use crate::query::buckets::{BucketLayout, GAPS, NO_POINT};
use crate::warp::scan::inclusive_sum;
use crate::warp::shuffle::shuffle_idx;
use cuda_std::prelude::*;

/// Each word of the coordinates in a free slot: a large number in every type, so that the slot is near no query.
const FREE: u32 = 0x7F7F_7F7F;

/// Points that are moved, coordinates as words, and where they go.
#[derive(Clone, Copy, KernelArgs)]
pub struct Moves<'a> {
    /// The coordinates of the slots.
    pub words: Slice<'a, u32>,
    /// The ids of the slots.
    pub ids: Slice<'a, u32>,
    /// The layout of the buckets, as [`BucketLayout::new`] takes it.
    pub bucket_len: u32,
    /// Words of a point.
    pub num_words: u32,
    /// The coordinates of the points moved.
    pub to_words: SliceMut<'a, u32>,
    /// The ids of the points moved.
    pub to_ids: SliceMut<'a, u32>,
    /// Number of points moved so far: the points go to one array, in any order. Empty: the points go to buckets with gaps.
    pub num_moved: SliceMut<'a, u32>,
}

impl Moves<'_> {
    /// Copies a point.
    #[inline(always)]
    unsafe fn copy(&self, slot: usize, to: usize) {
        self.to_ids.store(to, self.ids.load(slot));
        let num_words = self.num_words as usize;
        for word in 0..num_words {
            self.to_words.store(to * num_words + word, self.words.load(slot * num_words + word));
        }
    }

    /// Frees a slot.
    #[inline(always)]
    unsafe fn free(&self, slot: usize) {
        self.to_ids.store(slot, NO_POINT);
        let num_words = self.num_words as usize;
        for word in 0..num_words {
            self.to_words.store(slot * num_words + word, FREE);
        }
    }
}

/// Moves the points of each bucket; one thread per bucket.
#[kernel(family = "dynamic", block = PER_ITEM_THREADS)]
pub unsafe fn dynamic_move(moves: Moves<'_>) {
    let bucket = thread::index_1d_u64() as u32;
    let layout = BucketLayout::new(moves.ids.len() as u32, moves.bucket_len);
    let (mut begin, mut end) = (0, 0);
    if bucket < 1 << layout.levels {
        (begin, end) = (layout.begin(bucket, layout.levels), layout.begin(bucket + 1, layout.levels));
    }
    let (mut to, mut to_end) = (0, 0);
    if moves.num_moved.is_empty() {
        if begin < end {
            let layout = BucketLayout::new(moves.to_ids.len() as u32, GAPS);
            to = layout.begin(bucket, layout.levels);
            to_end = layout.begin(bucket + 1, layout.levels);
        }
    } else {
        let mut num_points = 0;
        for slot in begin..end {
            num_points += u32::from(moves.ids.load(slot as usize) != NO_POINT);
        }
        // An addition for a whole warp.
        let sum = inclusive_sum(num_points);
        let mut first = 0;
        if warp::lane_id() == 31 {
            first = moves.num_moved.atomic_add(0, sum, Ordering::Relaxed, Scope::Device);
        }
        to = shuffle_idx(first, 31) + sum - num_points;
    }
    for slot in begin..end {
        if moves.ids.load(slot as usize) != NO_POINT {
            moves.copy(slot as usize, to as usize);
            to += 1;
        }
    }
    while to < to_end {
        moves.free(to as usize);
        to += 1;
    }
}

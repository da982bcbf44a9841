//! Counts of points by child, packed into two 64-bit words.

use super::points::LevelPoints;
use crate::thread::operator::Sum;
use crate::thread::words::computed;
use crate::warp::scan::inclusive;
use cuda_std::prelude::*;

/// Most children of a node.
pub(super) const MAX_CHILDREN: usize = 8;

/// A count of up to 8 bits for each child.
pub(super) struct SmallCounts<const D: usize>(pub(super) [u32; 2]);

impl<const D: usize> SmallCounts<D> {
    /// Counts a point of `child`.
    #[inline(always)]
    pub(super) fn add(&mut self, child: u32) {
        let one = 1 << (8 * (child % 4));
        if D == 2 || child < 4 {
            self.0[0] += one;
        } else {
            self.0[1] += one;
        }
    }

    /// Widens the counts to 16 bits.
    #[inline(always)]
    pub(super) fn widen(self) -> ChildCounts<D> {
        ChildCounts(self.0.map(|word| {
            let pairs = (u64::from(word) | u64::from(word) << 16) & 0x0000_FFFF_0000_FFFF;
            (pairs | pairs << 8) & 0x00FF_00FF_00FF_00FF
        }))
    }
}

/// A count of up to 16 bits for each child.
#[derive(Clone, Copy)]
pub(super) struct ChildCounts<const D: usize>(pub(super) [u64; 2]);

impl<const D: usize> ChildCounts<D> {
    /// Counts a point of `child`.
    #[inline(always)]
    pub(super) fn add(&mut self, child: u32) {
        let one = 1 << (16 * (child % 4));
        if D == 2 || child < 4 {
            self.0[0] += one;
        } else {
            self.0[1] += one;
        }
    }

    /// Returns the count of `child`.
    #[inline(always)]
    pub(super) fn get(&self, child: u32) -> u32 {
        let word = if D == 2 || child < 4 { self.0[0] } else { self.0[1] };
        (word >> (16 * (child % 4))) as u32 & 0xFFFF
    }

    #[inline(always)]
    pub(super) fn plus(self, other: Self) -> Self {
        Self([self.0[0] + other.0[0], self.0[1] + other.0[1]])
    }

    #[inline(always)]
    pub(super) fn minus(self, other: Self) -> Self {
        Self([self.0[0] - other.0[0], self.0[1] - other.0[1]])
    }

    /// Returns the exclusive scan over children.
    #[inline(always)]
    pub(super) fn begins(self) -> Self {
        // The product with 1 in each field is the inclusive scan of the fields of a word.
        const ONES: u64 = 0x0001_0001_0001_0001;
        let sums = self.0.map(|word| word.wrapping_mul(ONES));
        Self([sums[0] << 16, (sums[1] << 16).wrapping_add((sums[0] >> 48) * ONES)])
    }

    /// Loads the counts of entry `i` from an array of `len` low words, followed by `len` high words for octrees.
    #[inline(always)]
    unsafe fn load(from: SharedSlice<'_, u64>, i: usize, len: usize) -> Self {
        Self([from.load(i), if D == 2 { 0 } else { from.load(len + i) }])
    }

    #[inline(always)]
    unsafe fn store(self, to: SharedSlice<'_, u64>, i: usize, len: usize) {
        to.store(i, self.0[0]);
        if D > 2 {
            to.store(len + i, self.0[1]);
        }
    }
}

/// Scans the counts of the threads of a block. Returns the inclusive sum up to the calling thread, and the sum of all. All threads call.
#[inline(always)]
pub(super) unsafe fn scan<const D: usize, const THREADS: usize>(
    thread_counts: ChildCounts<D>,
    counts: SharedSlice<'_, u64>,
) -> (ChildCounts<D>, ChildCounts<D>) {
    let (mut up_to, thread) = (thread_counts, thread::thread_idx_x() as usize);
    if THREADS < 32 {
        let mut distance = 1;
        thread_counts.store(counts, thread, THREADS);
        while distance < THREADS as u32 {
            thread::sync_threads();
            if thread >= distance as usize {
                up_to = up_to.plus(ChildCounts::load(counts, thread - distance as usize, THREADS));
            }
            thread::sync_threads();
            up_to.store(counts, thread, THREADS);
            distance = computed(2 * distance);
        }
        thread::sync_threads();
        return (up_to, ChildCounts::load(counts, THREADS - 1, THREADS));
    }
    up_to.0[0] = inclusive::<u64, Sum>(thread_counts.0[0]);
    if D > 2 {
        up_to.0[1] = inclusive::<u64, Sum>(thread_counts.0[1]);
    }
    let (warp, mut total) = (thread / 32, ChildCounts([0; 2]));
    if warp::lane_id() == 31 {
        up_to.store(counts, warp, THREADS);
    }
    thread::sync_threads();
    for other in 0..THREADS / 32 {
        let other_counts = ChildCounts::load(counts, other, THREADS);
        total = total.plus(other_counts);
        if other < warp {
            up_to = up_to.plus(other_counts);
        }
    }
    (up_to, total)
}

/// Counts a point in an array of registers: a loop with constant indices, since registers cannot be indexed by a variable.
#[inline(always)]
pub(super) fn count_child<const D: usize>(
    counts: &mut [u32; MAX_CHILDREN],
    points: LevelPoints<'_>,
    code: u32,
) {
    let point_child = points.child::<D>(code);
    for child in 0..1 << D {
        counts[child] += u32::from(point_child == child as u32);
    }
}

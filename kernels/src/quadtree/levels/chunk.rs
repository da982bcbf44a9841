//! Stable sort of the points of a node by child, one chunk at a time.

use super::counts::{ChildCounts, MAX_CHILDREN, SmallCounts, scan};
use super::points::{LevelPoints, PointTargets};
use crate::policy::QUADTREE_PIECE_POINTS;
use cuda_std::prelude::*;

/// Returns the minimum number of resident blocks per multiprocessor: it leaves 64 registers per thread for quadtrees, 80 for octrees.
pub(super) const fn min_blocks(dims: usize, threads: usize) -> usize {
    let most = if dims == 2 { 1024 } else { 768 };
    if threads < 32 { 32 } else { most / threads }
}

/// Shared memory of a block.
#[repr(C)]
pub(super) struct LevelSmem<const THREADS: usize> {
    /// Points as (id, code) pairs, with a gap after every 16; or a row of counts per child, with one count per thread.
    pub(super) points: [[u64; THREADS]; QUADTREE_PIECE_POINTS + 1],
    /// Counts by thread or warp, for the scan.
    pub(super) counts: [[u64; THREADS]; 2],
    /// The first index of each child's points.
    pub(super) begins: [u32; MAX_CHILDREN],
    /// The index of each child's next point.
    pub(super) next: [u32; MAX_CHILDREN],
    /// The offset from an index in the sorted block to the index in the output, by child.
    pub(super) bases: [u32; MAX_CHILDREN],
}

/// Returns the index of point `i` in shared memory: with a gap after every 16 points, the threads' first points are in different banks.
#[inline(always)]
fn padded(i: u32) -> usize {
    (i + i / 16) as usize
}

/// Consecutive points of a node in the registers of a block, `ITEMS` per thread. The last chunk of a node may have fewer.
pub(super) struct Chunk<'a, const D: usize, const THREADS: usize, const ITEMS: usize> {
    smem: *mut LevelSmem<THREADS>,
    points: LevelPoints<'a>,
    len: u32,
    /// The points of the thread.
    items: [u64; ITEMS],
    /// Counts of the points of the threads before.
    before: ChildCounts<D>,
    /// Counts of all points.
    pub(super) total: ChildCounts<D>,
}

impl<'a, const D: usize, const THREADS: usize, const ITEMS: usize> Chunk<'a, D, THREADS, ITEMS> {
    pub(super) const MAX_POINTS: usize = THREADS * ITEMS;

    /// Returns true if there is point `i`. A `FULL` chunk needs no comparison.
    #[inline(always)]
    fn has_point<const FULL: bool>(&self, i: u32) -> bool {
        FULL || i < self.len
    }

    /// Loads points, transposes them through shared memory so that each thread has consecutive ones, and counts them. All threads call.
    #[inline(always)]
    pub(super) unsafe fn load<const FULL: bool>(
        smem: *mut LevelSmem<THREADS>,
        points: LevelPoints<'a>,
        begin: usize,
        len: u32,
    ) -> Self {
        let none = ChildCounts([0; 2]);
        let mut chunk = Self { smem, points, len, items: [0; ITEMS], before: none, total: none };
        let (shared, thread) = (shared_field!(smem, points), thread::thread_idx_x());
        for j in 0..ITEMS {
            let i = (j * THREADS) as u32 + thread;
            if chunk.has_point::<FULL>(i) {
                let at = begin + i as usize;
                let (code, id) = (points.codes.load(at), points.ids.load(at));
                shared.store(padded(i), u64::from(code) | u64::from(id) << 32);
            }
        }
        thread::sync_threads();
        let (first, mut counts) = (thread * ITEMS as u32, SmallCounts::<D>([0; 2]));
        for j in 0..ITEMS {
            if chunk.has_point::<FULL>(first + j as u32) {
                chunk.items[j] = shared.load(padded(first + j as u32));
                counts.add(points.child::<D>(chunk.items[j] as u32));
            }
        }
        let counts = counts.widen();
        let (up_to, total) = scan::<D, THREADS>(counts, shared_field!(smem, counts));
        (chunk.before, chunk.total) = (up_to.minus(counts), total);
        chunk
    }

    /// Sorts the points by child, in shared memory. All threads call.
    #[inline(always)]
    pub(super) unsafe fn sort<const FULL: bool>(&self) {
        let shared = shared_field!(self.smem, points);
        let first = thread::thread_idx_x() * ITEMS as u32;
        let mut ranks = self.before.plus(self.total.begins());
        for j in 0..ITEMS {
            if self.has_point::<FULL>(first + j as u32) {
                let child = self.points.child::<D>(self.items[j] as u32);
                shared.store(padded(ranks.get(child)), self.items[j]);
                ranks.add(child);
            }
        }
        thread::sync_threads();
    }

    /// Stores the sorted points: point `i` of the sorted chunk goes to index `base(child) + i` of its child. `splits` has a bit for each
    /// child that splits. The barrier at the end of [`sort`](Self::sort) must come before.
    #[inline(always)]
    pub(super) unsafe fn store<const FULL: bool>(
        &self,
        splits: u32,
        to: PointTargets<'_>,
        base: impl Fn(usize) -> u32,
    ) {
        let (shared, thread) = (shared_field!(self.smem, points), thread::thread_idx_x());
        for j in 0..ITEMS {
            let i = (j * THREADS) as u32 + thread;
            if self.has_point::<FULL>(i) {
                let point = shared.load(padded(i));
                let child = self.points.child::<D>(point as u32);
                let index = base(child as usize).wrapping_add(i);
                to.store(splits >> child & 1 == 1, index, point as u32, (point >> 32) as u32);
            }
        }
    }
}

//! Nodes that split, found in sorted keys on all levels at once.
//!
//! Two points share cells on as many levels as their keys share leading digits. A cell of level `l` has more than `leaf_points` points if
//! and only if its first point and the point `leaf_points` positions later share level `l`. A point is the first of its cells on all
//! levels below the deepest one that it shares with its predecessor. So each position determines the splitting nodes that begin there:
//! they are on the levels below the one shared with the predecessor, down to the one shared with the point `leaf_points` positions later.
//! Listed level by level, the nodes are in breadth-first order, and so are their children: the children of the k-th node that splits
//! begin at `2^D k`.

use crate::policy::{PER_ITEM_THREADS, QUADTREE_WARP_POINTS};
use crate::thread::radix_key::RadixKey;
use crate::thread::words::computed;
use cuda_std::prelude::*;
use cuda_std::warp::WarpReductionOp;

/// The sorted keys of a round.
#[derive(Clone, Copy, KernelArgs)]
pub struct Keys<'a, K> {
    /// The keys in ascending order.
    pub keys: Slice<'a, K>,
    /// The number of levels that the keys have digits for.
    pub num_levels: u32,
    /// A node with more points splits.
    pub leaf_points: u32,
}

impl<K: RadixKey> Keys<'_, K> {
    #[inline(always)]
    pub(super) unsafe fn key(&self, i: usize) -> u64 {
        self.keys.load(i).into()
    }

    /// Returns the number of warps that take [`QUADTREE_WARP_POINTS`] keys each.
    #[inline(always)]
    pub(super) fn num_warps(&self) -> usize {
        self.keys.len().div_ceil(QUADTREE_WARP_POINTS)
    }

    /// Returns the deepest level on which two points share a cell; -1 if their roots differ.
    #[inline(always)]
    unsafe fn shared_level<const D: usize>(&self, a: usize, b: usize) -> i32 {
        // The number of digits from the highest that differs down.
        let bits = u64::BITS - (self.key(a) ^ self.key(b)).leading_zeros();
        let below = bits.div_ceil(D as u32);
        if below > self.num_levels { -1 } else { (self.num_levels - below) as i32 }
    }

    /// Returns a bit for each level on which a node that splits begins at position `i`.
    #[inline(always)]
    unsafe fn split_levels<const D: usize>(&self, i: usize) -> u32 {
        let (len, leaf_points) = (self.keys.len(), self.leaf_points as usize);
        if i >= len || len - i <= leaf_points {
            return 0;
        }
        let bits_from = |level: i32| u32::MAX << level;
        let above = if i == 0 { -1 } else { self.shared_level::<D>(i - 1, i) };
        bits_from(above + 1) & !bits_from(self.shared_level::<D>(i, i + leaf_points) + 1)
    }

    /// Visits the nodes that split and begin at the positions of a warp: calls `visit` for each level of each group of 32 positions, with
    /// the lanes whose position begins a node, and the calling lane's position if it does. All lanes call.
    #[inline(always)]
    unsafe fn for_each_level<const D: usize>(
        &self,
        warp: usize,
        mut visit: impl FnMut(u32, u32, Option<usize>),
    ) {
        let mut group = warp::lane_id();
        while group < QUADTREE_WARP_POINTS as u32 {
            let i = warp * QUADTREE_WARP_POINTS + group as usize;
            let levels = self.split_levels::<D>(i);
            let mut all = warp::warp_reduce(warp::FULL_MASK, levels, WarpReductionOp::Or);
            while all != 0 {
                let level = all.trailing_zeros();
                all &= all - 1;
                let begins = levels >> level & 1 == 1;
                let lanes = warp::warp_vote_ballot(warp::FULL_MASK, begins);
                visit(level, lanes, begins.then_some(i));
            }
            // Opaque to the compiler, so that the loop is not unrolled.
            group = computed(group + 32);
        }
    }
}

/// Counts the nodes that split on each level of a round, at most 30, and on the level below. The counts have one row per level with one
/// entry per warp, which takes [`QUADTREE_WARP_POINTS`] points, and end with a 0.
#[kernel(family = "quadtree", block = PER_ITEM_THREADS, hot)]
#[instances(K = [u32, u64], D = [2, 3])]
pub unsafe fn quadtree_count<K: RadixKey, const D: usize>(keys: Keys<'_, K>, counts: SliceMut<u32>) {
    let (warp, num_warps) = (thread::index_1d_u64() as usize / 32, keys.num_warps());
    // True for all lanes of a warp.
    if warp >= num_warps {
        return;
    }
    let (lane, mut count) = (warp::lane_id(), 0);
    keys.for_each_level::<D>(warp, |level, lanes, _| {
        count += if level == lane { lanes.count_ones() } else { 0 };
    });
    if lane <= keys.num_levels {
        counts.store(lane as usize * num_warps + warp, count);
    }
    if warp == 0 && lane == 0 {
        counts.store(counts.len() - 1, 0);
    }
}

/// Writes where each row begins in the list of nodes that split, given the scanned counts, and the length of the list. One block.
#[kernel(family = "quadtree", block = 32)]
pub unsafe fn quadtree_rows(counts: Slice<u32>, begins: SliceMut<u32>) {
    let (row, num_rows) = (thread::index_1d() as usize, begins.len() - 1);
    if row <= num_rows {
        begins.store(row, counts.load((counts.len() - 1) / num_rows * row));
    }
}

/// Lists the positions at which the nodes that split begin, ordered by level, then by position. The launch is that of
/// [`quadtree_count()`], and `counts` are its scanned counts.
#[kernel(family = "quadtree", block = PER_ITEM_THREADS, hot)]
#[instances(K = [u32, u64], D = [2, 3])]
pub unsafe fn quadtree_splits<K: RadixKey, const D: usize>(
    keys: Keys<'_, K>,
    counts: Slice<u32>,
    splits: SliceMut<u32>,
) {
    let (warp, num_warps) = (thread::index_1d_u64() as usize / 32, keys.num_warps());
    // True for all lanes of a warp.
    if warp >= num_warps {
        return;
    }
    let lane = warp::lane_id();
    let mut next = if lane <= keys.num_levels { counts.load(lane as usize * num_warps + warp) } else { 0 };
    keys.for_each_level::<D>(warp, |level, lanes, position| {
        let before =
            warp::shuffle_idx(warp::FULL_MASK, next, level) + (lanes & warp::lane_mask_lt()).count_ones();
        if let Some(position) = position {
            splits.store(before as usize, position as u32);
        }
        next += if level == lane { lanes.count_ones() } else { 0 };
    });
}

//! Rounds of a build from codes: their numbers of levels, and their temporary memory.

use crate::device::{Layout, Region};
use crate::primitives::planned::bytes_of;
use crate::primitives::radix_sort::{RadixSort, Shape};
use crate::primitives::scan::Scan;
use crate::primitives::segmented_sort::{SEGMENT_TILE_ITEMS, SegmentLists};
use kauri_kernels::policy::{
    QUADTREE_COUNTED_POINTS, QUADTREE_WARP_POINTS, SEGMENT_SHORT_ITEMS, SEGMENT_WARP_ITEMS,
};
use kauri_kernels::thread::carried::NoValue;
use kauri_kernels::thread::radix_key::{RADIX_BITS, RadixKey};
use kauri_kernels::warp::look_back::Decoupled;

/// Most bits of the codes of a round that sorts all its points together. The number of a root must fit in front of them in 64 bits.
const MAX_CODE_BITS: u32 = 32;
/// Most levels of a round: each lane of a warp counts the nodes of one level, also of the level below the round.
pub(super) const MAX_ROUND_LEVELS: u32 = 30;

/// Temporary bytes per node that splits, outside of the workspace: its entry in the list, offsets of its points, and its entries as a root
/// of this round and of the next.
pub(crate) const TEMP_SPLIT_BYTES: u64 = 4 + 8 + 2 * (4 + 4 + 8);
/// Temporary bytes of any build, outside of the workspace: the last entries of offsets and lengths, which are one longer than lists of
/// nodes.
pub(crate) const TEMP_BYTES: u64 = 64;

/// Returns an upper bound of the workspace of a build.
pub(crate) fn workspace_bytes(num_points: usize, dims: usize, leaf_points: u32, depth: u32) -> u64 {
    let first_levels = first_round_levels(num_points, dims, leaf_points, depth);
    let first = bytes_of(|layout| FirstRound::plan(layout, num_points, first_levels));
    let max_levels = MAX_ROUND_LEVELS.min(u64::BITS / dims as u32).min(depth - first_levels);
    let later = |by_segment: bool| match max_levels {
        0 => 0,
        // All points, at most.
        _ => bytes_of(|layout| LaterRound::plan(layout, num_points, max_levels, by_segment)),
    };
    let order = bytes_of(|layout| LeafOrder::plan(layout, num_points, leaf_points));
    first.max(later(false)).max(later(true)).max(order)
}

/// Returns the number of levels of the first round: the levels that evenly spread points need, one more, and the levels that the passes of
/// the sort cover anyway.
pub(super) fn first_round_levels(num_points: usize, dims: usize, leaf_points: u32, depth: u32) -> u32 {
    let even = (num_points / leaf_points as usize).max(1).ilog2().div_ceil(dims as u32) + 1;
    let bits = (even * dims as u32).next_multiple_of(RADIX_BITS).min(MAX_CODE_BITS);
    (bits / dims as u32).min(depth)
}

/// Returns the number of levels of a later round that sorts all its points together: the levels that points spread evenly on a line need,
/// two more, and the levels that the passes of the sort cover anyway.
pub(super) fn later_round_levels(
    points_per_root: usize,
    root_bits: u32,
    dims: usize,
    leaf_points: u32,
) -> u32 {
    let even = (points_per_root / leaf_points as usize).max(1).ilog2() + 3;
    let bits = root_bits + (even * dims as u32).min(MAX_CODE_BITS);
    (bits.next_multiple_of(RADIX_BITS) - root_bits).min(MAX_CODE_BITS) / dims as u32
}

/// Temporary memory of a round of either kind.
pub(super) struct Round<K> {
    /// Double buffers of the sort.
    pub(super) keys: [Region<K>; 2],
    pub(super) ids: [Region<u32>; 2],
    /// The number of nodes that split, by level and warp.
    pub(super) counts: Region<u32>,
    pub(super) scan: Scan,
    /// Where each level begins in the list of nodes that split.
    pub(super) rows: Region<u32>,
}

impl<K: RadixKey> Round<K> {
    pub(super) fn plan(layout: &mut Layout, len: usize, num_ids: [usize; 2], num_levels: u32) -> Self {
        let num_rows = num_levels as usize + 1;
        let num_counts = num_rows * len.div_ceil(QUADTREE_WARP_POINTS) + 1;
        Self {
            keys: [layout.reserve(len), layout.reserve(len)],
            ids: num_ids.map(|len| layout.reserve(len)),
            counts: layout.reserve(num_counts),
            scan: Scan::plan::<u32, Decoupled>(layout, num_counts),
            rows: layout.reserve(num_rows + 1),
        }
    }
}

/// Temporary memory of the first round.
pub(super) struct FirstRound {
    pub(super) round: Round<u32>,
    pub(super) sort: RadixSort,
    /// The number, the first point and the offset of the only root.
    pub(super) zeros: Region<u64>,
}

impl FirstRound {
    pub(super) fn plan(layout: &mut Layout, num_points: usize, num_levels: u32) -> Self {
        // The ids of the tree are one of the two buffers of ids.
        let round = Round::plan(layout, num_points, [0, num_points], num_levels);
        let [sort] = RadixSort::plan(layout, num_points, [Shape::of::<u32, u32>(num_points)]);
        Self { round, sort, zeros: layout.reserve(1) }
    }
}

/// Temporary memory of a later round.
pub(super) struct LaterRound {
    pub(super) round: Round<u64>,
    pub(super) sort: LaterSort,
}

/// The sort of a later round: one segment per root, or all points together.
pub(super) enum LaterSort {
    Segments(SegmentLists<u64, u32>),
    All(RadixSort),
}

impl LaterRound {
    pub(super) fn plan(layout: &mut Layout, len: usize, num_levels: u32, by_segment: bool) -> Self {
        let round = Round::plan(layout, len, [len, len], num_levels);
        let sort = if by_segment {
            LaterSort::Segments(SegmentLists::plan(layout, [len / (SEGMENT_WARP_ITEMS + 1), 0], 0))
        } else {
            let [sort] = RadixSort::plan(layout, len, [Shape::of::<u64, u32>(len)]);
            LaterSort::All(sort)
        };
        Self { round, sort }
    }
}

/// Temporary memory of the sort of points within leaves.
pub(super) struct LeafOrder {
    pub(super) ids: Region<u32>,
    /// Ranges of the leaves that are sorted.
    pub(super) offsets: Region<u64>,
    /// Most leaves that are sorted as short segments, and as long ones.
    pub(super) max_listed: [usize; 2],
    pub(super) listed: SegmentLists<u32, NoValue>,
}

impl LeafOrder {
    pub(super) fn plan(layout: &mut Layout, num_points: usize, leaf_points: u32) -> Self {
        let max_listed = [QUADTREE_COUNTED_POINTS as usize, SEGMENT_SHORT_ITEMS]
            .map(|from| if leaf_points as usize > from { num_points / (from + 1) } else { 0 });
        let ids = layout.reserve(num_points);
        let offsets = layout.reserve(2 * (max_listed[0] + max_listed[1]).max(1));
        let num_spilled = if leaf_points as usize > SEGMENT_TILE_ITEMS { num_points } else { 0 };
        Self { ids, offsets, max_listed, listed: SegmentLists::plan(layout, max_listed, num_spilled) }
    }
}

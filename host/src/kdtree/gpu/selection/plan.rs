//! The scratch memory of a build by selection.

use super::round::{RoundPlan, rounds};
use crate::device::{Layout, Region};
use crate::kdtree::options::SplitRule;
use kauri_kernels::kdtree::selection::COUNTS;
use kauri_kernels::kdtree::selection::subtrees::max_levels;
use kauri_kernels::policy::SELECTION;
use kauri_kernels::query::buckets::{self, boxes_len};
use kauri_kernels::query::left_balanced::{full_tree, num_levels};
use kauri_kernels::thread::coord::Coord;

/// The scratch memory of a build.
pub(crate) struct Selection<C: Coord> {
    pub(super) dims: usize,
    /// The rounds that split the top levels. Blocks finish the subtrees below the top levels.
    pub(super) rounds: Vec<RoundPlan>,
    /// Number of top levels.
    pub(super) num_top: u32,
    /// The points after every second round; after the others they are in the memory of the nodes. A build in place has no coordinates here.
    pub(super) coords: Region<C>,
    /// The ids of these points. A build in place also uses them for one word of each point at the end.
    pub(super) ids: Region<u32>,
    pub(super) small: SmallArrays<C>,
    pub(super) in_place: bool,
    /// The layout of the small arrays in the memory of the boxes, for a build in place whose boxes are large enough.
    pub(super) layout_in_boxes: Option<Layout>,
}

/// The arrays that are small in comparison with the points.
pub(super) struct SmallArrays<C: Coord> {
    /// The nodes of the levels that have been split.
    pub(super) top_coords: Region<C>,
    pub(super) top_ids: Region<u32>,
    /// The cells of the subtrees below the top levels, if nodes split on the widest axis.
    pub(super) cells: Region<C>,
    /// Positions of undecided points, and of those in the bins of pivots.
    pub(super) undecided: Region<u32>,
    pub(super) in_bin: Region<u32>,
    /// The ends of the bins, and the points in each.
    pub(super) ends: Region<C::Ranked>,
    pub(super) bins: Region<u32>,
    /// Counters of all nodes of the top levels and the level below.
    pub(super) counts: Region<u32>,
}

impl<C: Coord> SmallArrays<C> {
    fn plan(layout: &mut Layout, rounds: &[RoundPlan], num_top: u32, dims: usize, rule: SplitRule) -> Self {
        let most = |len: fn(&RoundPlan) -> usize| rounds.iter().map(len).max().unwrap_or(0);
        let top = full_tree(num_top) as usize;
        let num_cells = if rule == SplitRule::Widest { 1 << num_top } else { 0 };
        Self {
            top_coords: layout.reserve(top * dims),
            top_ids: layout.reserve(top),
            cells: layout.reserve(num_cells * 2 * dims),
            undecided: layout.reserve(most(RoundPlan::num_undecided)),
            in_bin: layout.reserve(most(RoundPlan::num_in_bin)),
            ends: layout.reserve(most(|round| round.num_bins() + round.num_nodes())),
            bins: layout.reserve(most(RoundPlan::num_bins)),
            counts: layout.reserve(full_tree(num_top + 1) as usize * COUNTS),
        }
    }
}

impl<C: Coord> Selection<C> {
    pub(crate) fn plan(
        layout: &mut Layout,
        num_points: usize,
        dims: usize,
        rule: SplitRule,
        in_place: bool,
    ) -> Self {
        let n = num_points as u32;
        let num_top = num_levels(n).saturating_sub(max_levels::<C>());
        // The widest axis of a cell is known when the pivots above are. A build in place has no memory for many undecided points.
        let is_level_by_level = in_place || rule == SplitRule::Widest;
        let rounds = rounds::<C>(n, num_top, if is_level_by_level { 1 } else { SELECTION.levels });
        // Without top levels the points are never moved to scratch memory.
        let num_moved = if num_top > 0 { num_points } else { 0 };
        let coords = layout.reserve(if in_place { 0 } else { num_moved * dims });
        let ids = layout.reserve(if in_place { num_points } else { num_moved });
        let mut in_boxes = Layout::new();
        let mut small = SmallArrays::plan(&mut in_boxes, &rounds, num_top, dims, rule);
        let fits = in_boxes.bytes() <= (boxes_len(buckets::levels(n), dims) * size_of::<C>()) as u64;
        if !(in_place && fits) {
            small = SmallArrays::plan(layout, &rounds, num_top, dims, rule);
        }
        let layout_in_boxes = (in_place && fits).then_some(in_boxes);
        Self { dims, rounds, num_top, coords, ids, small, in_place, layout_in_boxes }
    }
}

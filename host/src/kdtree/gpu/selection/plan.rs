//! The scratch memory of a build by selection.

use super::bracket::{Stage, stages};
use crate::device::{Layout, Region};
use crate::kdtree::options::SplitRule;
use kauri_kernels::kdtree::selection::COUNTS;
use kauri_kernels::kdtree::selection::subtrees::max_levels;
use kauri_kernels::query::buckets::{self, boxes_len};
use kauri_kernels::query::left_balanced::{full_tree, num_levels, subtree_size};
use kauri_kernels::thread::coord::Coord;

/// The scratch memory of a build.
pub(crate) struct Selection<C: Coord> {
    pub(super) dims: usize,
    /// The stages of each top level. Blocks finish the subtrees below the top levels in shared memory.
    pub(super) levels: Vec<Vec<Stage>>,
    /// The points on every second level; on the other levels they are in the memory of the nodes. A build in place has no coordinates here.
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
    /// Positions of the points inside brackets. Stages alternate between the two lists.
    pub(super) inside: [Region<u32>; 2],
    pub(super) brackets: Region<C::Ranked>,
    /// Counters of all runs of all levels.
    pub(super) counts: Region<u32>,
}

impl<C: Coord> SmallArrays<C> {
    fn plan(layout: &mut Layout, levels: &[Vec<Stage>], dims: usize, rule: SplitRule) -> Self {
        let list_len = |parity: usize| {
            let runs = levels.iter().enumerate().map(|(level, stages)| (1 << level, stages));
            let of_level = |(runs, stages): (usize, &Vec<Stage>)| {
                stages.iter().skip(parity).step_by(2).map(|stage| runs * stage.capacity).max().unwrap_or(0)
            };
            runs.map(of_level).max().unwrap_or(0)
        };
        let num_top = levels.len() as u32;
        let top = full_tree(num_top) as usize;
        let num_cells = if rule == SplitRule::Widest { 1 << num_top } else { 0 };
        Self {
            top_coords: layout.reserve(top * dims),
            top_ids: layout.reserve(top),
            cells: layout.reserve(num_cells * 2 * dims),
            inside: [layout.reserve(list_len(0)), layout.reserve(list_len(1))],
            brackets: layout.reserve(2 * top.div_ceil(2)),
            counts: layout.reserve(top * COUNTS),
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
        let levels: Vec<_> = (0..num_top).map(|level| stages(subtree_size(full_tree(level), n))).collect();
        // Without top levels the points are never moved to scratch memory.
        let num_moved = if num_top > 0 { num_points } else { 0 };
        let coords = layout.reserve(if in_place { 0 } else { num_moved * dims });
        let ids = layout.reserve(if in_place { num_points } else { num_moved });
        let mut in_boxes = Layout::new();
        let mut small = SmallArrays::plan(&mut in_boxes, &levels, dims, rule);
        let fits = in_boxes.bytes() <= (boxes_len(buckets::levels(n), dims) * size_of::<C>()) as u64;
        if !(in_place && fits) {
            small = SmallArrays::plan(layout, &levels, dims, rule);
        }
        let layout_in_boxes = (in_place && fits).then_some(in_boxes);
        Self { dims, levels, coords, ids, small, in_place, layout_in_boxes }
    }
}

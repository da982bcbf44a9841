//! Build by selection and partition: a round splits several levels in one pass over the points; then blocks finish short subtrees.
//!
//! The points of a subtree are a *run*. The *top levels* are those whose runs are too long for one block. `run` launches, for each round of
//! top levels, from the root down:
//!
//! | kernel | work | launched by |
//! |---|---|---|
//! | `kdtree_widest_axes` | chooses split axes, only for [`SplitRule::Widest`](crate::kdtree::SplitRule::Widest) | `write_widest_axes` |
//! | `kdtree_bracket` | samples a bracket around the pivot of each node of the round | `split` |
//! | `kdtree_split` | takes the points down to their new runs, or to lists of points inside a bracket; then, level by level, the points of these lists | `split` |
//! | `kdtree_settle` | finds the pivots of a level among the few points left | `split` |
//! | `kdtree_split_again` | splits the runs again whose brackets have missed a pivot | `split` |
//!
//! Then `kdtree_subtrees` finishes the remaining runs, and `kdtree_place_top` writes the nodes of the top levels (`finish`).
//! [`kauri_kernels::kdtree::selection`] describes the algorithm.
//!
//! In place, the passes move only ids, and the small arrays use the memory of the boxes if they fit.

mod in_place;
mod plan;
mod round;

use crate::device::Temp;
use crate::error::Result;
use crate::kdtree::gpu::{Algorithm, Build};
use crate::primitives::pairs::empty_view;
use cuda_std::mem::{Slice, SliceMut};
use in_place::permute_coordinates;
use kauri_kernels::kdtree::axes::kdtree_widest_axes;
use kauri_kernels::kdtree::selection::again::kdtree_split_again;
use kauri_kernels::kdtree::selection::bracket::kdtree_bracket;
use kauri_kernels::kdtree::selection::settle::kdtree_settle;
use kauri_kernels::kdtree::selection::split::{TILE, kdtree_split};
use kauri_kernels::kdtree::selection::subtrees::{kdtree_subtrees, num_blocks};
use kauri_kernels::kdtree::selection::top::kdtree_place_top;
use kauri_kernels::kdtree::selection::{PointsMut, Round};
use kauri_kernels::query::left_balanced::full_tree;
use kauri_kernels::thread::coord::Coord;
pub(crate) use plan::Selection;
use round::RoundPlan;

/// The points that a round reads. Without ids, point `i` has id `i`.
#[derive(Clone, Copy)]
struct Points<'a, C> {
    coords: Slice<'a, C>,
    ids: Slice<'a, u32>,
}

impl<C: Coord> Algorithm<C> for Selection<C> {
    fn is_in_place(&self) -> bool {
        self.in_place
    }

    unsafe fn run(&self, build: Build<'_, C>) -> Result<()> {
        let Build { temp, coords, nodes, boxes, .. } = build;
        // SAFETY: the plan has checked that the layout fits in the memory of the boxes.
        let in_boxes =
            self.layout_in_boxes.as_ref().map(|layout| unsafe { Temp::over(&temp.stream, boxes, layout) });
        let small = in_boxes.as_ref().unwrap_or(temp);
        let mut scratch = PointsMut { coords: temp.view(self.coords), ids: temp.view(self.ids) };
        let mut to_nodes = nodes;
        if self.in_place {
            (scratch.coords, to_nodes.coords) = (empty_view(), empty_view());
        }
        // No ids: the points are in the order of the input.
        let mut points = Points { coords, ids: no_ids() };
        // SAFETY: passed on to the caller. Rounds alternate between two outputs that do not overlap; the last one writes to `scratch`.
        unsafe {
            for (i, round) in self.rounds.iter().enumerate() {
                let to = if (self.rounds.len() - i) % 2 == 1 { scratch } else { to_nodes };
                self.write_widest_axes(build, small, round.first_level, empty_view())?;
                self.split(build, small, round, points, to)?;
                points.ids = to.ids.read_only();
                if !self.in_place {
                    points.coords = to.coords.read_only();
                }
            }
            self.finish(build, small, points, to_nodes)?;
            if self.in_place {
                permute_coordinates::<C>(&temp.stream, nodes, self.dims, temp.view(self.ids))?;
            }
        }
        Ok(())
    }
}

impl<C: Coord> Selection<C> {
    /// Writes the split axes of the nodes of a level, and their cells unless `cells` is empty. Does nothing if levels split on axes in turn.
    ///
    /// # Safety
    /// As [`run`](Algorithm::run). `small` holds the small arrays of the plan.
    unsafe fn write_widest_axes(
        &self,
        build: Build<'_, C>,
        small: &Temp<'_>,
        level: u32,
        cells: SliceMut<'_, C>,
    ) -> Result<()> {
        let Build { temp, splits, .. } = build;
        let Some(bounds) = splits.bounds else { return Ok(()) };
        let top_coords = small.view(self.small.top_coords).read_only();
        let args = (bounds, top_coords, self.dims as u32, full_tree(level), splits.axes, cells);
        // SAFETY: passed on to the caller.
        unsafe { temp.stream.launch_items::<kdtree_widest_axes<C>>(1 << level, args) }
    }

    /// Splits the levels of a round.
    ///
    /// # Safety
    /// As [`run`](Algorithm::run). `from` and `to` do not overlap. `small` holds the small arrays of the plan.
    unsafe fn split(
        &self,
        build: Build<'_, C>,
        small: &Temp<'_>,
        plan: &RoundPlan,
        from: Points<'_, C>,
        to: PointsMut<'_, C>,
    ) -> Result<()> {
        let stream = &build.temp.stream;
        let num_runs = plan.num_runs() as u64;
        let top = PointsMut { coords: small.view(self.small.top_coords), ids: small.view(self.small.top_ids) };
        let round = Round {
            coords: from.coords,
            ids: from.ids,
            by_id: u32::from(self.in_place),
            axes: build.splits.read_only(),
            first_node: full_tree(plan.first_level),
            num_levels: plan.num_levels,
            counts: small.view(self.small.counts),
            num_bins: plan.num_bins,
            ends: small.view(self.small.ends),
            bins: small.view(self.small.bins),
            undecided: small.view(self.small.undecided),
            capacity: plan.capacity,
            in_bin: small.view(self.small.in_bin),
            bin_capacity: plan.bin_capacity,
            to,
            top,
        };
        let num_tiles = |num_points: u32| (num_points as usize).div_ceil(TILE) as u32;
        // SAFETY: passed on to the caller; the plan has memory for every node of the round.
        unsafe {
            let args = (round, plan.log_samples, plan.gaps);
            match size_of::<C>() {
                4 => stream.launch::<kdtree_bracket<C, 8>>(num_runs, args)?,
                _ => stream.launch::<kdtree_bracket<C, 4>>(num_runs, args)?,
            }
            let tiles = num_tiles(plan.points);
            stream.launch::<kdtree_split<C>>(num_runs * u64::from(tiles), (round, 0, tiles))?;
            for depth in 0..plan.num_levels {
                let tiles = num_tiles(plan.capacity.get(depth));
                let num_nodes = num_runs << depth;
                stream.launch::<kdtree_split<C>>(num_nodes * u64::from(tiles), (round, depth + 1, tiles))?;
                stream.launch::<kdtree_settle<C>>(num_nodes, (round, depth))?;
            }
            stream.launch::<kdtree_split_again<C>>(num_runs, (round,))
        }
    }

    /// Finishes the subtrees below the top levels in shared memory, and writes the top nodes to their in-order ranks.
    ///
    /// # Safety
    /// As [`run`](Algorithm::run). All top levels have been split. `small` holds the small arrays of the plan.
    unsafe fn finish(
        &self,
        build: Build<'_, C>,
        small: &Temp<'_>,
        points: Points<'_, C>,
        nodes: PointsMut<'_, C>,
    ) -> Result<()> {
        let Build { temp, splits, .. } = build;
        let (dims, num_top) = (self.dims as u32, self.num_top);
        let cells = small.view(self.small.cells);
        let (coords, ids, first) = (points.coords, points.ids, full_tree(num_top));
        let args = (coords, ids, splits.read_only(), cells.read_only(), splits.axes, first, nodes);
        let num_points = (points.coords.len() / self.dims) as u32;
        let num_blocks = u64::from(num_blocks(num_points, num_top));
        // SAFETY: passed on to the caller.
        unsafe {
            self.write_widest_axes(build, small, num_top, cells)?;
            match (size_of::<C>(), splits.bounds) {
                (4, None) => temp.stream.launch::<kdtree_subtrees<C, 16, 0>>(num_blocks, args)?,
                (4, Some(_)) => temp.stream.launch::<kdtree_subtrees<C, 16, 8>>(num_blocks, args)?,
                (_, None) => temp.stream.launch::<kdtree_subtrees<C, 8, 0>>(num_blocks, args)?,
                (_, Some(_)) => temp.stream.launch::<kdtree_subtrees<C, 8, 4>>(num_blocks, args)?,
            }
            let (top_coords, top_ids) = (small.view(self.small.top_coords), small.view(self.small.top_ids));
            let args = (top_coords.read_only(), top_ids.read_only(), dims, nodes);
            temp.stream.launch_items::<kdtree_place_top<C>>(top_ids.len() as u64, args)
        }
    }
}

/// Returns an empty list of ids or positions, which stands for 0, 1, 2 and so on.
fn no_ids<'a>() -> Slice<'a, u32> {
    empty_view::<u32>().read_only()
}

#[cfg(all(test, feature = "sim"))]
mod tests {
    use super::*;

    /// Narrow brackets miss many pivots, and short lists overflow. Such runs are split again.
    #[test]
    fn brackets_that_miss() {
        use crate::device::{Buffer, Layout, SimOptions, Stream, Workspace};
        use crate::kdtree::SplitRule;
        use crate::kdtree::gpu::axes::SplitAxes;
        use crate::{Device, KdTree, KdTreeOptions};
        use kauri_kernels::kdtree::selection::PerLevel;
        use kauri_kernels::query::left_balanced::in_order_rank;
        let points: Vec<[f32; 2]> = (0..4500)
            .map(|i: u32| [(i.wrapping_mul(2_654_435_761) >> 20) as f32, (i * 7919 % 4500) as f32])
            .collect();
        let expected = KdTree::build(&Device::cpu(), &points, &KdTreeOptions::default()).unwrap();
        let device = Device::sim(SimOptions::default()).unwrap();
        let gpu = device.gpu().unwrap();
        let stream = Stream::new(gpu).unwrap();
        let coords = Buffer::from_slice(&stream, points.as_flattened(), "points").unwrap();
        let narrow = |round: &mut RoundPlan| round.num_bins = PerLevel::new(|_| 2);
        let short = |round: &mut RoundPlan| round.capacity = PerLevel::new(|_| 20);
        let short_bins = |round: &mut RoundPlan| round.bin_capacity = 1;
        for spoil in [narrow as fn(&mut RoundPlan), short, short_bins] {
            let mut layout = Layout::new();
            let mut selection =
                Selection::<f32>::plan(&mut layout, points.len(), 2, SplitRule::RoundRobin, false);
            selection.rounds.iter_mut().for_each(spoil);
            let mut workspace = Workspace::new(gpu);
            let temp = workspace.carve(&stream, &layout, "test").unwrap();
            let mut node_coords = Buffer::<f32>::uninitialized(gpu, 9000, "nodes").unwrap();
            let mut node_ids = Buffer::<u32>::uninitialized(gpu, 4500, "nodes").unwrap();
            let nodes = PointsMut { coords: node_coords.slice_mut(), ids: node_ids.slice_mut() };
            let (axes, varying) = (empty_view(), no_ids());
            let splits = SplitAxes { dims: 2, bounds: None, axes, varying };
            let (coords, boxes) = (coords.slice(), empty_view());
            let build = Build { temp: &temp, coords, nodes, splits, boxes };
            // SAFETY: buffers and workspace live until the ids have been copied.
            unsafe { selection.run(build).unwrap() };
            let in_order = node_ids.to_vec(&stream).unwrap();
            let ids: Vec<u32> = (0..4500).map(|s| in_order[in_order_rank(s, 4500) as usize]).collect();
            assert!(ids == expected.node_ids().unwrap());
        }
    }
}

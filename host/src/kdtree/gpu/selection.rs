//! Build by selection and partition: one pass over all points per level; then a block finishes each short subtree.
//!
//! The points of a subtree are a *run*. The *top levels* are those whose runs are too long for one block. `run` launches, for each top
//! level, from the root down:
//!
//! | kernel | work | launched by |
//! |---|---|---|
//! | `kdtree_widest_axes` | chooses split axes, only for [`SplitRule::Widest`](crate::kdtree::SplitRule::Widest) | `write_widest_axes` |
//! | `kdtree_bracket`, `kdtree_split` | sample a bracket around each pivot, and move the points outside of it to their side; a next *stage* repeats this inside of brackets with too many points to sort | `split_level` |
//! | `kdtree_settle` | sorts the points inside the bracket, which finds the pivot | `split_level` |
//!
//! Then `kdtree_subtrees` finishes each remaining run in the shared memory of a block, and `kdtree_place_top` writes the nodes of the top
//! levels (`finish`). [`kauri_kernels::kdtree::selection`] describes the algorithm.
//!
//! In place, the passes move only ids, and the small arrays use the memory of the boxes if they fit.

mod bracket;
mod in_place;
mod plan;

use crate::device::Temp;
use crate::error::Result;
use crate::kdtree::gpu::{Algorithm, Build};
use crate::primitives::pairs::empty_view;
use cuda_std::mem::{Slice, SliceMut};
use in_place::permute_coordinates;
use kauri_kernels::kdtree::axes::kdtree_widest_axes;
use kauri_kernels::kdtree::selection::bracket::kdtree_bracket;
use kauri_kernels::kdtree::selection::settle::kdtree_settle;
use kauri_kernels::kdtree::selection::split::{TILE, kdtree_split};
use kauri_kernels::kdtree::selection::subtrees::{kdtree_subtrees, num_blocks};
use kauri_kernels::kdtree::selection::top::kdtree_place_top;
use kauri_kernels::kdtree::selection::{COUNTS, LevelRuns, PointsMut};
use kauri_kernels::query::left_balanced::full_tree;
use kauri_kernels::thread::coord::Coord;
pub(crate) use plan::Selection;

/// The points that a level reads. Without ids, point `i` has id `i`.
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
        small.clear(self.small.counts)?;
        let mut scratch = PointsMut { coords: temp.view(self.coords), ids: temp.view(self.ids) };
        let mut to_nodes = nodes;
        if self.in_place {
            (scratch.coords, to_nodes.coords) = (empty_view(), empty_view());
        }
        let mut points = Points { coords, ids: build.ids };
        // SAFETY: passed on to the caller. Levels alternate between two outputs that do not overlap; the last level writes to `scratch`.
        unsafe {
            for level in 0..self.levels.len() {
                let to = if (self.levels.len() - level) % 2 == 1 { scratch } else { to_nodes };
                self.write_widest_axes(build, small, level as u32, empty_view())?;
                self.split_level(build, small, level, points, to)?;
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

    /// Splits every run of a level at its pivot.
    ///
    /// # Safety
    /// As [`run`](Algorithm::run). `from` and `to` do not overlap. `small` holds the small arrays of the plan.
    unsafe fn split_level(
        &self,
        build: Build<'_, C>,
        small: &Temp<'_>,
        level: usize,
        from: Points<'_, C>,
        to: PointsMut<'_, C>,
    ) -> Result<()> {
        let Build { temp, splits, .. } = build;
        let first_node = full_tree(level as u32);
        let level_runs = |stage: usize, positions, capacity| LevelRuns {
            coords: from.coords,
            ids: from.ids,
            by_id: u32::from(self.in_place),
            axes: splits.read_only(),
            first_node,
            stage: stage as u32,
            positions,
            capacity,
        };
        let stages = &self.levels[level];
        let num_runs = 1_u64 << level;
        let brackets = small.view(self.small.brackets);
        let inside = self.small.inside.map(|region| small.view(region));
        // SAFETY: passed on to the caller; the plan has counters for every run of every level.
        unsafe {
            let counts = small.view(self.small.counts).part(first_node as usize * COUNTS, COUNTS << level);
            let (mut positions, mut capacity) = (no_ids(), 0);
            for (i, stage) in stages.iter().enumerate() {
                let runs = level_runs(i, positions, capacity);
                let (num_samples, margin) = (stage.num_samples as u32, stage.margin as u32);
                let args = (runs, counts.read_only(), brackets, num_samples, margin);
                temp.stream.launch::<kdtree_bracket<C>>(num_runs, args)?;
                let (inside, inside_capacity) = (inside[i % 2], stage.capacity as u32);
                let tiles_per_run = stage.points.div_ceil(TILE);
                let args =
                    (runs, counts, brackets.read_only(), to, inside, inside_capacity, tiles_per_run as u32);
                temp.stream.launch::<kdtree_split<C>>(num_runs * tiles_per_run as u64, args)?;
                (positions, capacity) = (inside.read_only(), inside_capacity);
            }
            let runs = level_runs(stages.len(), positions, capacity);
            let top =
                PointsMut { coords: small.view(self.small.top_coords), ids: small.view(self.small.top_ids) };
            let args = (runs, counts, to, top);
            temp.stream.launch::<kdtree_settle<C>>(num_runs, args)
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
        let (dims, num_top) = (self.dims as u32, self.levels.len() as u32);
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

    /// Brackets of one point miss nearly every pivot, and a capacity of one position overflows. Such runs are split again.
    #[test]
    fn brackets_that_miss() {
        use crate::device::{Buffer, Layout, SimOptions, Stream, Workspace};
        use crate::kdtree::SplitRule;
        use crate::kdtree::gpu::axes::SplitAxes;
        use crate::{Device, KdTree, KdTreeOptions};
        use kauri_kernels::query::left_balanced::in_order_rank;
        let points: Vec<[f32; 2]> = (0..4500)
            .map(|i: u32| [(i.wrapping_mul(2_654_435_761) >> 20) as f32, (i * 7919 % 4500) as f32])
            .collect();
        let expected = KdTree::build(&Device::cpu(), &points, &KdTreeOptions::default()).unwrap();
        let device = Device::sim(SimOptions::default()).unwrap();
        let gpu = device.gpu().unwrap();
        let stream = Stream::new(gpu).unwrap();
        let coords = Buffer::from_slice(&stream, points.as_flattened(), "points").unwrap();
        for (margin, capacity) in [(0, 4500_usize), (20, 1), (1000, 4500)] {
            let mut layout = Layout::new();
            let mut selection =
                Selection::<f32>::plan(&mut layout, points.len(), 2, SplitRule::RoundRobin, false);
            let stages = selection.levels.iter_mut().flatten();
            stages.for_each(|stage| (stage.margin, stage.capacity) = (margin, capacity.min(stage.capacity)));
            let mut workspace = Workspace::new(gpu);
            let temp = workspace.carve(&stream, &layout, "test").unwrap();
            let mut node_coords = Buffer::<f32>::uninitialized(gpu, 9000, "nodes").unwrap();
            let mut node_ids = Buffer::<u32>::uninitialized(gpu, 4500, "nodes").unwrap();
            let nodes = PointsMut { coords: node_coords.slice_mut(), ids: node_ids.slice_mut() };
            let (axes, varying) = (empty_view(), no_ids());
            let splits = SplitAxes { dims: 2, bounds: None, axes, varying };
            let (coords, boxes) = (coords.slice(), empty_view());
            let build = Build { temp: &temp, coords, ids: no_ids(), nodes, splits, boxes };
            // SAFETY: buffers and workspace live until the ids have been copied.
            unsafe { selection.run(build).unwrap() };
            let in_order = node_ids.to_vec(&stream).unwrap();
            let ids: Vec<u32> = (0..4500).map(|s| in_order[in_order_rank(s, 4500) as usize]).collect();
            assert!(ids == expected.node_ids().unwrap(), "{margin} {capacity}");
        }
    }

    /// Subtrees of the lowest top level that have all points, half of them, and a number in between; short ones with and without a neighbor.
    #[test]
    fn subtrees_of_all_sizes() {
        use crate::device::SimOptions;
        use crate::kdtree::SplitRule;
        use crate::{Device, KdTree, KdTreeOptions};
        let (cpu, sim) = (Device::cpu(), Device::sim(SimOptions::default()).unwrap());
        for n in [1, 2, 1000, 2047, 2048, 2100, 3071, 3500, 4095, 5000, 6143] {
            let points: Vec<[f32; 2]> = (0..n)
                .map(|i: u32| [(i.wrapping_mul(2_654_435_761) >> 20) as f32, (i * 7919 % 4500) as f32])
                .collect();
            for rule in [SplitRule::RoundRobin, SplitRule::Widest] {
                let options = KdTreeOptions::default().split(rule);
                let tree = KdTree::build(&sim, &points, &options).unwrap();
                tree.verify().unwrap();
                let expected = KdTree::build(&cpu, &points, &options).unwrap();
                assert!(tree.node_ids().unwrap() == expected.node_ids().unwrap(), "{n} {rule:?}");
            }
        }
    }
}

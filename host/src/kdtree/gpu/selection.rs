//! Builder by selection and partition: a level is one pass over all points, and short subtrees are finished by a block each. In
//! place only ids are passed on, and what else is needed on the way lies where boxes will.

use crate::device::{Layout, Region, Stream, Temp};
use crate::error::Result;
use crate::kdtree::SplitRule;
use crate::kdtree::gpu::Splits;
use crate::primitives::pairs::empty_view;
use crate::query::gpu::NodesMut;
use cuda_std::mem::{Slice, SliceMut};
use kauri_kernels::kdtree::axes::{kdtree_axes_of_levels, kdtree_widest_axes};
use kauri_kernels::kdtree::selection::bracket::kdtree_bracket;
use kauri_kernels::kdtree::selection::in_place::{kdtree_gather_word, kdtree_write_word};
use kauri_kernels::kdtree::selection::settle::{MAX_SORTED, kdtree_settle};
use kauri_kernels::kdtree::selection::split::{TILE, kdtree_split};
use kauri_kernels::kdtree::selection::subtrees::kdtree_subtrees;
use kauri_kernels::kdtree::selection::top::kdtree_place_top;
use kauri_kernels::kdtree::selection::{COUNTS, MAX_STAGES};
use kauri_kernels::policy::SELECTION;
use kauri_kernels::query::buckets::{self, boxes_len};
use kauri_kernels::query::left_balanced::{full_tree, num_levels, subtree_size};
use kauri_kernels::thread::coord::Coord;

const _: () = assert!(MAX_SORTED.is_power_of_two(), "a bitonic sort pads what it sorts");
const _: () = assert!(
    SELECTION.samples[0] <= SELECTION.max_samples
        && SELECTION.samples[1] <= SELECTION.max_samples
        && SELECTION.samples[0].is_power_of_two()
        && SELECTION.samples[1].is_power_of_two(),
    "a bitonic sort sorts the samples"
);

/// One bracket of the pivots of a level, and the split by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stage {
    /// Most points of a run that are left to be split.
    points: usize,
    num_samples: usize,
    /// Samples between the pivot and the ends of its bracket.
    margin: usize,
    /// Room for positions of points inside, a run.
    capacity: usize,
}

impl Stage {
    /// The bracket of a pivot among so many points.
    fn of(points: usize) -> Self {
        let class = usize::from(points > SELECTION.few);
        let (num_samples, deviations) = (SELECTION.samples[class], f64::from(SELECTION.deviations[class]));
        // A rank among samples has a deviation of half a square root of their number, or less.
        let deviation = (num_samples as f64).sqrt() / 2.0;
        let margin = (deviations * deviation).ceil() as usize + 1;
        // In units of points a sample: inside are as many as samples between the ends, give or take the square root of that.
        let width = (2 * margin + 1) as f64;
        let most = width + deviations * width.sqrt();
        let capacity = (points as f64 * most / num_samples as f64).ceil() as usize;
        Self { points, num_samples, margin, capacity: capacity.min(points) }
    }
}

/// Temporary memory of a build.
pub(crate) struct Selection<C: Coord> {
    dims: usize,
    /// The stages of each level whose subtrees are not short.
    levels: Vec<Vec<Stage>>,
    /// The points on every second level; on the others they are where the nodes will be. In place there are no coordinates.
    coords: Region<C>,
    ids: Region<u32>,
    small: Small<C>,
    in_place: Option<InPlace>,
}

/// The arrays that are small beside the points.
struct Small<C: Coord> {
    /// The nodes of the levels so far.
    top_coords: Region<C>,
    top_ids: Region<u32>,
    /// Their axes, if these go by levels.
    axes: Region<u8>,
    /// The cells of the short subtrees, if axes go by them.
    cells: Region<C>,
    /// Positions of points inside brackets, of two stages.
    inside: [Region<u32>; 2],
    brackets: Region<C::Ranked>,
    /// Counters of all runs of all levels.
    counts: Region<u32>,
}

/// A build in the memory of the tree.
struct InPlace {
    /// The plan of the small arrays, if the memory of boxes is enough for them.
    in_boxes: Option<Layout>,
}

/// Points on their way down.
#[derive(Clone, Copy)]
struct Points<'a, C> {
    coords: Slice<'a, C>,
    ids: Slice<'a, u32>,
}

impl<C: Coord> Small<C> {
    fn plan(layout: &mut Layout, levels: &[Vec<Stage>], dims: usize, rule: SplitRule) -> Self {
        // Stage after stage into one list or the other.
        let room = |which: usize| {
            let runs = levels.iter().enumerate().map(|(level, stages)| (1 << level, stages));
            let of_level = |(runs, stages): (usize, &Vec<Stage>)| {
                stages.iter().skip(which).step_by(2).map(|stage| runs * stage.capacity).max().unwrap_or(0)
            };
            runs.map(of_level).max().unwrap_or(0)
        };
        let num_top = levels.len() as u32;
        let top = full_tree(num_top) as usize;
        let (num_axes, num_cells) = match rule {
            SplitRule::RoundRobin => (top, 0),
            SplitRule::Widest => (0, 1 << num_top),
        };
        Self {
            top_coords: layout.reserve(top * dims),
            top_ids: layout.reserve(top),
            axes: layout.reserve(num_axes),
            cells: layout.reserve(num_cells * 2 * dims),
            inside: [layout.reserve(room(0)), layout.reserve(room(1))],
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
        let num_top = num_levels(n).saturating_sub(subtree_levels::<C>(dims));
        let levels: Vec<_> = (0..num_top).map(|level| stages(subtree_size(full_tree(level), n))).collect();
        // A single level goes from the input to this room.
        let moved = if num_top > 0 { num_points } else { 0 };
        let coords = layout.reserve(if in_place { 0 } else { moved * dims });
        // In place it is room for a word of each point at last.
        let ids = layout.reserve(if in_place { num_points } else { moved });
        let mut in_boxes = Layout::new();
        let mut small = Small::plan(&mut in_boxes, &levels, dims, rule);
        let fits = in_boxes.bytes() <= (boxes_len(buckets::levels(n), dims) * size_of::<C>()) as u64;
        if !(in_place && fits) {
            small = Small::plan(layout, &levels, dims, rule);
        }
        let in_place = in_place.then_some(InPlace { in_boxes: fits.then_some(in_boxes) });
        Self { dims, levels, coords, ids, small, in_place }
    }

    /// True if the points have to be where the nodes will be.
    pub(crate) fn is_in_place(&self) -> bool {
        self.in_place.is_some()
    }

    /// Builds the tree over as many points as planned, in place over those that are there; `boxes` is memory for boxes, with nothing
    /// in it.
    ///
    /// # Safety
    /// Points and nodes are apart, unless it is done in place, and used by nothing else until the stream has done the work.
    pub(crate) unsafe fn run(
        &self,
        stream: &Stream,
        temp: &Temp<'_>,
        coords: Slice<'_, C>,
        nodes: NodesMut<'_, C>,
        splits: Splits<'_, C>,
        boxes: SliceMut<'_, C>,
    ) -> Result<()> {
        let in_boxes = self.in_place.as_ref().and_then(|in_place| in_place.in_boxes.as_ref());
        // SAFETY: the memory of boxes is as large as was planned with.
        let in_boxes = in_boxes.map(|layout| unsafe { Temp::over(boxes, layout) });
        let small = in_boxes.as_ref().unwrap_or(temp);
        small.clear(stream, self.small.counts)?;
        let (mut room, mut to_nodes) =
            (NodesMut { coords: temp.view(self.coords), ids: temp.view(self.ids) }, nodes);
        if self.is_in_place() {
            (room.coords, to_nodes.coords) = (empty_view(), empty_view());
        }
        let axes = match splits.corners {
            Some(_) => splits.axes,
            None => small.view(self.small.axes),
        };
        // Without ids points are where they were in the input.
        let mut points = Points { coords, ids: no_ids() };
        // SAFETY: passed on to the caller; the two rooms are apart, and the last level writes to this one.
        unsafe {
            if splits.corners.is_none() {
                stream.launch_items::<kdtree_axes_of_levels>(axes.len() as u64, (axes, self.dims as u32))?;
            }
            for level in 0..self.levels.len() {
                let to = if (self.levels.len() - level) % 2 == 1 { room } else { to_nodes };
                self.widest_axes(stream, small, level as u32, splits, empty_view())?;
                self.split_level(stream, small, level, axes.read_only(), points, to)?;
                points.ids = to.ids.read_only();
                if !self.is_in_place() {
                    points.coords = to.coords.read_only();
                }
            }
            self.finish(stream, small, points, to_nodes, splits)?;
            if self.is_in_place() {
                bring_coordinates::<C>(stream, nodes, self.dims, temp.view(self.ids))?;
            }
        }
        Ok(())
    }

    /// Finds the axes of the nodes of a level, if they are the widest of cells, and writes these if there is room.
    ///
    /// # Safety
    /// As [`run`](Self::run); `small` has the plan's small arrays.
    unsafe fn widest_axes(
        &self,
        stream: &Stream,
        small: &Temp<'_>,
        level: u32,
        splits: Splits<'_, C>,
        cells: SliceMut<'_, C>,
    ) -> Result<()> {
        let Some(corners) = splits.corners else { return Ok(()) };
        let top_coords = small.view(self.small.top_coords).read_only();
        let args = (corners, top_coords, self.dims as u32, full_tree(level), splits.axes, cells);
        // SAFETY: passed on to the caller.
        unsafe { stream.launch_items::<kdtree_widest_axes<C>>(1 << level, args) }
    }

    /// Splits every run of a level at its pivot.
    ///
    /// # Safety
    /// As [`run`](Self::run), with `from` apart from `to`; `small` has the plan's small arrays.
    unsafe fn split_level(
        &self,
        stream: &Stream,
        small: &Temp<'_>,
        level: usize,
        axes: Slice<'_, u8>,
        from: Points<'_, C>,
        to: NodesMut<'_, C>,
    ) -> Result<()> {
        let (dims, first, by_id) = (self.dims as u32, full_tree(level as u32), u32::from(self.is_in_place()));
        let stages = &self.levels[level];
        let num_runs = 1_u64 << level;
        let brackets = small.view(self.small.brackets);
        let inside = self.small.inside.map(|region| small.view(region));
        // SAFETY: passed on to the caller; there are counters for every run of every level.
        unsafe {
            let counts = small.view(self.small.counts).part(first as usize * COUNTS, COUNTS << level);
            let (mut positions, mut capacity) = (no_ids(), 0);
            for (i, stage) in stages.iter().enumerate() {
                let args = (
                    from.coords,
                    from.ids,
                    by_id,
                    dims,
                    axes,
                    first,
                    positions,
                    counts.read_only(),
                    i as u32,
                    capacity,
                    brackets,
                    stage.num_samples as u32,
                    stage.margin as u32,
                );
                stream.launch::<kdtree_bracket<C>>(num_runs, args)?;
                let tiles_per_run = stage.points.div_ceil(TILE);
                let args = (
                    from.coords,
                    from.ids,
                    dims,
                    axes,
                    first,
                    positions,
                    counts,
                    i as u32,
                    capacity,
                    brackets.read_only(),
                    to.coords,
                    to.ids,
                    inside[i % 2],
                    stage.capacity as u32,
                    tiles_per_run as u32,
                );
                stream.launch::<kdtree_split<C>>(num_runs * tiles_per_run as u64, args)?;
                (positions, capacity) = (inside[i % 2].read_only(), stage.capacity as u32);
            }
            let (top_coords, top_ids) = (small.view(self.small.top_coords), small.view(self.small.top_ids));
            let args = (
                from.coords,
                from.ids,
                dims,
                axes,
                first,
                positions,
                counts,
                stages.len() as u32,
                capacity,
                to.coords,
                to.ids,
                top_coords,
                top_ids,
            );
            stream.launch::<kdtree_settle<C>>(num_runs, args)
        }
    }

    /// Finishes the short subtrees, and puts the nodes above them to their places.
    ///
    /// # Safety
    /// As [`run`](Self::run), when all levels have been split; `small` has the plan's small arrays.
    unsafe fn finish(
        &self,
        stream: &Stream,
        small: &Temp<'_>,
        points: Points<'_, C>,
        nodes: NodesMut<'_, C>,
        splits: Splits<'_, C>,
    ) -> Result<()> {
        let (dims, num_top) = (self.dims as u32, self.levels.len() as u32);
        let cells = small.view(self.small.cells);
        let (coords, ids, first, axes) = (points.coords, points.ids, full_tree(num_top), splits.axes);
        let args = (coords, ids, dims, cells.read_only(), axes, first, nodes.coords, nodes.ids);
        let num_subtrees = 1_u64 << num_top;
        // SAFETY: passed on to the caller.
        unsafe {
            self.widest_axes(stream, small, num_top, splits, cells)?;
            match (size_of::<C>(), self.dims, splits.corners) {
                (4, ..=4, None) => stream.launch::<kdtree_subtrees<C, 4, 8, 9, 0>>(num_subtrees, args)?,
                (4, ..=4, Some(_)) => stream.launch::<kdtree_subtrees<C, 4, 8, 9, 8>>(num_subtrees, args)?,
                (_, _, None) => stream.launch::<kdtree_subtrees<C, 8, 4, 5, 0>>(num_subtrees, args)?,
                (_, _, Some(_)) => stream.launch::<kdtree_subtrees<C, 8, 4, 5, 4>>(num_subtrees, args)?,
            }
            let (top_coords, top_ids) = (small.view(self.small.top_coords), small.view(self.small.top_ids));
            let args = (top_coords.read_only(), top_ids.read_only(), dims, nodes.coords, nodes.ids);
            stream.launch_items::<kdtree_place_top<C>>(top_ids.len() as u64, args)
        }
    }
}

/// Brings coordinates in the order of ids to these, with room for a word of each.
///
/// # Safety
/// Ids are those of the points, `words` are as many and apart from the nodes, and nothing else uses either until the stream has done the
/// work.
unsafe fn bring_coordinates<C: Coord>(
    stream: &Stream,
    nodes: NodesMut<'_, C>,
    dims: usize,
    words: SliceMut<'_, u32>,
) -> Result<()> {
    let words_per_coord = size_of::<C>() / size_of::<u32>();
    let num_words = (dims * words_per_coord) as u32;
    let num_points = nodes.ids.len() as u64;
    // SAFETY: the same memory as words, which coordinates are made of; the rest is passed on to the caller.
    unsafe {
        let points =
            SliceMut::from_raw_parts(nodes.coords.as_ptr().cast(), nodes.coords.len() * words_per_coord);
        for word in 0..num_words {
            let args = (points.read_only(), nodes.ids.read_only(), num_words, word, words);
            stream.launch_items::<kdtree_gather_word>(num_points, args)?;
            let args = (words.read_only(), num_words, word, points);
            stream.launch_items::<kdtree_write_word>(num_points, args)?;
        }
    }
    Ok(())
}

/// The stages that leave few enough points of a run of so many.
fn stages(num_points: u32) -> Vec<Stage> {
    let mut stages = Vec::new();
    let mut points = num_points as usize;
    while points > MAX_SORTED && stages.len() < MAX_STAGES {
        let stage = Stage::of(points);
        points = stage.capacity;
        stages.push(stage);
    }
    stages
}

/// Levels of a subtree that a block finishes.
fn subtree_levels<C>(dims: usize) -> u32 {
    if size_of::<C>() == 4 && dims <= 4 { 11 } else { 10 }
}

/// Points in the order of their ids, or all of a run.
fn no_ids<'a>() -> Slice<'a, u32> {
    empty_view::<u32>().read_only()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Brackets as narrow as a point miss nearly every pivot, and no room is too little for what is inside: such runs are split
    /// anew.
    #[cfg(feature = "sim")]
    #[test]
    fn brackets_that_miss() {
        use crate::device::{Buffer, SimOptions, Workspace};
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
        for (margin, capacity) in [(0, 4500), (20, 1), (1000, 4500)] {
            let mut layout = Layout::new();
            let mut selection =
                Selection::<f32>::plan(&mut layout, points.len(), 2, SplitRule::RoundRobin, false);
            let stages = selection.levels.iter_mut().flatten();
            stages.for_each(|stage| (stage.margin, stage.capacity) = (margin, capacity.min(stage.capacity)));
            let mut workspace = Workspace::new(gpu);
            let temp = workspace.carve(&stream, &layout, "test").unwrap();
            let mut node_coords = Buffer::<f32>::uninitialized(gpu, 9000, "nodes").unwrap();
            let mut node_ids = Buffer::<u32>::uninitialized(gpu, 4500, "nodes").unwrap();
            let nodes = NodesMut { coords: node_coords.slice_mut(), ids: node_ids.slice_mut() };
            // SAFETY: buffers and workspace live until the ids have been copied.
            let splits = Splits { corners: None, axes: empty_view() };
            // SAFETY: buffers and workspace live until the ids have been copied.
            unsafe { selection.run(&stream, &temp, coords.slice(), nodes, splits, empty_view()).unwrap() };
            let in_order = node_ids.to_vec(&stream).unwrap();
            let ids: Vec<u32> = (0..4500).map(|s| in_order[in_order_rank(s, 4500) as usize]).collect();
            assert!(ids == expected.node_ids().unwrap(), "{margin} {capacity}");
        }
    }

    #[test]
    fn a_few_stages_are_enough_for_any_number() {
        for (points, num_stages) in [(1000, 0), (2048, 0), (2049, 1), (100_000, 3), (u32::MAX, 9)] {
            let stages = stages(points);
            assert!(stages.len() <= num_stages, "{points}: {stages:?}");
            let last = stages.last().map_or(points as usize, |stage| stage.capacity);
            assert!(last <= MAX_SORTED, "{points}: {stages:?}");
        }
    }
}

//! Level-by-level build (Gluck 2014).

use crate::device::{Buffer, Layout, Region, Temp, Workspace};
use crate::error::Result;
use crate::primitives::generate::iota_on;
use crate::primitives::pairs::empty_view;
use crate::primitives::planned::{bytes_of, carve};
use crate::primitives::scan::{Scan, ScanKind};
use crate::primitives::select::{Select, Selected};
use crate::quadtree::gpu::build::{Build, NodeBuffers};
use crate::quadtree::node::check_num_nodes;
use crate::quadtree::options::levels::LevelsOptions;
use cuda_std::mem::{Slice, SliceMut};
use kauri_kernels::primitives::select::primitives_select_flagged;
use kauri_kernels::quadtree::codes::children::NodesMut;
use kauri_kernels::quadtree::codes::quadtree_codes;
use kauri_kernels::quadtree::levels::blocks::quadtree_level_by_block;
use kauri_kernels::quadtree::levels::children::{ChildWriter, LevelSplit, quadtree_prune};
use kauri_kernels::quadtree::levels::points::{LevelPoints, PointTargets};
use kauri_kernels::quadtree::levels::threads::quadtree_level_by_thread;
use kauri_kernels::quadtree::levels::tiles::{
    TILE_POINTS, Tiles, counters, quadtree_count_tiles, quadtree_level_children, quadtree_level_codes,
    quadtree_level_count, quadtree_level_move, quadtree_tile_parents, quadtree_tiles,
};
use kauri_kernels::thread::coord::Coord;
use kauri_kernels::thread::operator::Sum;
use kauri_kernels::thread::words::Bits128;
use kauri_kernels::warp::look_back::Decoupled;
use std::ops::Range;

/// Evaluates `$body` with the constant `$T` = `$threads`.
macro_rules! with_threads {
    ($threads:expr, $T:ident => $body:expr) => {
        with_threads!(@ $threads, $T, $body, 4 8 16 32 64 128 256 512)
    };
    (@ $threads:expr, $T:ident, $body:expr, $($n:literal)*) => {
        match $threads {
            $($n => { const $T: usize = $n; $body })*
            threads => unreachable!("blocks of {threads} threads"),
        }
    };
}

/// Builds the subtrees. Returns the number of nodes that split on each level, from that of the roots on.
///
/// # Safety
/// As [`Build::run`].
pub(crate) unsafe fn build<C: Coord, const D: usize>(
    build: &mut Build<'_, C, D>,
    workspace: &mut Workspace,
    options: LevelsOptions,
) -> Result<Vec<u32>> {
    options.check(D)?;
    if !options.prunes {
        // SAFETY: passed on to the caller.
        return unsafe { build_with_nulls(build, workspace, options) };
    }
    let (stream, first_level, num_roots) = (build.stream, build.roots[0].level, build.roots.len());
    let (num_points, leaf_points) = (build.ids.len(), build.leaf_points);
    let plan = |layout: &mut _| {
        let points = plan_points(layout, num_points);
        let max_splits = max_splits(num_points, leaf_points);
        (points, Plan::new(layout, num_points, D, max_splits, max_splits))
    };
    let ((points, plan), temp) = carve(stream, workspace, "quadtree level by level", plan)?;
    let points = points.map(|(codes, ids)| (temp.view(codes), temp.view(ids)));
    let parents = temp.view(plan.parents[first_level as usize % 2]);
    let mut builder = LevelBuilder { build, points, temp: &temp, plan: &plan, options, code_levels: 0..0 };
    temp.upload(temp.view(plan.counters), &[num_roots as u64, 0, 0])?;
    // SAFETY: the list is long enough for all roots; the rest is the caller's promise.
    let mut level = unsafe {
        iota_on(stream, 0, parents.part(0, num_roots))?;
        if first_level > 0 {
            stream.copy(builder.points(first_level).1, builder.build.ids.slice())?;
        }
        builder.count_tiles(parents, num_roots)?
    };
    let mut splits = Vec::new();
    while level.num_parents > 0 {
        let depth = first_level + splits.len() as u32;
        // SAFETY: the caller's promise.
        unsafe {
            if !builder.code_levels.contains(&depth) {
                builder.make_codes(&level, depth)?;
            }
            splits.push(level.num_parents as u32);
            let num_children = builder.split(&level, depth)?;
            let next_parents = builder.select(num_children, depth)?;
            let max_parents = num_children.min(temp.view(plan.tiles).len() - 1);
            level = builder.count_tiles(next_parents, max_parents)?;
        }
    }
    Ok(splits)
}

/// Builds the subtrees with null nodes: the list of a level has all nodes of the level. Removes the null nodes at the end. Returns the number
/// of nodes that split on each level, from that of the roots on.
///
/// # Safety
/// As [`Build::run`].
unsafe fn build_with_nulls<C: Coord, const D: usize>(
    build: &mut Build<'_, C, D>,
    workspace: &mut Workspace,
    options: LevelsOptions,
) -> Result<Vec<u32>> {
    let (stream, first_level, num_points) = (build.stream, build.roots[0].level, build.ids.len());
    let plan = |layout: &mut _| plan_points(layout, num_points);
    let (points, points_temp) = carve(stream, workspace, "points of a quadtree level by level", plan)?;
    let points = points.map(|(codes, ids)| (points_temp.view(codes), points_temp.view(ids)));
    let mut list_workspace = Workspace::new(stream.gpu());
    let (mut first_node, mut num_entries) = (0, build.roots.len());
    let (mut splits, mut code_levels, mut kept) = (Vec::new(), 0..0, Vec::new());
    loop {
        let depth = first_level + splits.len() as u32;
        let max_splits = max_splits(num_points, build.leaf_points).min(num_entries);
        let plan = |layout: &mut _| Plan::new(layout, num_points, D, max_splits, num_entries);
        let (plan, temp) = carve(stream, &mut list_workspace, "quadtree level with null nodes", plan)?;
        let mut builder =
            LevelBuilder { build: &mut *build, points, temp: &temp, plan: &plan, options, code_levels };
        let parents = temp.view(plan.parents[depth as usize % 2]);
        temp.upload(temp.view(plan.counters), &[num_entries as u64, 0, 0])?;
        // SAFETY: the lists are long enough for all nodes of the level; the rest is the caller's promise.
        unsafe {
            iota_on(stream, first_node, parents.part(0, num_entries))?;
            if kept.is_empty() {
                let mut roots = Buffer::uninitialized(stream.gpu(), num_entries, "nodes that are kept")?;
                iota_on(stream, 0, roots.slice_mut())?;
                kept.push(roots);
                if first_level > 0 {
                    stream.copy(builder.points(first_level).1, builder.build.ids.slice())?;
                }
            }
            let level = builder.count_tiles(parents, num_entries)?;
            if level.num_tiles == 0 || depth == builder.build.depth {
                break;
            }
            if !builder.code_levels.contains(&depth) {
                builder.make_codes(&level, depth)?;
            }
            first_node = builder.build.nodes.nodes.len() as u32;
            num_entries = builder.split(&level, depth)?;
            let of_parents_that_split = builder.select(num_entries, depth)?;
            let num_kept = stream.read(temp.view(plan.counters).read_only())?[counters::NUM_SPLITS] as usize;
            let mut numbers = Buffer::uninitialized(stream.gpu(), num_kept, "nodes that are kept")?;
            stream.copy(numbers.slice_mut(), of_parents_that_split.part(0, num_kept).read_only())?;
            kept.push(numbers);
            splits.push((num_kept >> D) as u32);
            code_levels = builder.code_levels;
        }
    }
    // SAFETY: the numbers ascend and belong to nodes; the rest is the caller's promise.
    unsafe { build.prune(&kept)? };
    Ok(splits)
}

impl<C: Coord, const D: usize> Build<'_, C, D> {
    /// Removes all nodes whose numbers are not listed. The lists ascend.
    ///
    /// # Safety
    /// As [`Build::run`].
    unsafe fn prune(&mut self, lists: &[Buffer<u32>]) -> Result<()> {
        let (stream, gpu) = (self.stream, self.stream.gpu());
        let len = lists.iter().map(Buffer::len).sum::<usize>();
        let mut kept = Buffer::uninitialized(gpu, len, "nodes that are kept")?;
        let mut pruned = NodeBuffers::<D> {
            nodes: Buffer::uninitialized(gpu, len, "quadtree nodes")?,
            cells: Buffer::uninitialized(gpu, len * D, "quadtree cells")?,
        };
        let mut begin = 0;
        for numbers in lists {
            // SAFETY: the lengths add up to that of the whole list; buffers wait for the device before they are freed.
            unsafe { stream.copy(kept.slice_mut().part(begin, numbers.len()), numbers.slice())? };
            begin += numbers.len();
        }
        let NodesMut { nodes, cells } = pruned.view();
        let args = (kept.slice(), self.nodes.nodes.bits(), self.nodes.cells.slice(), nodes, cells);
        // SAFETY: as above.
        unsafe { stream.launch_items::<quadtree_prune<D>>(len as u64, args)? };
        self.nodes = pruned;
        Ok(())
    }
}

/// Returns the workspace of a build.
pub(crate) fn workspace_bytes(num_points: usize, dims: usize, leaf_points: u32) -> u64 {
    bytes_of(|layout| {
        plan_points(layout, num_points);
        let max_splits = max_splits(num_points, leaf_points);
        Plan::new(layout, num_points, dims, max_splits, max_splits);
    })
}

/// Returns the most nodes of a level that split.
fn max_splits(num_points: usize, leaf_points: u32) -> usize {
    (num_points / (leaf_points as usize + 1)).max(1)
}

/// Plans codes and ids of the points in nodes that split, on this level and on the next. The points of leaves are in their final position.
fn plan_points(layout: &mut Layout, num_points: usize) -> [(Region<u32>, Region<u32>); 2] {
    [0; 2].map(|_| (layout.reserve(num_points), layout.reserve(num_points)))
}

/// The nodes of a level that split.
struct Level<'a> {
    parents: SliceMut<'a, u32>,
    num_parents: usize,
    num_tiles: usize,
    /// Number of points of the largest.
    max_points: u32,
}

/// Temporary memory of the lists of a level.
struct Plan {
    /// Nodes that split, on this level and on the next; if there are null nodes, all nodes of this level.
    parents: [Region<u32>; 2],
    /// The first tile of each parent.
    tiles: Region<u32>,
    /// The parent of each tile.
    tile_parents: Region<u32>,
    /// Histograms of the children, by tile.
    counts: Region<u32>,
    /// Node numbers of the children, and whether each splits.
    children: Region<u32>,
    flags: Region<u8>,
    /// Device counters that the host reads once per level.
    counters: Region<u64>,
    scan: Scan,
    select: Select,
}

impl Plan {
    /// Plans lists of up to `max_parents` nodes, of which up to `max_splits` split.
    fn new(
        layout: &mut Layout,
        num_points: usize,
        dims: usize,
        max_splits: usize,
        max_parents: usize,
    ) -> Self {
        // No level has more tiles.
        let max_tiles = num_points / TILE_POINTS as usize + max_splits;
        let max_children = max_parents << dims;
        Self {
            parents: [layout.reserve(max_children), layout.reserve(max_children)],
            tiles: layout.reserve(max_parents + 1),
            tile_parents: layout.reserve(max_tiles),
            counts: layout.reserve((max_tiles << dims) + 1),
            children: layout.reserve(max_children),
            flags: layout.reserve(max_children),
            counters: layout.reserve(counters::LEN),
            scan: Scan::plan::<u32, Decoupled>(layout, (max_tiles << dims).max(max_parents) + 1),
            select: Select::plan::<u32>(layout, max_children),
        }
    }
}

/// A build in progress.
struct LevelBuilder<'a, 'b, C, const D: usize> {
    build: &'a mut Build<'b, C, D>,
    /// Codes and ids of the points in nodes that split, on this level and on the next.
    points: [(SliceMut<'a, u32>, SliceMut<'a, u32>); 2],
    temp: &'a Temp<'a>,
    plan: &'a Plan,
    options: LevelsOptions,
    /// The levels that the codes have digits for.
    code_levels: Range<u32>,
}

impl<'a, C: Coord, const D: usize> LevelBuilder<'a, '_, C, D> {
    /// Returns codes and ids of the points in nodes of a level that split.
    fn points(&self, depth: u32) -> (SliceMut<'a, u32>, SliceMut<'a, u32>) {
        self.points[depth as usize % 2]
    }

    /// Computes codes from level `depth` on, of as many levels as fit.
    ///
    /// # Safety
    /// As [`build`].
    unsafe fn make_codes(&mut self, level: &Level<'a>, depth: u32) -> Result<()> {
        let num_levels = (u32::BITS / D as u32).min(self.build.depth - depth);
        self.code_levels = depth..depth + num_levels;
        let (codes, ids) = self.points(depth);
        let &mut Build { stream, coords, ref frame, ref nodes, .. } = self.build;
        // SAFETY: the caller's promise.
        unsafe {
            if depth == 0 {
                let args = (coords, frame.slice(), num_levels, codes, ids);
                return stream.launch_items::<quadtree_codes<C, D>>(codes.len() as u64, args);
            }
            let tiles = level.tiles(self.temp, self.plan, nodes.nodes.bits())?;
            let args = (coords, frame.slice(), depth, num_levels, tiles, ids.read_only(), codes);
            stream.launch::<quadtree_level_codes<C, D>>(level.num_tiles as u64, args)
        }
    }

    /// Splits the nodes of level `depth`: by threads if the largest is small enough for one or the level has threads by the options, else by
    /// tiles if it is too large for a block, else by blocks. Returns the number of children.
    ///
    /// # Safety
    /// As [`build`].
    unsafe fn split(&mut self, level: &Level<'a>, depth: u32) -> Result<usize> {
        let &mut Self { temp, plan, options, .. } = self;
        let [(codes, ids), (next_codes, next_ids)] = [depth, depth + 1].map(|depth| self.points(depth));
        let shift = D as u32 * (self.code_levels.end - 1 - depth);
        let points = LevelPoints { codes: codes.read_only(), ids: ids.read_only(), shift };
        let &mut Build { stream, leaf_points, frame_levels, depth: last, .. } = self.build;
        let Build { nodes, ids: tree_ids, .. } = &mut *self.build;
        let to = PointTargets { next_codes, next_ids, tree_ids: tree_ids.slice_mut() };
        check_num_nodes(nodes.nodes.len(), level.num_parents as u64, D)?;
        let (num_parents, num_children) = (level.num_parents as u64, level.num_parents << D);
        let first_node = nodes.grow(stream, num_children)?;
        let NodesMut { nodes, cells } = nodes.view();
        let device_counters = temp.view(plan.counters);
        // SAFETY: lists are at most as long as planned; the rest is the caller's promise.
        unsafe {
            let children = ChildWriter {
                parents: level.parents.part(0, level.num_parents).read_only(),
                nodes,
                cells,
                frame_levels,
                splits_from: if depth + 1 < last { leaf_points + 1 } else { u32::MAX },
                nulls_below: if options.prunes { 0 } else { leaf_points + 1 },
                first_node,
                numbers: temp.view(plan.children).part(0, num_children),
                flags: temp.view(plan.flags).part(0, num_children),
            };
            stream.fill_bytes(device_counters, 0)?;
            if level.max_points <= options.thread_points || depth >= options.thread_level {
                let level = LevelSplit { points, to, children };
                stream.launch_items::<quadtree_level_by_thread<D>>(num_parents, (level,))?;
            } else if level.max_points > options.block_points {
                let tiles = level.tiles(temp, plan, nodes.read_only())?;
                let counts = temp.view(plan.counts).part(0, (level.num_tiles << D) + 1);
                let num_tiles = level.num_tiles as u64;
                stream.launch::<quadtree_level_count<D>>(num_tiles, (points, tiles, counts))?;
                let from = counts.read_only();
                plan.scan.run::<u32, Sum, Decoupled>(temp, from, counts, ScanKind::Exclusive)?;
                let args = (points, to, tiles, from, children.splits_from);
                stream.launch::<quadtree_level_move<D>>(num_tiles, args)?;
                let args = (children, tiles.begins, from);
                stream.launch_items::<quadtree_level_children<D>>(num_children as u64, args)?;
            } else {
                with_threads!(options.threads_for(level.max_points, D), T => {
                    let level = LevelSplit { points, to, children };
                    stream.launch::<quadtree_level_by_block<D, T>>(num_parents, (level,))
                })?;
            }
        }
        Ok(num_children)
    }

    /// Lists the children of level `depth` whose flag is set, and counts them in `NUM_SPLITS`.
    ///
    /// # Safety
    /// As [`build`]; the level has been split.
    unsafe fn select(&self, num_children: usize, depth: u32) -> Result<SliceMut<'a, u32>> {
        let (temp, plan) = (self.temp, self.plan);
        // SAFETY: the caller's promise.
        unsafe {
            let next_parents = temp.view(plan.parents[(depth as usize + 1) % 2]).part(0, num_children);
            let count = temp.view(plan.counters).part(counters::NUM_SPLITS, 1);
            let kept = Selected { kept: next_parents, others: empty_view(), count };
            let numbers = temp.view(plan.children).part(0, num_children).read_only();
            let flags = temp.view(plan.flags).part(0, num_children).read_only();
            let (num_tiles, select) = plan.select.prepare(temp, numbers, kept)?;
            temp.stream.launch::<primitives_select_flagged<u32>>(num_tiles, (select, flags))?;
            Ok(next_parents)
        }
    }

    /// Counts the tiles of the nodes on a list, at most `max_parents`, whose length is the counter `NUM_SPLITS`. Waits for the counters.
    ///
    /// # Safety
    /// As [`build`].
    unsafe fn count_tiles(&self, parents: SliceMut<'a, u32>, max_parents: usize) -> Result<Level<'a>> {
        let (temp, plan) = (self.temp, self.plan);
        let (device_counters, nodes) = (temp.view(plan.counters), self.build.nodes.nodes.bits());
        // SAFETY: the caller's promise.
        let values = unsafe {
            let tiles = temp.view(plan.tiles).part(0, max_parents + 1);
            let nulls_below = if self.options.prunes { 0 } else { self.build.leaf_points + 1 };
            let args = (nodes, parents.read_only(), nulls_below, device_counters, tiles);
            temp.stream.launch_items::<quadtree_tiles>(tiles.len() as u64, args)?;
            let from = tiles.read_only();
            plan.scan.run::<u32, Sum, Decoupled>(temp, from, tiles, ScanKind::Exclusive)?;
            temp.stream.launch::<quadtree_count_tiles>(1, (from, device_counters))?;
            temp.stream.read(device_counters.read_only())?
        };
        Ok(Level {
            parents,
            num_parents: values[counters::NUM_SPLITS] as usize,
            num_tiles: values[counters::NUM_TILES] as usize,
            max_points: values[counters::MAX_POINTS] as u32,
        })
    }
}

impl<'a> Level<'a> {
    /// Lists the tiles.
    ///
    /// # Safety
    /// As [`build`].
    unsafe fn tiles<'t>(&self, temp: &Temp<'t>, plan: &Plan, nodes: Slice<'t, Bits128>) -> Result<Tiles<'t>>
    where
        'a: 't,
    {
        // SAFETY: lists are at most as long as planned.
        unsafe {
            let begins = temp.view(plan.tiles).part(0, self.num_parents + 1).read_only();
            let tile_parents = temp.view(plan.tile_parents).part(0, self.num_tiles);
            temp.stream
                .launch_items::<quadtree_tile_parents>(self.num_tiles as u64, (begins, tile_parents))?;
            let parents = self.parents.part(0, self.num_parents).read_only();
            Ok(Tiles { nodes, parents, begins, tile_parents: tile_parents.read_only() })
        }
    }
}

//! Level-by-level build (Gluck 2014).

use crate::device::{Layout, Region, Temp, Workspace};
use crate::error::Result;
use crate::primitives::generate::iota_on;
use crate::primitives::pairs::empty_view;
use crate::primitives::planned::{bytes_of, carve};
use crate::primitives::scan::{Scan, ScanKind};
use crate::primitives::select::{Select, Selected};
use crate::quadtree::gpu::build::Build;
use crate::quadtree::node::check_num_nodes;
use crate::quadtree::options::levels::LevelsOptions;
use cuda_std::mem::{Slice, SliceMut};
use kauri_kernels::primitives::select::primitives_select_flagged;
use kauri_kernels::quadtree::codes::children::NodesMut;
use kauri_kernels::quadtree::codes::quadtree_codes;
use kauri_kernels::quadtree::levels::blocks::quadtree_level_by_block;
use kauri_kernels::quadtree::levels::children::{ChildWriter, LevelSplit};
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
    let (stream, first_level, num_roots) = (build.stream, build.roots[0].level, build.roots.len());
    let plan = |layout: &mut _| Plan::new(layout, build.ids.len(), D, build.leaf_points);
    let (plan, temp) = carve(stream, workspace, "quadtree level by level", plan)?;
    let parents = temp.view(plan.parents[first_level as usize % 2]);
    let mut builder = LevelBuilder { build, temp: &temp, plan: &plan, options, code_levels: 0..0 };
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
            level = builder.split(&level, depth)?;
        }
    }
    Ok(splits)
}

/// Returns the workspace of a build.
pub(crate) fn workspace_bytes(num_points: usize, dims: usize, leaf_points: u32) -> u64 {
    bytes_of(|layout| Plan::new(layout, num_points, dims, leaf_points))
}

/// The nodes of a level that split.
struct Level<'a> {
    parents: SliceMut<'a, u32>,
    num_parents: usize,
    num_tiles: usize,
    /// Number of points of the largest.
    max_points: u32,
}

/// Temporary memory.
struct Plan {
    /// Codes and ids of the points in nodes that split, on this level and on the next. The points of leaves are in their final position.
    points: [(Region<u32>, Region<u32>); 2],
    /// Nodes that split, on this level and on the next.
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
    fn new(layout: &mut Layout, num_points: usize, dims: usize, leaf_points: u32) -> Self {
        // No level has more nodes that split, or more tiles of them.
        let max_parents = (num_points / (leaf_points as usize + 1)).max(1);
        let max_tiles = num_points / TILE_POINTS as usize + max_parents;
        let max_children = max_parents << dims;
        Self {
            points: [0; 2].map(|_| (layout.reserve(num_points), layout.reserve(num_points))),
            parents: [layout.reserve(max_children), layout.reserve(max_children)],
            tiles: layout.reserve(max_parents + 1),
            tile_parents: layout.reserve(max_tiles),
            counts: layout.reserve((max_tiles << dims) + 1),
            children: layout.reserve(max_children),
            flags: layout.reserve(max_children),
            counters: layout.reserve(counters::LEN),
            scan: Scan::plan::<u32, Decoupled>(layout, (max_tiles << dims) + 1),
            select: Select::plan::<u32>(layout, max_children),
        }
    }
}

/// A build in progress.
struct LevelBuilder<'a, 'b, C, const D: usize> {
    build: &'a mut Build<'b, C, D>,
    temp: &'a Temp<'a>,
    plan: &'a Plan,
    options: LevelsOptions,
    /// The levels that the codes have digits for.
    code_levels: Range<u32>,
}

impl<'a, C: Coord, const D: usize> LevelBuilder<'a, '_, C, D> {
    /// Returns codes and ids of the points in nodes of a level that split.
    fn points(&self, depth: u32) -> (SliceMut<'a, u32>, SliceMut<'a, u32>) {
        let (codes, ids) = self.plan.points[depth as usize % 2];
        (self.temp.view(codes), self.temp.view(ids))
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

    /// Splits the nodes of level `depth`: by tiles if the largest is too large for a block, else by threads if it is small enough for one,
    /// else by blocks. Returns the children that split.
    ///
    /// # Safety
    /// As [`build`].
    unsafe fn split(&mut self, level: &Level<'a>, depth: u32) -> Result<Level<'a>> {
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
                first_node,
                numbers: temp.view(plan.children).part(0, num_children),
                flags: temp.view(plan.flags).part(0, num_children),
            };
            stream.fill_bytes(device_counters, 0)?;
            if level.max_points > options.block_points {
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
            } else if level.max_points <= options.thread_points {
                let level = LevelSplit { points, to, children };
                stream.launch_items::<quadtree_level_by_thread<D>>(num_parents, (level,))?;
            } else {
                with_threads!(options.threads_for(level.max_points, D), T => {
                    let level = LevelSplit { points, to, children };
                    stream.launch::<quadtree_level_by_block<D, T>>(num_parents, (level,))
                })?;
            }
            let next_parents = temp.view(plan.parents[(depth as usize + 1) % 2]).part(0, num_children);
            let count = device_counters.part(counters::NUM_SPLITS, 1);
            let kept = Selected { kept: next_parents, others: empty_view(), count };
            let (numbers, flags) = (children.numbers.read_only(), children.flags.read_only());
            let (num_tiles, select) = plan.select.prepare(temp, numbers, kept)?;
            stream.launch::<primitives_select_flagged<u32>>(num_tiles, (select, flags))?;
            self.count_tiles(next_parents, num_children.min(temp.view(plan.tiles).len() - 1))
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
            let args = (nodes, parents.read_only(), device_counters, tiles);
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

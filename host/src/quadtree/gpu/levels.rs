//! Level-by-level build (Gluck 2014).

use crate::device::{Buffer, Layout, Region, Temp, Workspace};
use crate::error::Result;
use crate::primitives::generate::iota_on;
use crate::primitives::pairs::empty_view;
use crate::primitives::scan::{Scan, ScanKind};
use crate::primitives::select::{Select, Selected};
use crate::quadtree::gpu::build_input::BuildInput;
use crate::quadtree::gpu::node_buffers::NodeBuffers;
use crate::quadtree::node::check_num_nodes;
use crate::quadtree::options::LevelsOptions;
use cuda_std::mem::{Slice, SliceMut};
use kauri_kernels::quadtree::codes::quadtree_codes;
use kauri_kernels::quadtree::levels::blocks::quadtree_level_by_block;
use kauri_kernels::quadtree::levels::threads::quadtree_level_by_thread;
use kauri_kernels::quadtree::levels::tiles::{
    TILE_POINTS, counters, quadtree_level_children, quadtree_level_codes, quadtree_level_count,
    quadtree_level_move, quadtree_tell, quadtree_tile_nodes, quadtree_tiles,
};
use kauri_kernels::thread::coord::Coord;
use kauri_kernels::thread::operator::Sum;
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

/// Builds the subtrees of `num_roots` nodes on level `first_level`, which are all the nodes there are and have too many points. Returns the
/// number of nodes that split on each level from `first_level` on. `ids` are in the order of the roots, or unset if the root of the tree is
/// the only one.
///
/// # Safety
/// Nothing else uses the buffers until the stream has done the work.
pub(crate) unsafe fn build<C: Coord, const D: usize>(
    input: &BuildInput<'_, C>,
    workspace: &mut Workspace,
    ids: &mut Buffer<u32>,
    nodes: &mut NodeBuffers<D>,
    options: LevelsOptions,
    (first_level, num_roots): (u32, usize),
) -> Result<Vec<u32>> {
    let stream = input.stream;
    let mut layout = Layout::new();
    let plan = Plan::new(&mut layout, ids.len(), D, input.leaf_points);
    let temp = workspace.carve(stream, &layout, "quadtree level by level")?;
    let parents = temp.view(plan.parents[first_level as usize % 2]);
    let mut builder =
        LevelBuilder { input, temp: &temp, plan: &plan, ids, nodes, options, code_levels: 0..0 };
    temp.upload(stream, temp.view(plan.counters), &[num_roots as u64, 0, 0])?;
    // SAFETY: the list is long enough for all roots; the rest is the caller's promise.
    let mut level = unsafe {
        iota_on(stream, 0, parents.part(0, num_roots))?;
        if first_level > 0 {
            stream.copy(builder.points(first_level).1, builder.ids.slice())?;
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
    let mut layout = Layout::new();
    Plan::new(&mut layout, num_points, dims, leaf_points);
    layout.bytes()
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
struct LevelBuilder<'a, C, const D: usize> {
    input: &'a BuildInput<'a, C>,
    temp: &'a Temp<'a>,
    plan: &'a Plan,
    ids: &'a mut Buffer<u32>,
    nodes: &'a mut NodeBuffers<D>,
    options: LevelsOptions,
    /// The levels that the codes have digits for.
    code_levels: Range<u32>,
}

impl<'a, C: Coord, const D: usize> LevelBuilder<'a, C, D> {
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
        let &BuildInput { stream, coords, ref frame, .. } = self.input;
        let num_levels = (u32::BITS / D as u32).min(self.input.depth - depth);
        self.code_levels = depth..depth + num_levels;
        let (codes, ids) = self.points(depth);
        // SAFETY: the caller's promise.
        unsafe {
            if depth == 0 {
                let args = (coords, frame.slice(), num_levels, codes, ids);
                return stream.launch_items::<quadtree_codes<C, D>>(codes.len() as u64, args);
            }
            let nodes = self.nodes.nodes.slice();
            let (parents, tiles, tile_parents) = self.tiles_of(level)?;
            let args = (
                coords,
                frame.slice(),
                depth,
                num_levels,
                nodes,
                parents,
                tiles,
                tile_parents,
                ids.read_only(),
                codes,
            );
            stream.launch::<quadtree_level_codes<C, D>>(level.num_tiles as u64, args)
        }
    }

    /// Splits the nodes of level `depth`: by tiles if the largest is too large for a block, else by threads if it is small enough for one,
    /// else by blocks. Returns the children that split.
    ///
    /// # Safety
    /// As [`build`].
    unsafe fn split(&mut self, level: &Level<'a>, depth: u32) -> Result<Level<'a>> {
        let &mut Self { input, temp, plan, options, .. } = self;
        let &BuildInput { stream, leaf_points, .. } = input;
        let (children, flags) = (temp.view(plan.children), temp.view(plan.flags));
        let device_counters = temp.view(plan.counters);
        check_num_nodes(self.nodes.nodes.len(), level.num_parents as u64, D)?;
        let num_children = level.num_parents << D;
        let [(codes, ids), (next_codes, next_ids)] = [depth, depth + 1].map(|depth| self.points(depth));
        let (codes, ids) = (codes.read_only(), ids.read_only());
        let shift = D as u32 * (self.code_levels.end - 1 - depth);
        let splits_from = if depth + 1 < input.depth { leaf_points + 1 } else { u32::MAX };
        let first_node = self.nodes.grow(stream, num_children)?;
        // SAFETY: lists are at most as long as planned; the rest is the caller's promise.
        unsafe {
            let (numbers, flags) = (children.part(0, num_children), flags.part(0, num_children));
            let parents = level.parents.part(0, level.num_parents).read_only();
            let by_tiles = level.max_points > options.block_points;
            let by_tiles = by_tiles.then(|| self.tiles_of(level)).transpose()?;
            let tree_ids = self.ids.slice_mut();
            let (nodes, cells) = (self.nodes.nodes.slice_mut(), self.nodes.cells.slice_mut());
            let frame = input.frame.slice();
            stream.fill_bytes(device_counters, 0)?;
            if let Some((_, tiles, tile_parents)) = by_tiles {
                let counts = temp.view(plan.counts).part(0, (level.num_tiles << D) + 1);
                let num_blocks = level.num_tiles as u64;
                let args = (codes, shift, nodes.read_only(), parents, tiles, tile_parents, counts);
                stream.launch::<quadtree_level_count<D>>(num_blocks, args)?;
                let from = counts.read_only();
                plan.scan.run::<u32, Sum, Decoupled>(stream, temp, from, counts, ScanKind::Exclusive)?;
                let args = (
                    codes,
                    ids,
                    shift,
                    nodes.read_only(),
                    parents,
                    tiles,
                    tile_parents,
                    from,
                    splits_from,
                    next_codes,
                    next_ids,
                    tree_ids,
                );
                stream.launch::<quadtree_level_move<D>>(num_blocks, args)?;
                let args =
                    (frame, nodes, cells, parents, tiles, from, splits_from, first_node, numbers, flags);
                stream.launch_items::<quadtree_level_children<D>>(num_children as u64, args)?;
            } else {
                let args = (
                    codes,
                    ids,
                    shift,
                    frame,
                    nodes,
                    cells,
                    parents,
                    splits_from,
                    first_node,
                    next_codes,
                    next_ids,
                    tree_ids,
                    numbers,
                    flags,
                );
                let num_parents = level.num_parents as u64;
                if level.max_points <= options.thread_points {
                    stream.launch_items::<quadtree_level_by_thread<D>>(num_parents, args)?;
                } else {
                    with_threads!(options.threads_for(level.max_points, D), T => {
                        stream.launch::<quadtree_level_by_block<D, T>>(num_parents, args)
                    })?;
                }
            }
            let next_parents = temp.view(plan.parents[(depth as usize + 1) % 2]).part(0, num_children);
            let count = device_counters.part(counters::NUM_SPLITS, 1);
            let to = Selected { kept: next_parents, others: empty_view(), count };
            plan.select.run_flagged(stream, temp, numbers.read_only(), flags.read_only(), to)?;
            self.count_tiles(next_parents, num_children.min(temp.view(plan.tiles).len() - 1))
        }
    }

    /// Counts the tiles of the nodes on a list, at most `max_parents`, whose length is the counter `NUM_SPLITS`. Waits for the counters.
    ///
    /// # Safety
    /// As [`build`].
    unsafe fn count_tiles(&self, parents: SliceMut<'a, u32>, max_parents: usize) -> Result<Level<'a>> {
        let (stream, temp, plan) = (self.input.stream, self.temp, self.plan);
        let (device_counters, nodes): (_, Slice<'_, _>) =
            (temp.view(plan.counters), self.nodes.nodes.slice());
        // SAFETY: the caller's promise.
        let values = unsafe {
            let tiles = temp.view(plan.tiles).part(0, max_parents + 1);
            let args = (nodes, parents.read_only(), device_counters, tiles);
            stream.launch_items::<quadtree_tiles>(tiles.len() as u64, args)?;
            plan.scan.run::<u32, Sum, Decoupled>(
                stream,
                temp,
                tiles.read_only(),
                tiles,
                ScanKind::Exclusive,
            )?;
            stream.launch::<quadtree_tell>(1, (tiles.read_only(), device_counters))?;
            stream.read(device_counters.read_only())?
        };
        Ok(Level {
            parents,
            num_parents: values[counters::NUM_SPLITS] as usize,
            num_tiles: values[counters::NUM_TILES] as usize,
            max_points: values[counters::MAX_POINTS] as u32,
        })
    }

    /// Writes the parent of each tile of a level. Returns the parents, the first tile of each, and the parent of each tile.
    ///
    /// # Safety
    /// As [`build`].
    unsafe fn tiles_of(&self, level: &Level<'a>) -> Result<(Slice<'a, u32>, Slice<'a, u32>, Slice<'a, u32>)> {
        let (temp, plan) = (self.temp, self.plan);
        // SAFETY: lists are at most as long as planned.
        unsafe {
            let parents = level.parents.part(0, level.num_parents).read_only();
            let tiles = temp.view(plan.tiles).part(0, level.num_parents + 1).read_only();
            let tile_parents = temp.view(plan.tile_parents).part(0, level.num_tiles);
            let num_tiles = level.num_tiles as u64;
            self.input.stream.launch_items::<quadtree_tile_nodes>(num_tiles, (tiles, tile_parents))?;
            Ok((parents, tiles, tile_parents.read_only()))
        }
    }
}

//! The builder level by level.

use crate::device::{Buffer, Layout, Region, Temp, Workspace};
use crate::error::Result;
use crate::primitives::generate::iota_on;
use crate::primitives::pairs::empty_view;
use crate::primitives::scan::{Scan, ScanKind};
use crate::primitives::select::{Select, Selected};
use crate::quadtree::gpu::Asked;
use crate::quadtree::gpu::nodes::Nodes;
use crate::quadtree::{LevelsOptions, check_num_nodes};
use cuda_std::mem::{Slice, SliceMut};
use kauri_kernels::quadtree::codes::quadtree_codes;
use kauri_kernels::quadtree::levels::{
    TILE_POINTS, quadtree_level_by_block, quadtree_level_by_thread, quadtree_level_children,
    quadtree_level_codes, quadtree_level_count, quadtree_level_move, quadtree_tell, quadtree_tile_nodes,
    quadtree_tiles, told,
};
use kauri_kernels::thread::coord::Coord;
use kauri_kernels::thread::operator::Sum;
use kauri_kernels::warp::look_back::Decoupled;
use std::ops::Range;

/// Runs `$body` with the constant `$T` = `$threads`.
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

/// Builds what is below so many nodes of a level, all that there are, which have too many points; how many split on each level from that one on.
/// The ids are in the order of the nodes; of the root they are yet to be written.
///
/// # Safety
/// Nothing else uses the buffers until the stream has done the work.
pub(crate) unsafe fn build<C: Coord, const D: usize>(
    asked: &Asked<'_, C>,
    workspace: &mut Workspace,
    ids: &mut Buffer<u32>,
    nodes: &mut Nodes<D>,
    options: LevelsOptions,
    (first_level, num_roots): (u32, usize),
) -> Result<Vec<u32>> {
    let stream = asked.stream;
    let mut layout = Layout::new();
    let plan = Plan::new::<D>(&mut layout, ids.len(), asked.most);
    let temp = workspace.carve(stream, &layout, "quadtree level by level")?;
    let parents = temp.view(plan.parents[first_level as usize % 2]);
    let mut work = Work { asked, temp: &temp, plan: &plan, ids, nodes, options, codes: 0..0 };
    temp.upload(stream, temp.view(plan.told), &[num_roots as u64, 0, 0])?;
    // SAFETY: passed on to the caller; the list has room for all roots.
    let mut level = unsafe {
        iota_on(stream, 0, parents.part(0, num_roots))?;
        if first_level > 0 {
            stream.copy(work.points(first_level).1, work.ids.slice())?;
        }
        work.tiles(parents, num_roots)?
    };
    let mut splits = Vec::new();
    while level.num > 0 {
        // SAFETY: passed on to the caller.
        unsafe {
            let depth = first_level + splits.len() as u32;
            if !work.codes.contains(&depth) {
                work.make_codes(&level, depth)?;
            }
            splits.push(level.num as u32);
            level = work.split(&level, depth)?;
        }
    }
    Ok(splits)
}

/// The nodes of a level that split.
struct Level<'a> {
    parents: SliceMut<'a, u32>,
    num: usize,
    num_tiles: usize,
    /// Points of the largest.
    largest: u32,
}

/// Temporary memory.
struct Plan {
    /// Codes and ids of points that go on, of this level and of the next; those of leaves are where they stay.
    points: [(Region<u32>, Region<u32>); 2],
    /// Nodes that split, of this level and of the next.
    parents: [Region<u32>; 2],
    tiles: Region<u32>,
    of_tiles: Region<u32>,
    counts: Region<u32>,
    numbers: Region<u32>,
    flags: Region<u8>,
    told: Region<u64>,
    scan: Scan,
    select: Select,
}

impl Plan {
    fn new<const D: usize>(layout: &mut Layout, len: usize, most: u32) -> Self {
        // No level has more that split, or more tiles of them.
        let parents = (len / (most as usize + 1)).max(1);
        let tiles = len / TILE_POINTS as usize + parents;
        let children = parents << D;
        Self {
            points: [0; 2].map(|_| (layout.reserve(len), layout.reserve(len))),
            parents: [layout.reserve(children), layout.reserve(children)],
            tiles: layout.reserve(parents + 1),
            of_tiles: layout.reserve(tiles),
            counts: layout.reserve((tiles << D) + 1),
            numbers: layout.reserve(children),
            flags: layout.reserve(children),
            told: layout.reserve(told::LEN),
            scan: Scan::plan::<u32, Decoupled>(layout, (tiles << D) + 1),
            select: Select::plan::<u32>(layout, children),
        }
    }
}

/// A tree that is being built.
struct Work<'a, C, const D: usize> {
    asked: &'a Asked<'a, C>,
    temp: &'a Temp<'a>,
    plan: &'a Plan,
    ids: &'a mut Buffer<u32>,
    nodes: &'a mut Nodes<D>,
    options: LevelsOptions,
    /// The levels that codes have digits of.
    codes: Range<u32>,
}

impl<'a, C: Coord, const D: usize> Work<'a, C, D> {
    /// The points of the nodes of a level.
    fn points(&self, depth: u32) -> (SliceMut<'a, u32>, SliceMut<'a, u32>) {
        let (codes, ids) = self.plan.points[depth as usize % 2];
        (self.temp.view(codes), self.temp.view(ids))
    }

    /// Makes codes from level `depth` on.
    ///
    /// # Safety
    /// As [`build`].
    unsafe fn make_codes(&mut self, level: &Level<'a>, depth: u32) -> Result<()> {
        let &Asked { stream, coords, ref frame, .. } = self.asked;
        let num_levels = (u32::BITS / D as u32).min(self.asked.depth - depth);
        self.codes = depth..depth + num_levels;
        let (codes, ids) = self.points(depth);
        // SAFETY: passed on to the caller.
        unsafe {
            if depth == 0 {
                let args = (coords, frame.slice(), num_levels, codes, ids);
                return stream.launch_items::<quadtree_codes<C, D>>(codes.len() as u64, args);
            }
            let nodes = self.nodes.nodes.slice();
            let (parents, tiles, of_tiles) = self.tiles_of(level)?;
            let args = (
                coords,
                frame.slice(),
                depth,
                num_levels,
                nodes,
                parents,
                tiles,
                of_tiles,
                ids.read_only(),
                codes,
            );
            stream.launch::<quadtree_level_codes<C, D>>(level.num_tiles as u64, args)
        }
    }

    /// Splits the nodes of level `depth`; their children that split.
    ///
    /// # Safety
    /// As [`build`].
    unsafe fn split(&mut self, level: &Level<'a>, depth: u32) -> Result<Level<'a>> {
        let &mut Self { asked, temp, plan, options, .. } = self;
        let &Asked { stream, most, .. } = asked;
        let (numbers, flags, told) = (temp.view(plan.numbers), temp.view(plan.flags), temp.view(plan.told));
        check_num_nodes(self.nodes.nodes.len(), level.num as u64, D)?;
        let num_children = level.num << D;
        let [(codes, ids), (next_codes, next_ids)] = [depth, depth + 1].map(|depth| self.points(depth));
        let (codes, ids) = (codes.read_only(), ids.read_only());
        let shift = D as u32 * (self.codes.end - 1 - depth);
        let splits_from = if depth + 1 < asked.depth { most + 1 } else { u32::MAX };
        let first_node = self.nodes.grow(stream, num_children)?;
        // SAFETY: passed on to the caller; lists are as long as planned at most.
        unsafe {
            let (numbers, flags) = (numbers.part(0, num_children), flags.part(0, num_children));
            let parents = level.parents.part(0, level.num).read_only();
            let by_tiles = level.largest > options.block_points;
            let by_tiles = by_tiles.then(|| self.tiles_of(level)).transpose()?;
            let tree_ids = self.ids.slice_mut();
            let (nodes, cells) = (self.nodes.nodes.slice_mut(), self.nodes.cells.slice_mut());
            let frame = asked.frame.slice();
            stream.fill_bytes(told, 0)?;
            if let Some((_, tiles, of_tiles)) = by_tiles {
                let counts = temp.view(plan.counts).part(0, (level.num_tiles << D) + 1);
                let num_blocks = level.num_tiles as u64;
                let args = (codes, shift, nodes.read_only(), parents, tiles, of_tiles, counts);
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
                    of_tiles,
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
                let num = level.num as u64;
                if level.largest <= options.thread_points {
                    stream.launch_items::<quadtree_level_by_thread<D>>(num, args)?;
                } else {
                    with_threads!(options.threads_for(level.largest, D), T => {
                        stream.launch::<quadtree_level_by_block<D, T>>(num, args)
                    })?;
                }
            }
            let kept = temp.view(plan.parents[(depth as usize + 1) % 2]).part(0, num_children);
            let to = Selected { kept, others: empty_view(), count: told.part(told::SPLITS, 1) };
            plan.select.run_flagged(stream, temp, numbers.read_only(), flags.read_only(), to)?;
            self.tiles(kept, num_children.min(temp.view(plan.tiles).len() - 1))
        }
    }

    /// Counts the tiles of the nodes on a list, of which there are no more than `most`; waits for the numbers.
    ///
    /// # Safety
    /// As [`build`].
    unsafe fn tiles(&self, parents: SliceMut<'a, u32>, most: usize) -> Result<Level<'a>> {
        let (stream, temp, plan) = (self.asked.stream, self.temp, self.plan);
        let (told, nodes): (_, Slice<'_, _>) = (temp.view(plan.told), self.nodes.nodes.slice());
        // SAFETY: passed on to the caller.
        let words = unsafe {
            let tiles = temp.view(plan.tiles).part(0, most + 1);
            let args = (nodes, parents.read_only(), told, tiles);
            stream.launch_items::<quadtree_tiles>(tiles.len() as u64, args)?;
            plan.scan.run::<u32, Sum, Decoupled>(
                stream,
                temp,
                tiles.read_only(),
                tiles,
                ScanKind::Exclusive,
            )?;
            stream.launch::<quadtree_tell>(1, (tiles.read_only(), told))?;
            stream.read(told.read_only())?
        };
        let [num, num_tiles, largest] = [told::SPLITS, told::TILES, told::LARGEST].map(|i| words[i]);
        Ok(Level { parents, num: num as usize, num_tiles: num_tiles as usize, largest: largest as u32 })
    }

    /// The nodes of a level, where their tiles begin, and which of them each tile is of.
    ///
    /// # Safety
    /// As [`build`].
    unsafe fn tiles_of(&self, level: &Level<'a>) -> Result<(Slice<'a, u32>, Slice<'a, u32>, Slice<'a, u32>)> {
        let (temp, plan) = (self.temp, self.plan);
        // SAFETY: as many as planned at most.
        unsafe {
            let parents = level.parents.part(0, level.num).read_only();
            let tiles = temp.view(plan.tiles).part(0, level.num + 1).read_only();
            let of_tiles = temp.view(plan.of_tiles).part(0, level.num_tiles);
            let num_tiles = level.num_tiles as u64;
            self.asked.stream.launch_items::<quadtree_tile_nodes>(num_tiles, (tiles, of_tiles))?;
            Ok((parents, tiles, of_tiles.read_only()))
        }
    }
}

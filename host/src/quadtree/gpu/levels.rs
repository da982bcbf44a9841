//! The builder level by level.

use super::nodes::Nodes;
use super::{Asked, Room};
use crate::device::{Layout, Region, Temp, Workspace};
use crate::error::Result;
use crate::kdtree::Coordinate;
use crate::primitives::pairs::nothing;
use crate::primitives::scan::{Ends, Scan};
use crate::primitives::select::{Select, Selected};
use crate::quadtree::{LevelsOptions, check_num_nodes};
use cuda_std::mem::{Slice, SliceMut};
use kauri_kernels::quadtree::levels::{
    quadtree_level_by_thread, quadtree_level_children, quadtree_level_count, quadtree_level_move,
    quadtree_tell, quadtree_tiles, told,
};
use kauri_kernels::thread::operator::Sum;
use kauri_kernels::warp::look_back::Decoupled;

/// Runs `$body` with the constant `$T` = `$threads`.
macro_rules! with_threads {
    ($threads:expr, $T:ident => $body:expr) => {
        with_threads!(@ $threads, $T, $body, 256)
    };
    (@ $threads:expr, $T:ident, $body:expr, $($n:literal)*) => {
        match $threads {
            $($n => { const $T: usize = $n; $body })*
            threads => unreachable!("blocks of {threads} threads"),
        }
    };
}

/// Builds the tree; how many nodes split on each level.
///
/// # Safety
/// Nothing else uses the buffers until the stream has done the work.
pub(super) unsafe fn build<C: Coordinate, const D: usize>(
    asked: &Asked<'_, C>,
    workspace: &mut Workspace,
    room: &mut Room<C>,
    nodes: &mut Nodes<D>,
    options: LevelsOptions,
) -> Result<Vec<u32>> {
    let stream = asked.stream;
    let mut layout = Layout::new();
    let plan = Plan::new::<D>(&mut layout, room.ids.len(), asked.most, options);
    let temp = workspace.carve(stream, &layout, "quadtree level by level")?;
    let mut work = Work { asked, temp: &temp, plan: &plan, room, nodes, options };
    let mut level = Level { parents: temp.view(plan.parents[0]), num: 1, num_tiles: 0, by_thread: false };
    temp.upload(stream, temp.view(plan.told), &[1, 0, 1])?;
    // SAFETY: passed on to the caller; the list has room for a parent.
    unsafe {
        stream.fill_bytes(level.parents, 0)?;
        level.num_tiles = work.tiles(level.parents, 1)?.num_tiles;
    }
    let (mut splits, mut depth) = (Vec::new(), 0);
    while level.num > 0 {
        splits.push(level.num as u32);
        depth += 1;
        // SAFETY: passed on to the caller.
        level = unsafe { work.split(&level, depth) }?;
    }
    Ok(splits)
}

/// The nodes of a level that split.
struct Level<'a> {
    parents: SliceMut<'a, u32>,
    num: usize,
    num_tiles: usize,
    by_thread: bool,
}

/// Temporary memory.
struct Plan<C> {
    /// Points that go on, of this level and of the next; those of leaves are where they stay.
    points: [(Region<C>, Region<u32>); 2],
    /// Nodes that split, of this level and of the next.
    parents: [Region<u32>; 2],
    tiles: Region<u32>,
    counts: Region<u32>,
    numbers: Region<u32>,
    flags: Region<u8>,
    told: Region<u64>,
    scan: Scan,
    select: Select,
}

impl<C> Plan<C> {
    fn new<const D: usize>(layout: &mut Layout, len: usize, most: u32, options: LevelsOptions) -> Self {
        // No level has more that split, or more tiles of them.
        let parents = (len / (most as usize + 1)).max(1);
        let tiles = len / options.tile_points as usize + parents;
        let children = parents << D;
        Self {
            points: [0; 2].map(|_| (layout.reserve(len * D), layout.reserve(len))),
            parents: [layout.reserve(children), layout.reserve(children)],
            tiles: layout.reserve(parents + 1),
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
    plan: &'a Plan<C>,
    room: &'a mut Room<C>,
    nodes: &'a mut Nodes<D>,
    options: LevelsOptions,
}

impl<'a, C: Coordinate, const D: usize> Work<'a, C, D> {
    /// Splits the nodes of a level, whose children are of level `depth`; those of these that split.
    ///
    /// # Safety
    /// As [`build`].
    unsafe fn split(&mut self, level: &Level<'a>, depth: u32) -> Result<Level<'a>> {
        let &mut Self { asked, temp, plan, options, .. } = self;
        let &Asked { stream, most, .. } = asked;
        let (numbers, flags, told) = (temp.view(plan.numbers), temp.view(plan.flags), temp.view(plan.told));
        check_num_nodes(self.nodes.nodes.len(), level.num as u64, D)?;
        let num_children = level.num << D;
        let [points, next] = [depth - 1, depth].map(|depth| {
            let (coords, ids) = plan.points[depth as usize % 2];
            (temp.view(coords), temp.view(ids))
        });
        // Those of the root are where they are given, without ids.
        let from = match depth {
            1 => (asked.coords, nothing().read_only()),
            _ => (points.0.read_only(), points.1.read_only()),
        };
        let tree = (self.room.coords.slice_mut(), self.room.ids.slice_mut());
        let splits_from = if depth < asked.depth { most + 1 } else { u32::MAX };
        let first_node = self.nodes.grow(stream, num_children)?;
        // SAFETY: passed on to the caller; lists are as long as planned at most.
        unsafe {
            let (numbers, flags) = (numbers.part(0, num_children), flags.part(0, num_children));
            let parents = level.parents.part(0, level.num).read_only();
            let (nodes, cells) = (self.nodes.nodes.slice_mut(), self.nodes.cells.slice_mut());
            let frame = asked.frame.slice();
            stream.fill_bytes(told, 0)?;
            if level.by_thread {
                let args = (
                    from.0,
                    from.1,
                    frame,
                    nodes,
                    cells,
                    parents,
                    splits_from,
                    options.thread_points,
                    first_node,
                    next.0,
                    next.1,
                    tree.0,
                    tree.1,
                    numbers,
                    flags,
                    told,
                );
                with_threads!(options.threads, T => {
                    stream.launch_items::<quadtree_level_by_thread<C, D, T>>(level.num as u64, args)
                })?;
            } else {
                let tiles = temp.view(plan.tiles).part(0, level.num + 1).read_only();
                let counts = temp.view(plan.counts).part(0, (level.num_tiles << D) + 1);
                let (num_blocks, tile_points) = (level.num_tiles as u64, options.tile_points);
                let args = (from.0, frame, nodes.read_only(), parents, tiles, tile_points, counts);
                with_threads!(options.threads, T => stream.launch::<quadtree_level_count<C, D, T>>(num_blocks, args))?;
                plan.scan.run::<u32, Sum, Decoupled>(
                    stream,
                    temp,
                    counts.read_only(),
                    counts,
                    Ends::Exclusive,
                )?;
                let offsets = counts.read_only();
                let args = (
                    from.0,
                    from.1,
                    frame,
                    nodes.read_only(),
                    parents,
                    tiles,
                    tile_points,
                    offsets,
                    splits_from,
                    next.0,
                    next.1,
                    tree.0,
                    tree.1,
                );
                with_threads!(options.threads, T => stream.launch::<quadtree_level_move<C, D, T>>(num_blocks, args))?;
                let args = (
                    frame,
                    nodes,
                    cells,
                    parents,
                    tiles,
                    offsets,
                    splits_from,
                    options.thread_points,
                    first_node,
                    numbers,
                    flags,
                    told,
                );
                stream.launch_items::<quadtree_level_children<D>>(level.num as u64, args)?;
            }
            let kept = temp.view(plan.parents[depth as usize % 2]).part(0, num_children);
            let to = Selected { kept, others: nothing(), count: told.part(told::SPLITS, 1) };
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
            let args = (nodes, parents.read_only(), told.read_only(), self.options.tile_points, tiles);
            stream.launch_items::<quadtree_tiles>(tiles.len() as u64, args)?;
            plan.scan.run::<u32, Sum, Decoupled>(stream, temp, tiles.read_only(), tiles, Ends::Exclusive)?;
            stream.launch::<quadtree_tell>(1, (tiles.read_only(), told))?;
            stream.read(told.read_only())?
        };
        Ok(Level {
            parents,
            num: words[told::SPLITS] as usize,
            num_tiles: words[told::TILES] as usize,
            by_thread: words[told::LARGE] == 0,
        })
    }
}

//! Level by level, as Gluck 2014 builds a quadtree: the points of each node that splits go through a bucket sort with a bucket a child, by
//! blocks or by a single thread.
//!
//! By blocks it has four steps, where a thread owns a piece of points that follow each other, so that their order stays: count the points
//! of each child, add the counts up, find how many come before each thread's, move. In the paper a block has a whole node; here it has a
//! tile of it, and the second step goes over all tiles, so that the few nodes of the upper levels keep the whole device busy.
//! By threads, each has a whole node: for when all nodes are small.
//!
//! Nodes without points are made where their siblings have some, and never split, so that Gluck's null nodes do not exist.

use super::frame::Frame;
use super::node::Node;
use crate::policy::PER_ITEM_THREADS;
use crate::thread::coord::Coord;
use crate::thread::point::load_point;
use crate::thread::search::partition_point;
use crate::thread::words::Bits128;
use cuda_std::prelude::*;

/// Most children of a node.
const MOST_CHILDREN: usize = 8;

/// Words that kernels tell the host of a level.
pub mod told {
    /// How many children split.
    pub const SPLITS: usize = 0;
    /// How many tiles these have.
    pub const TILES: usize = 1;
    /// 1 if one of them is too large for a thread.
    pub const LARGE: usize = 2;
    /// Number of words.
    pub const LEN: usize = 3;
}

/// Writes how many tiles each of the nodes on a list has, of which there are as many as `told` says; 0 behind them. A thread a number.
#[kernel(family = "quadtree", block = PER_ITEM_THREADS)]
pub unsafe fn quadtree_tiles(
    nodes: Slice<Bits128>,
    parents: Slice<u32>,
    told: Slice<u64>,
    tile_points: u32,
    tiles: SliceMut<u32>,
) {
    let i = thread::index_1d_u64() as usize;
    if i < tiles.len() {
        let is_there = (i as u64) < told.load(told::SPLITS);
        let node = |i| Node::from_bits(nodes.load(parents.load(i) as usize));
        tiles.store(i, if is_there { node(i).len().div_ceil(tile_points) } else { 0 });
    }
}

/// Writes the number of all tiles, the last of the scanned ones; one thread.
#[kernel(family = "quadtree", block = 32)]
pub unsafe fn quadtree_tell(tiles: Slice<u32>, told: SliceMut<u64>) {
    if thread::index_1d() == 0 {
        told.store(told::TILES, tiles.load(tiles.len() - 1).into());
    }
}

/// Shared memory of a tile's counts: of each child a row, a number a thread.
#[repr(C)]
pub struct CountsSmem<const THREADS: usize> {
    counts: [[u32; THREADS]; MOST_CHILDREN],
}

/// Counts the points of each child in each tile: behind those of the parents before a row a child, a number a tile; at last a 0. A block
/// a tile.
#[kernel(family = "quadtree-levels", block = THREADS, shared = CountsSmem<THREADS>, hot)]
#[instance(f32, 2, 256)]
#[instance(f32, 3, 256)]
#[instance(f64, 2, 256)]
#[instance(f64, 3, 256)]
#[instance(f32, 2, 4)]
#[instance(f32, 2, 8)]
#[instance(f32, 2, 16)]
#[instance(f32, 2, 32)]
#[instance(f32, 2, 64)]
#[instance(f32, 2, 128)]
#[instance(f32, 2, 512)]
pub unsafe fn quadtree_level_count<C: Coord, const D: usize, const THREADS: usize>(
    coords: Slice<C>,
    frame: Slice<u64>,
    nodes: Slice<Bits128>,
    parents: Slice<u32>,
    tiles: Slice<u32>,
    tile_points: u32,
    counts: SliceMut<u32>,
) {
    let tile = Tile::<D>::new(nodes, parents, tiles, tile_points);
    let smem = shared_mem::<CountsSmem<THREADS>>();
    let (own, thread) = (shared_field!(smem, counts), thread::thread_idx_x() as usize);
    tile.count::<C, THREADS>(&Frame::load(frame), coords, own);
    // The threads of the upper half give theirs to those of the lower.
    let mut half = THREADS / 2;
    while half > 0 {
        if thread < half {
            let mut child = 0;
            while child < 1 << D {
                let at = child * THREADS + thread;
                own.store(at, own.load(at) + own.load(at + half));
                child += 1;
            }
        }
        thread::sync_threads();
        half /= 2;
    }
    let mut child = thread;
    while child < 1 << D {
        counts.store(tile.of_child(child), own.load(child * THREADS));
        child += THREADS;
    }
    if thread::block_idx_x() == 0 && thread == 0 {
        counts.store(counts.len() - 1, 0);
    }
}

/// Moves the points of each tile to where those of its children are, given such counts, scanned: points of leaves to the tree, others to
/// where the next level finds them. Without ids a point's place is its id. A block a tile.
#[kernel(family = "quadtree-levels", block = THREADS, shared = CountsSmem<THREADS>, hot)]
#[instance(f32, 2, 256)]
#[instance(f32, 3, 256)]
#[instance(f64, 2, 256)]
#[instance(f64, 3, 256)]
#[instance(f32, 2, 4)]
#[instance(f32, 2, 8)]
#[instance(f32, 2, 16)]
#[instance(f32, 2, 32)]
#[instance(f32, 2, 64)]
#[instance(f32, 2, 128)]
#[instance(f32, 2, 512)]
pub unsafe fn quadtree_level_move<C: Coord, const D: usize, const THREADS: usize>(
    coords: Slice<C>,
    ids: Slice<u32>,
    frame: Slice<u64>,
    nodes: Slice<Bits128>,
    parents: Slice<u32>,
    tiles: Slice<u32>,
    tile_points: u32,
    offsets: Slice<u32>,
    splits_from: u32,
    next_coords: SliceMut<C>,
    next_ids: SliceMut<u32>,
    tree_coords: SliceMut<C>,
    tree_ids: SliceMut<u32>,
) {
    let tile = Tile::<D>::new(nodes, parents, tiles, tile_points);
    let (frame, smem) = (Frame::load(frame), shared_mem::<CountsSmem<THREADS>>());
    let (own, thread) = (shared_field!(smem, counts), thread::thread_idx_x() as usize);
    tile.count::<C, THREADS>(&frame, coords, own);
    // A thread a child goes over what the threads have counted.
    let mut child = thread;
    while child < 1 << D {
        let (mut before, mut i) = (tile.begin_of(offsets, child), child * THREADS);
        while i < (child + 1) * THREADS {
            let count = own.load(i);
            own.store(i, before);
            before += count;
            i += 1;
        }
        child += THREADS;
    }
    thread::sync_threads();
    let to = Targets { next_coords, next_ids, tree_coords, tree_ids };
    let mut next = [0; MOST_CHILDREN];
    let (mut splits, mut child) = (0, 0);
    while child < 1 << D {
        next[child] = own.load(child * THREADS + thread);
        splits |= u32::from(tile.len_of(offsets, child) >= splits_from) << child;
        child += 1;
    }
    let points = Points { coords, ids };
    let (first, end) = tile.piece::<THREADS>();
    move_points::<C, D>(&frame, tile.level, &points, first, end, next, splits, &to);
}

/// A tile of a parent's points.
struct Tile<const D: usize> {
    /// The parent's.
    level: u32,
    /// Where the parent's points begin.
    start: u32,
    /// The parent's first tile, how many there are, and which of them this is.
    first: usize,
    num: usize,
    own: usize,
    /// The tile's points.
    begin: usize,
    end: usize,
}

impl<const D: usize> Tile<D> {
    /// The block's.
    #[inline(always)]
    unsafe fn new(
        nodes: Slice<'_, Bits128>,
        parents: Slice<'_, u32>,
        tiles: Slice<'_, u32>,
        tile_points: u32,
    ) -> Self {
        let block = thread::block_idx_x();
        let k = partition_point(0, parents.len(), |k| tiles.load(k) <= block) - 1;
        let (first, next) = (tiles.load(k), tiles.load(k + 1));
        let node = Node::from_bits(nodes.load(parents.load(k) as usize));
        let begin = u64::from(node.start) + u64::from(block - first) * u64::from(tile_points);
        let end = begin + u64::from(tile_points);
        let end = if end < node.end.into() { end } else { node.end.into() };
        Self {
            level: node.level,
            start: node.start,
            first: first as usize,
            num: (next - first) as usize,
            own: (block - first) as usize,
            begin: begin as usize,
            end: end as usize,
        }
    }

    /// Where the count of a child is.
    #[inline(always)]
    fn of_child(&self, child: usize) -> usize {
        (self.first << D) + child * self.num + self.own
    }

    /// Where the tile's points of a child begin.
    #[inline(always)]
    unsafe fn begin_of(&self, offsets: Slice<'_, u32>, child: usize) -> u32 {
        self.start + (offsets.load(self.of_child(child)) - offsets.load(self.first << D))
    }

    /// How many points a child has, in all tiles.
    #[inline(always)]
    unsafe fn len_of(&self, offsets: Slice<'_, u32>, child: usize) -> u32 {
        let first = (self.first << D) + child * self.num;
        offsets.load(first + self.num) - offsets.load(first)
    }

    /// The thread's points.
    #[inline(always)]
    fn piece<const THREADS: usize>(&self) -> (usize, usize) {
        let per_thread = (self.end - self.begin).div_ceil(THREADS);
        let first = self.begin + thread::thread_idx_x() as usize * per_thread;
        let end = first + per_thread;
        (first, if end < self.end { end } else { self.end })
    }

    /// Counts the points of each child in the thread's piece. Ends with a barrier.
    #[inline(always)]
    unsafe fn count<C: Coord, const THREADS: usize>(
        &self,
        frame: &Frame<D>,
        coords: Slice<'_, C>,
        counts: SharedSlice<'_, u32>,
    ) {
        let (first, end) = self.piece::<THREADS>();
        let own = count_children::<C, D>(frame, self.level, coords, first, end);
        let mut child = 0;
        while child < 1 << D {
            counts.store(child * THREADS + thread::thread_idx_x() as usize, own[child]);
            child += 1;
        }
        thread::sync_threads();
    }
}

/// Counts the points of each child among some that follow each other.
#[inline(always)]
unsafe fn count_children<C: Coord, const D: usize>(
    frame: &Frame<D>,
    level: u32,
    coords: Slice<'_, C>,
    first: usize,
    end: usize,
) -> [u32; MOST_CHILDREN] {
    let (mut counts, mut i) = ([0; MOST_CHILDREN], first);
    while i < end {
        let of = child_of::<C, D>(frame, level, load_point(coords, i, D));
        let mut child = 0;
        // So that they stay in registers.
        while child < 1 << D {
            counts[child] += u32::from(of == child as u32);
            child += 1;
        }
        i += 1;
    }
    counts
}

/// The child of a node of this level that a point is in.
#[inline(always)]
fn child_of<C: Coord, const D: usize>(frame: &Frame<D>, level: u32, point: [C; D]) -> u32 {
    frame.code(frame.unit(point), level, 1)
}

/// Points on their way down; without ids a point's place is its id.
struct Points<'a, C> {
    coords: Slice<'a, C>,
    ids: Slice<'a, u32>,
}

/// Where points go.
struct Targets<'a, C> {
    next_coords: SliceMut<'a, C>,
    next_ids: SliceMut<'a, u32>,
    tree_coords: SliceMut<'a, C>,
    tree_ids: SliceMut<'a, u32>,
}

impl<C: Coord> Targets<'_, C> {
    #[inline(always)]
    unsafe fn store<const D: usize>(&self, splits: bool, place: usize, point: [C; D], id: u32) {
        let (coords, ids) =
            if splits { (self.next_coords, self.next_ids) } else { (self.tree_coords, self.tree_ids) };
        let mut axis = 0;
        while axis < D {
            coords.store(place * D + axis, point[axis]);
            axis += 1;
        }
        ids.store(place, id);
    }
}

/// Moves points that follow each other, those of each child to `next` of it and what follows; of the children `splits` has a bit for those
/// that split.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
unsafe fn move_points<C: Coord, const D: usize>(
    frame: &Frame<D>,
    level: u32,
    points: &Points<'_, C>,
    first: usize,
    end: usize,
    mut next: [u32; MOST_CHILDREN],
    splits: u32,
    to: &Targets<'_, C>,
) {
    let mut i = first;
    while i < end {
        let point = load_point::<C, D>(points.coords, i, D);
        let id = if points.ids.is_empty() { i as u32 } else { points.ids.load(i) };
        let of = child_of::<C, D>(frame, level, point);
        let (mut place, mut child) = (0, 0);
        while child < 1 << D {
            place = if of == child as u32 { next[child] } else { place };
            next[child] += u32::from(of == child as u32);
            child += 1;
        }
        to.store(splits >> of & 1 == 1, place as usize, point, id);
        i += 1;
    }
}

/// Where the children of the nodes that split are written, and which of them split in turn.
#[derive(Clone, Copy)]
struct Children<'a, const D: usize> {
    frame: Slice<'a, u64>,
    nodes: SliceMut<'a, Bits128>,
    cells: SliceMut<'a, u32>,
    /// A node with as many points splits.
    splits_from: u32,
    /// And is too large for a thread with more than that.
    thread_points: u32,
    first_node: u32,
    /// Of each child its node, and whether it splits.
    numbers: SliceMut<'a, u32>,
    flags: SliceMut<'a, u8>,
    told: SliceMut<'a, u64>,
}

impl<const D: usize> Children<'_, D> {
    /// Writes the children of parent `k`, given where the points of each begin.
    #[inline(always)]
    unsafe fn write(&self, k: usize, parent: u32, begin_of: impl Fn(usize) -> u32) {
        let node = Node::from_bits(self.nodes.load(parent as usize));
        let first_child = self.first_node + ((k as u32) << D);
        self.nodes.store(parent as usize, Node { first_child, ..node }.to_bits());
        let side = 1 << (Frame::<D>::load(self.frame).levels - node.level - 1);
        let (mut child, mut is_large) = (0, false);
        while child < 1 << D {
            let start = begin_of(child);
            let end = if child + 1 < 1 << D { begin_of(child + 1) } else { node.end };
            let own = Node { start, end, first_child: 0, level: node.level + 1 };
            let number = first_child as usize + child;
            self.nodes.store(number, own.to_bits());
            let mut axis = 0;
            while axis < D {
                let is_upper = (child >> (D - 1 - axis) & 1) as u32;
                let corner = self.cells.load(parent as usize * D + axis);
                self.cells.store(number * D + axis, corner + is_upper * side);
                axis += 1;
            }
            let (splits, at) = (own.len() >= self.splits_from, (k << D) + child);
            self.numbers.store(at, number as u32);
            self.flags.store(at, u8::from(splits));
            is_large |= splits && own.len() > self.thread_points;
            child += 1;
        }
        if is_large {
            // The one flag of Gluck's; whoever sets it says the same.
            self.told.atomic_max(told::LARGE, 1, Ordering::Relaxed, Scope::Device);
        }
    }
}

/// Writes the children of the nodes that split, given the scanned counts of their tiles; a thread a node that splits.
#[kernel(family = "quadtree", block = PER_ITEM_THREADS, hot)]
#[instance(2)]
#[instance(3)]
pub unsafe fn quadtree_level_children<const D: usize>(
    frame: Slice<u64>,
    nodes: SliceMut<Bits128>,
    cells: SliceMut<u32>,
    parents: Slice<u32>,
    tiles: Slice<u32>,
    offsets: Slice<u32>,
    splits_from: u32,
    thread_points: u32,
    first_node: u32,
    numbers: SliceMut<u32>,
    flags: SliceMut<u8>,
    told: SliceMut<u64>,
) {
    let k = thread::index_1d_u64() as usize;
    if k < parents.len() {
        let children = Children::<D> {
            frame,
            nodes,
            cells,
            splits_from,
            thread_points,
            first_node,
            numbers,
            flags,
            told,
        };
        let parent = parents.load(k);
        let (first, num) = (tiles.load(k) as usize, (tiles.load(k + 1) - tiles.load(k)) as usize);
        let start = Node::from_bits(nodes.load(parent as usize)).start;
        children.write(k, parent, |child| {
            start + (offsets.load((first << D) + child * num) - offsets.load(first << D))
        });
    }
}

/// The same with the moves, a thread a node with all its points.
#[kernel(family = "quadtree-levels", block = THREADS, hot)]
#[instance(f32, 2, 256)]
#[instance(f32, 3, 256)]
#[instance(f64, 2, 256)]
#[instance(f64, 3, 256)]
#[instance(f32, 2, 4)]
#[instance(f32, 2, 8)]
#[instance(f32, 2, 16)]
#[instance(f32, 2, 32)]
#[instance(f32, 2, 64)]
#[instance(f32, 2, 128)]
#[instance(f32, 2, 512)]
pub unsafe fn quadtree_level_by_thread<C: Coord, const D: usize, const THREADS: usize>(
    coords: Slice<C>,
    ids: Slice<u32>,
    frame: Slice<u64>,
    nodes: SliceMut<Bits128>,
    cells: SliceMut<u32>,
    parents: Slice<u32>,
    splits_from: u32,
    thread_points: u32,
    first_node: u32,
    next_coords: SliceMut<C>,
    next_ids: SliceMut<u32>,
    tree_coords: SliceMut<C>,
    tree_ids: SliceMut<u32>,
    numbers: SliceMut<u32>,
    flags: SliceMut<u8>,
    told: SliceMut<u64>,
) {
    let k = thread::index_1d_u64() as usize;
    if k < parents.len() {
        let parent = parents.load(k);
        let node = Node::from_bits(nodes.load(parent as usize));
        let cut = Frame::<D>::load(frame);
        let (first, end) = (node.start as usize, node.end as usize);
        let counts = count_children::<C, D>(&cut, node.level, coords, first, end);
        let (mut begins, mut splits) = ([node.start; MOST_CHILDREN], 0);
        let mut child = 0;
        while child < 1 << D {
            if child > 0 {
                begins[child] = begins[child - 1] + counts[child - 1];
            }
            splits |= u32::from(counts[child] >= splits_from) << child;
            child += 1;
        }
        let to = Targets { next_coords, next_ids, tree_coords, tree_ids };
        let points = Points { coords, ids };
        move_points::<C, D>(&cut, node.level, &points, first, end, begins, splits, &to);
        let children = Children::<D> {
            frame,
            nodes,
            cells,
            splits_from,
            thread_points,
            first_node,
            numbers,
            flags,
            told,
        };
        children.write(k, parent, |child| {
            // In registers, which no number of a child finds by itself.
            let (mut begin, mut other) = (0, 0);
            while other < 1 << D {
                begin = if other == child { begins[other] } else { begin };
                other += 1;
            }
            begin
        });
    }
}

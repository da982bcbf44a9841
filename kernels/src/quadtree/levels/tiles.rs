//! Splits of large nodes by tiles: a block sorts one tile of a node. Lists of tiles.

use super::super::frame::Frame;
use super::super::node::Node;
use super::children::{ChildWriter, Parent};
use super::chunk::{Chunk, LevelSmem, min_blocks};
use super::counts::{ChildCounts, scan};
use super::points::{LevelPoints, PointTargets};
use crate::policy::{PER_ITEM_THREADS, QUADTREE_PIECE_POINTS, QUADTREE_TILE_THREADS};
use crate::thread::coord::Coord;
use crate::thread::items::{own_item, strided};
use crate::thread::point::load_point;
use crate::thread::search::partition_point;
use crate::thread::words::Bits128;
use cuda_std::prelude::*;
use cuda_std::warp::WarpReductionOp;

/// Number of points of a full tile.
pub const TILE_POINTS: u32 = (QUADTREE_TILE_THREADS * QUADTREE_PIECE_POINTS) as u32;

/// Returns the minimum number of resident blocks per multiprocessor: 48 registers per thread suffice for quadtrees, not for octrees.
const fn min_tiles(dims: usize) -> usize {
    if dims == 2 { 5 } else { min_blocks(dims, QUADTREE_TILE_THREADS) }
}

/// Device counters of a level, which the host reads.
pub mod counters {
    /// Number of children that split.
    pub const NUM_SPLITS: usize = 0;
    /// Number of their tiles.
    pub const NUM_TILES: usize = 1;
    /// Number of points of the largest of them.
    pub const MAX_POINTS: usize = 2;
    /// Number of counters.
    pub const LEN: usize = 3;
}

/// Counts the tiles of each node on a list, whose length is the counter `NUM_SPLITS`, and raises the counter `MAX_POINTS`. Entries past the
/// end of the list are 0, and so are null nodes: the nodes with fewer than `nulls_below` points. One thread per entry.
#[kernel(family = "research-quadtree", block = PER_ITEM_THREADS)]
pub unsafe fn quadtree_tiles(
    nodes: Slice<Bits128>,
    parents: Slice<u32>,
    nulls_below: u32,
    device_counters: SliceMut<u64>,
    tiles: SliceMut<u32>,
) {
    let i = thread::index_1d_u64() as usize;
    let mut len = 0;
    if i < tiles.len() {
        if (i as u64) < device_counters.load(counters::NUM_SPLITS) {
            len = Node::from_bits(nodes.load(parents.load(i) as usize)).len();
            len = if len < nulls_below { 0 } else { len };
        }
        tiles.store(i, len.div_ceil(TILE_POINTS));
    }
    let largest = warp::warp_reduce(warp::FULL_MASK, len, WarpReductionOp::Max);
    if warp::lane_id() == 0 && largest > 0 {
        device_counters.atomic_max(counters::MAX_POINTS, largest.into(), Ordering::Relaxed, Scope::Device);
    }
}

/// Writes the counter `NUM_TILES`, which is the last of the scanned numbers of tiles. One thread.
#[kernel(family = "research-quadtree", block = 32)]
pub unsafe fn quadtree_count_tiles(tiles: Slice<u32>, device_counters: SliceMut<u64>) {
    if thread::index_1d() == 0 {
        device_counters.store(counters::NUM_TILES, tiles.load(tiles.len() - 1).into());
    }
}

/// Writes the parent of each tile as its index in the list, given the scanned numbers of tiles. One thread per tile.
#[kernel(family = "research-quadtree", block = PER_ITEM_THREADS)]
pub unsafe fn quadtree_tile_parents(tiles: Slice<u32>, tile_parents: SliceMut<u32>) {
    let Some(i) = own_item(tile_parents.len()) else { return };
    let k = partition_point(0, tiles.len() - 1, |k| tiles.load(k) as usize <= i) as u32 - 1;
    tile_parents.store(i, k);
}

/// The tiles of the nodes that split.
#[derive(Clone, Copy, KernelArgs)]
pub struct Tiles<'a> {
    /// The nodes of the tree.
    pub nodes: Slice<'a, Bits128>,
    /// The nodes that split, by number.
    pub parents: Slice<'a, u32>,
    /// The first tile of each of them, and the number of tiles.
    pub begins: Slice<'a, u32>,
    /// The parent of each tile, as its index in `parents`.
    pub tile_parents: Slice<'a, u32>,
}

/// Computes the codes, from `level` on, of the points in nodes that split. One block per tile.
#[kernel(family = "research-quadtree", block = QUADTREE_TILE_THREADS, hot)]
#[instances(C = [f32, f64, i32], D = [2, 3])]
pub unsafe fn quadtree_level_codes<C: Coord, const D: usize>(
    coords: Slice<C>,
    frame: Slice<u64>,
    level: u32,
    num_levels: u32,
    tiles: Tiles<'_>,
    ids: Slice<u32>,
    codes: SliceMut<u32>,
) {
    let (tile, frame) = (Tile::<D>::new(tiles), Frame::<D>::load(frame));
    for i in strided(tile.begin + thread::thread_idx_x() as usize, tile.end, QUADTREE_TILE_THREADS) {
        let unit = frame.unit(load_point::<C, D>(coords, ids.load(i) as usize, D));
        codes.store(i, frame.code(unit, level, num_levels));
    }
}

/// Counts the points of each child in each tile. The counts are ordered by parent, then child, then tile, and end with a 0. One block per
/// tile.
#[kernel(family = "research-quadtree", block = QUADTREE_TILE_THREADS, shared = LevelSmem<QUADTREE_TILE_THREADS>, hot)]
#[instances(D = [2, 3])]
pub unsafe fn quadtree_level_count<const D: usize>(
    points: LevelPoints<'_>,
    tiles: Tiles<'_>,
    counts: SliceMut<u32>,
) {
    Tile::<D>::new(tiles).count(shared_mem(), points, counts);
}

/// Moves the points of each tile to the range of their child, given the scanned counts: points of leaves in the tree, others in the arrays
/// of the next level. Children of at least `splits_from` points split. One block per tile.
#[kernel(family = "research-quadtree", block = QUADTREE_TILE_THREADS, min_blocks = min_tiles(D), shared = LevelSmem<QUADTREE_TILE_THREADS>, hot)]
#[instances(D = [2, 3])]
pub unsafe fn quadtree_level_move<const D: usize>(
    points: LevelPoints<'_>,
    to: PointTargets<'_>,
    tiles: Tiles<'_>,
    offsets: Slice<u32>,
    splits_from: u32,
) {
    Tile::<D>::new(tiles).move_points(shared_mem(), points, to, offsets, splits_from);
}

type TileChunk<'a, const D: usize> = Chunk<'a, D, QUADTREE_TILE_THREADS, QUADTREE_PIECE_POINTS>;

/// A tile of a parent's points.
struct Tile<const D: usize> {
    /// The first point of the parent.
    parent_start: u32,
    /// The first tile of the parent.
    first_tile: usize,
    /// Number of tiles of the parent.
    num_tiles: usize,
    /// Index of this tile among them.
    index: usize,
    /// The points of this tile.
    begin: usize,
    end: usize,
}

impl<const D: usize> Tile<D> {
    /// Loads the tile of the calling block.
    #[inline(always)]
    unsafe fn new(Tiles { nodes, parents, begins, tile_parents }: Tiles<'_>) -> Self {
        let block = thread::block_idx_x();
        let k = tile_parents.load(block as usize) as usize;
        let (first, next) = (begins.load(k), begins.load(k + 1));
        let node = Node::from_bits(nodes.load(parents.load(k) as usize));
        let begin = u64::from(node.start) + u64::from(block - first) * u64::from(TILE_POINTS);
        let end = begin + u64::from(TILE_POINTS);
        let end = if end < node.end.into() { end } else { node.end.into() };
        Self {
            parent_start: node.start,
            first_tile: first as usize,
            num_tiles: (next - first) as usize,
            index: (block - first) as usize,
            begin: begin as usize,
            end: end as usize,
        }
    }

    /// Counts the points of each child. All threads call.
    #[inline(always)]
    unsafe fn count(
        &self,
        smem: *mut LevelSmem<QUADTREE_TILE_THREADS>,
        points: LevelPoints<'_>,
        counts: SliceMut<'_, u32>,
    ) {
        let (mut thread_counts, mut j, thread) =
            (ChildCounts::<D>([0; 2]), 0, thread::thread_idx_x() as usize);
        while j < QUADTREE_PIECE_POINTS {
            let i = self.begin + j * QUADTREE_TILE_THREADS + thread;
            if i < self.end {
                thread_counts.add(points.child::<D>(points.codes.load(i)));
            }
            j += 1;
        }
        let (_, total) = scan::<D, QUADTREE_TILE_THREADS>(thread_counts, shared_field!(smem, counts));
        if thread < 1 << D {
            counts.store(self.count_index(thread), total.get(thread as u32));
        }
        if thread::block_idx_x() == 0 && thread == 0 {
            counts.store(counts.len() - 1, 0);
        }
    }

    /// Moves the points, given the scanned counts. All threads call.
    #[inline(always)]
    unsafe fn move_points(
        &self,
        smem: *mut LevelSmem<QUADTREE_TILE_THREADS>,
        points: LevelPoints<'_>,
        to: PointTargets<'_>,
        offsets: Slice<'_, u32>,
        splits_from: u32,
    ) {
        if self.end - self.begin == TILE_POINTS as usize {
            self.move_chunk::<true>(smem, points, to, offsets, splits_from);
        } else {
            self.move_chunk::<false>(smem, points, to, offsets, splits_from);
        }
    }

    /// A `FULL` tile needs no comparisons with its end.
    #[inline(always)]
    unsafe fn move_chunk<const FULL: bool>(
        &self,
        smem: *mut LevelSmem<QUADTREE_TILE_THREADS>,
        points: LevelPoints<'_>,
        to: PointTargets<'_>,
        offsets: Slice<'_, u32>,
        splits_from: u32,
    ) {
        let len = (self.end - self.begin) as u32;
        let chunk = TileChunk::<D>::load::<FULL>(smem, points, self.begin, len);
        let (bases, child) = (shared_field!(smem, bases), thread::thread_idx_x() as usize);
        if child < 1 << D {
            let before = chunk.total.begins().get(child as u32);
            bases.store(child, self.begin_of(offsets, child).wrapping_sub(before));
        }
        chunk.sort::<FULL>();
        let mut splits = 0;
        for child in 0..1 << D {
            splits |= u32::from(self.len_of(offsets, child) >= splits_from) << child;
        }
        chunk.store::<FULL>(splits, to, |child| bases.load(child));
    }

    /// Returns the index of this tile's count of a child.
    #[inline(always)]
    fn count_index(&self, child: usize) -> usize {
        (self.first_tile << D) + child * self.num_tiles + self.index
    }

    /// Returns the index in the output of this tile's first point of a child.
    #[inline(always)]
    unsafe fn begin_of(&self, offsets: Slice<'_, u32>, child: usize) -> u32 {
        self.parent_start + (offsets.load(self.count_index(child)) - offsets.load(self.first_tile << D))
    }

    /// Returns the number of points of a child in all tiles.
    #[inline(always)]
    unsafe fn len_of(&self, offsets: Slice<'_, u32>, child: usize) -> u32 {
        let first = (self.first_tile << D) + child * self.num_tiles;
        offsets.load(first + self.num_tiles) - offsets.load(first)
    }
}

/// Writes the children of the nodes that split, given the scanned counts of their tiles. One thread per child.
#[kernel(family = "research-quadtree", block = PER_ITEM_THREADS, hot)]
#[instances(D = [2, 3])]
pub unsafe fn quadtree_level_children<const D: usize>(
    children: ChildWriter<'_>,
    tiles: Slice<u32>,
    offsets: Slice<u32>,
) {
    let i = thread::index_1d_u64() as usize;
    let (k, child) = (i >> D, i & ((1 << D) - 1));
    let node = Node { start: 0, end: 0, first_child: 0, level: 0 };
    let mut parent = Parent { k, number: 0, node, is_null: true };
    if k < children.parents.len() {
        parent = children.parent(k);
        let (first, num) = (tiles.load(k) as usize, (tiles.load(k + 1) - tiles.load(k)) as usize);
        let offset = |child| offsets.load((first << D) + child * num) - offsets.load(first << D);
        let start = parent.node.start;
        children.write::<D>(&parent, child, start + offset(child), start + offset(child + 1));
    }
    // The children of a parent are lanes of one warp: all have loaded the parent before one lane overwrites it.
    warp::sync_warp(warp::FULL_MASK);
    if k < children.parents.len() && child == 0 {
        children.write_parent::<D>(&parent);
    }
}

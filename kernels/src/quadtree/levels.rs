//! Level by level, as Gluck 2014 builds a quadtree: the points of each node that splits go through a bucket sort with a bucket a child, by
//! blocks or by a single thread.
//!
//! By blocks it has four steps, where a thread owns a piece of points that follow each other, so that their order stays: count the points
//! of each child, add the counts up, find how many come before each thread's, move. As in the paper a block has a whole node; but of nodes
//! that are too large for that it has a tile, and the second step goes over all tiles, so that the few nodes of the upper levels keep the
//! whole device busy. By threads, each has a whole node: for when all nodes are small.
//!
//! What is moved are ids with the [codes](Frame::code) of the next levels, in which the child that a point is in has its digit; in the paper
//! points are moved, and compared with the middle of their node on each level.
//!
//! Nodes without points are made where their siblings have some, and never split, so that Gluck's null nodes do not exist.

use super::frame::Frame;
use super::node::Node;
use crate::policy::{PER_ITEM_THREADS, QUADTREE_PIECE_POINTS, QUADTREE_TILE_THREADS};
use crate::thread::coord::Coord;
use crate::thread::operator::Sum;
use crate::thread::point::load_point;
use crate::thread::search::partition_point;
use crate::thread::words::{Bits128, computed};
use crate::warp::scan::inclusive;
use cuda_std::prelude::*;
use cuda_std::warp::WarpReductionOp;

/// Points of a tile.
pub const TILE_POINTS: u32 = (QUADTREE_TILE_THREADS * QUADTREE_PIECE_POINTS) as u32;

/// Blocks of so many threads that a multiprocessor has at least: up to half of its threads, with 64 registers each, or 80 in space.
const fn min_blocks(dims: usize, threads: usize) -> usize {
    let most = if dims == 2 { 1024 } else { 768 };
    if threads < 32 { 32 } else { most / threads }
}

/// Blocks with tiles: with 48 registers a thread; in space those are too few.
const fn min_tiles(dims: usize) -> usize {
    if dims == 2 { 5 } else { min_blocks(dims, QUADTREE_TILE_THREADS) }
}

/// Most children of a node.
const MOST_CHILDREN: usize = 8;

/// Words that kernels tell the host of a level.
pub mod told {
    /// How many children split.
    pub const SPLITS: usize = 0;
    /// How many tiles these have.
    pub const TILES: usize = 1;
    /// How many points the largest of them has.
    pub const LARGEST: usize = 2;
    /// Number of words.
    pub const LEN: usize = 3;
}

/// Writes how many tiles each of the nodes on a list has, of which there are as many as `told` says, and tells how many points the largest
/// has; 0 behind them. A thread a number.
#[kernel(family = "quadtree", block = PER_ITEM_THREADS)]
pub unsafe fn quadtree_tiles(
    nodes: Slice<Bits128>,
    parents: Slice<u32>,
    told: SliceMut<u64>,
    tiles: SliceMut<u32>,
) {
    let i = thread::index_1d_u64() as usize;
    let mut len = 0;
    if i < tiles.len() {
        if (i as u64) < told.load(told::SPLITS) {
            len = Node::from_bits(nodes.load(parents.load(i) as usize)).len();
        }
        tiles.store(i, len.div_ceil(TILE_POINTS));
    }
    let largest = warp::warp_reduce(warp::FULL_MASK, len, WarpReductionOp::Max);
    if warp::lane_id() == 0 && largest > 0 {
        told.atomic_max(told::LARGEST, largest.into(), Ordering::Relaxed, Scope::Device);
    }
}

/// Writes the number of all tiles, the last of the scanned ones; one thread.
#[kernel(family = "quadtree", block = 32)]
pub unsafe fn quadtree_tell(tiles: Slice<u32>, told: SliceMut<u64>) {
    if thread::index_1d() == 0 {
        told.store(told::TILES, tiles.load(tiles.len() - 1).into());
    }
}

/// Writes which node on the list each tile is of, given the scanned numbers; a thread a tile.
#[kernel(family = "quadtree", block = PER_ITEM_THREADS)]
pub unsafe fn quadtree_tile_nodes(tiles: Slice<u32>, of_tiles: SliceMut<u32>) {
    let i = thread::index_1d_u64() as usize;
    if i < of_tiles.len() {
        of_tiles.store(i, partition_point(0, tiles.len() - 1, |k| tiles.load(k) as usize <= i) as u32 - 1);
    }
}

/// Writes the codes of the points of nodes that split, from `level` on; a block a tile.
#[kernel(family = "quadtree-levels", block = QUADTREE_TILE_THREADS, hot)]
#[instances(C = [f32, f64], D = [2, 3])]
pub unsafe fn quadtree_level_codes<C: Coord, const D: usize>(
    coords: Slice<C>,
    frame: Slice<u64>,
    level: u32,
    num_levels: u32,
    nodes: Slice<Bits128>,
    parents: Slice<u32>,
    tiles: Slice<u32>,
    of_tiles: Slice<u32>,
    ids: Slice<u32>,
    codes: SliceMut<u32>,
) {
    let (tile, frame) = (Tile::<D>::new(nodes, parents, tiles, of_tiles), Frame::<D>::load(frame));
    let mut i = tile.begin + thread::thread_idx_x() as usize;
    while i < tile.end {
        let unit = frame.unit(load_point::<C, D>(coords, ids.load(i) as usize, D));
        codes.store(i, frame.code(unit, level, num_levels));
        i += QUADTREE_TILE_THREADS;
    }
}

/// The points of a level: codes and ids of those whose nodes split.
#[derive(Clone, Copy)]
struct Points<'a, const D: usize> {
    codes: Slice<'a, u32>,
    ids: Slice<'a, u32>,
    /// Bits of a code behind the digit of the level.
    shift: u32,
}

impl<const D: usize> Points<'_, D> {
    /// The child that a point is in.
    #[inline(always)]
    fn child(&self, code: u32) -> u32 {
        code >> self.shift & ((1 << D) - 1)
    }
}

/// Where points go: those of leaves to the tree, others to where the next level finds them.
struct Targets<'a> {
    next_codes: SliceMut<'a, u32>,
    next_ids: SliceMut<'a, u32>,
    tree_ids: SliceMut<'a, u32>,
}

impl Targets<'_> {
    #[inline(always)]
    unsafe fn store(&self, splits: bool, place: u32, code: u32, id: u32) {
        if splits {
            self.next_codes.store(place as usize, code);
            self.next_ids.store(place as usize, id);
        } else {
            self.tree_ids.store(place as usize, id);
        }
    }
}

/// Shared memory of a block.
#[repr(C)]
pub struct LevelSmem<const THREADS: usize> {
    /// A piece of points a thread, codes in front of ids, with one free place in 16; or of each child a row, a count a thread.
    points: [[u64; THREADS]; QUADTREE_PIECE_POINTS + 1],
    counts: [[u64; THREADS]; 2],
    /// Where the points of each child begin, and those of the next piece of them.
    begins: [u32; MOST_CHILDREN],
    next: [u32; MOST_CHILDREN],
    /// What a place among the points of the block, in the order of children, is to be added to.
    bases: [u32; MOST_CHILDREN],
}

/// The place of point `i` in shared memory, so that the threads' pieces begin in different banks.
#[inline(always)]
fn padded(i: u32) -> usize {
    (i + i / 16) as usize
}

/// A number of up to 8 bits a child.
struct Few<const D: usize>([u32; 2]);

impl<const D: usize> Few<D> {
    #[inline(always)]
    fn add(&mut self, child: u32) {
        let one = 1 << (8 * (child % 4));
        if D == 2 || child < 4 {
            self.0[0] += one;
        } else {
            self.0[1] += one;
        }
    }

    /// The same numbers.
    #[inline(always)]
    fn counts(self) -> Counts<D> {
        Counts(self.0.map(|word| {
            let pairs = (u64::from(word) | u64::from(word) << 16) & 0x0000_FFFF_0000_FFFF;
            (pairs | pairs << 8) & 0x00FF_00FF_00FF_00FF
        }))
    }
}

/// A number of up to 16 bits a child.
#[derive(Clone, Copy)]
struct Counts<const D: usize>([u64; 2]);

impl<const D: usize> Counts<D> {
    #[inline(always)]
    fn add(&mut self, child: u32) {
        let one = 1 << (16 * (child % 4));
        if D == 2 || child < 4 {
            self.0[0] += one;
        } else {
            self.0[1] += one;
        }
    }

    #[inline(always)]
    fn of(&self, child: u32) -> u32 {
        let word = if D == 2 || child < 4 { self.0[0] } else { self.0[1] };
        (word >> (16 * (child % 4))) as u32 & 0xFFFF
    }

    #[inline(always)]
    fn plus(self, other: Self) -> Self {
        Self([self.0[0] + other.0[0], self.0[1] + other.0[1]])
    }

    #[inline(always)]
    fn minus(self, other: Self) -> Self {
        Self([self.0[0] - other.0[0], self.0[1] - other.0[1]])
    }

    /// Of each child the sum of those before it.
    #[inline(always)]
    fn begins(self) -> Self {
        // A product with 1 in all places adds up what is before each and itself.
        const ONES: u64 = 0x0001_0001_0001_0001;
        let sums = self.0.map(|word| word.wrapping_mul(ONES));
        Self([sums[0] << 16, (sums[1] << 16).wrapping_add((sums[0] >> 48) * ONES)])
    }

    #[inline(always)]
    unsafe fn load(from: SharedSlice<'_, u64>, thread: usize, threads: usize) -> Self {
        Self([from.load(thread), if D == 2 { 0 } else { from.load(threads + thread) }])
    }

    #[inline(always)]
    unsafe fn store(self, to: SharedSlice<'_, u64>, thread: usize, threads: usize) {
        to.store(thread, self.0[0]);
        if D > 2 {
            to.store(threads + thread, self.0[1]);
        }
    }
}

/// Points of a node that follow each other, as many as a block has at one time: `PIECE` a thread, or fewer at the end.
struct Chunk<'a, const D: usize, const THREADS: usize, const PIECE: usize> {
    smem: *mut LevelSmem<THREADS>,
    points: &'a Points<'a, D>,
    len: u32,
    /// Those of the thread.
    own: [u64; PIECE],
    /// How many of each child the threads before have, and all.
    before: Counts<D>,
    total: Counts<D>,
}

impl<'a, const D: usize, const THREADS: usize, const PIECE: usize> Chunk<'a, D, THREADS, PIECE> {
    const MOST_POINTS: usize = THREADS * PIECE;

    /// True if there is point `i`; without a look if the chunk is `FULL`.
    #[inline(always)]
    fn has<const FULL: bool>(&self, i: u32) -> bool {
        FULL || i < self.len
    }

    /// Brings points to their threads, and counts them. All threads call.
    #[inline(always)]
    unsafe fn load<const FULL: bool>(
        smem: *mut LevelSmem<THREADS>,
        points: &'a Points<'a, D>,
        begin: usize,
        len: u32,
    ) -> Self {
        let none = Counts([0; 2]);
        let mut chunk = Self { smem, points, len, own: [0; PIECE], before: none, total: none };
        let (shared, thread) = (shared_field!(smem, points), thread::thread_idx_x());
        let mut j = 0;
        while j < PIECE {
            let i = (j * THREADS) as u32 + thread;
            if chunk.has::<FULL>(i) {
                let at = begin + i as usize;
                let (code, id) = (points.codes.load(at), points.ids.load(at));
                shared.store(padded(i), u64::from(code) | u64::from(id) << 32);
            }
            j += 1;
        }
        thread::sync_threads();
        let (first, mut own, mut j) = (thread * PIECE as u32, Few::<D>([0; 2]), 0);
        while j < PIECE {
            if chunk.has::<FULL>(first + j as u32) {
                chunk.own[j] = shared.load(padded(first + j as u32));
                own.add(points.child(chunk.own[j] as u32));
            }
            j += 1;
        }
        let own = own.counts();
        let (up_to, total) = scan::<D, THREADS>(own, shared_field!(smem, counts));
        (chunk.before, chunk.total) = (up_to.minus(own), total);
        chunk
    }

    /// Puts the points in the order of children. All threads call.
    #[inline(always)]
    unsafe fn sort<const FULL: bool>(&self) {
        let shared = shared_field!(self.smem, points);
        let first = thread::thread_idx_x() * PIECE as u32;
        let (mut places, mut j) = (self.before.plus(self.total.begins()), 0);
        while j < PIECE {
            if self.has::<FULL>(first + j as u32) {
                let child = self.points.child(self.own[j] as u32);
                shared.store(padded(places.of(child)), self.own[j]);
                places.add(child);
            }
            j += 1;
        }
        thread::sync_threads();
    }

    /// Stores the sorted points, those of a child from where `base` says that the chunk's first would be if all were of this child; of the
    /// children `splits` has a bit for those that split.
    #[inline(always)]
    unsafe fn store<const FULL: bool>(&self, splits: u32, to: &Targets<'_>, base: impl Fn(usize) -> u32) {
        let (shared, thread) = (shared_field!(self.smem, points), thread::thread_idx_x());
        let mut j = 0;
        while j < PIECE {
            let i = (j * THREADS) as u32 + thread;
            if self.has::<FULL>(i) {
                let point = shared.load(padded(i));
                let child = self.points.child(point as u32);
                let place = base(child as usize).wrapping_add(i);
                to.store(splits >> child & 1 == 1, place, point as u32, (point >> 32) as u32);
            }
            j += 1;
        }
    }
}

/// The sums of the threads' counts up to each and its own, and of all. All threads call.
#[inline(always)]
unsafe fn scan<const D: usize, const THREADS: usize>(
    own: Counts<D>,
    counts: SharedSlice<'_, u64>,
) -> (Counts<D>, Counts<D>) {
    let (mut up_to, thread) = (own, thread::thread_idx_x() as usize);
    if THREADS < 32 {
        let mut distance = 1;
        own.store(counts, thread, THREADS);
        while distance < THREADS as u32 {
            thread::sync_threads();
            if thread >= distance as usize {
                up_to = up_to.plus(Counts::load(counts, thread - distance as usize, THREADS));
            }
            thread::sync_threads();
            up_to.store(counts, thread, THREADS);
            distance = computed(2 * distance);
        }
        thread::sync_threads();
        return (up_to, Counts::load(counts, THREADS - 1, THREADS));
    }
    up_to.0[0] = inclusive::<u64, Sum>(own.0[0]);
    if D > 2 {
        up_to.0[1] = inclusive::<u64, Sum>(own.0[1]);
    }
    let (of_warp, mut total) = (thread / 32, Counts([0; 2]));
    if warp::lane_id() == 31 {
        up_to.store(counts, of_warp, THREADS);
    }
    thread::sync_threads();
    let mut other = 0;
    while other < THREADS / 32 {
        let of_other = Counts::load(counts, other, THREADS);
        total = total.plus(of_other);
        if other < of_warp {
            up_to = up_to.plus(of_other);
        }
        other += 1;
    }
    (up_to, total)
}

/// Counts the points of each child among some that follow each other, into the first number of each row of `points`. All threads call.
#[inline(always)]
unsafe fn count<const D: usize, const THREADS: usize>(
    smem: *mut LevelSmem<THREADS>,
    points: &Points<'_, D>,
    begin: usize,
    end: usize,
) {
    let (rows, thread) = (shared_field!(smem, points), thread::thread_idx_x() as usize);
    let (mut counts, mut i) = ([0; MOST_CHILDREN], begin + thread);
    while i < end {
        count_child(&mut counts, points, points.codes.load(i));
        i += THREADS;
    }
    let mut child = 0;
    while child < 1 << D {
        rows.store(child * THREADS + thread, counts[child].into());
        child += 1;
    }
    thread::sync_threads();
    // The threads of the upper half give theirs to those of the lower.
    let mut half = THREADS as u32 / 2;
    while half > 0 {
        if thread < half as usize {
            let mut child = 0;
            while child < 1 << D {
                let at = child * THREADS + thread;
                rows.store(at, rows.load(at) + rows.load(at + half as usize));
                child += 1;
            }
        }
        thread::sync_threads();
        half = computed(half / 2);
    }
}

/// Adds a point to the counts of children, which stay in registers.
#[inline(always)]
fn count_child<const D: usize>(counts: &mut [u32; MOST_CHILDREN], points: &Points<'_, D>, code: u32) {
    let (of, mut child) = (points.child(code), 0);
    while child < 1 << D {
        counts[child] += u32::from(of == child as u32);
        child += 1;
    }
}

/// Counts the points of each child in each tile: behind those of the parents before a row a child, a number a tile; at last a 0. A block
/// a tile.
#[kernel(family = "quadtree-levels", block = QUADTREE_TILE_THREADS, shared = LevelSmem<QUADTREE_TILE_THREADS>, hot)]
#[instances(D = [2, 3])]
pub unsafe fn quadtree_level_count<const D: usize>(
    codes: Slice<u32>,
    shift: u32,
    nodes: Slice<Bits128>,
    parents: Slice<u32>,
    tiles: Slice<u32>,
    of_tiles: Slice<u32>,
    counts: SliceMut<u32>,
) {
    let tile = Tile::<D>::new(nodes, parents, tiles, of_tiles);
    tile.count(
        shared_mem::<LevelSmem<QUADTREE_TILE_THREADS>>(),
        &Points { codes, ids: codes, shift },
        counts,
    );
}

/// Moves the points of each tile to where those of its children are, given such counts, scanned: those of leaves to the tree, others to
/// where the next level finds them. A block a tile.
#[kernel(family = "quadtree-levels", block = QUADTREE_TILE_THREADS, min_blocks = min_tiles(D), shared = LevelSmem<QUADTREE_TILE_THREADS>, hot)]
#[instances(D = [2, 3])]
pub unsafe fn quadtree_level_move<const D: usize>(
    codes: Slice<u32>,
    ids: Slice<u32>,
    shift: u32,
    nodes: Slice<Bits128>,
    parents: Slice<u32>,
    tiles: Slice<u32>,
    of_tiles: Slice<u32>,
    offsets: Slice<u32>,
    splits_from: u32,
    next_codes: SliceMut<u32>,
    next_ids: SliceMut<u32>,
    tree_ids: SliceMut<u32>,
) {
    let (tile, points) = (Tile::<D>::new(nodes, parents, tiles, of_tiles), Points { codes, ids, shift });
    let (smem, to) =
        (shared_mem::<LevelSmem<QUADTREE_TILE_THREADS>>(), Targets { next_codes, next_ids, tree_ids });
    tile.move_points(smem, &points, offsets, splits_from, &to);
}

type TileChunk<'a, const D: usize> = Chunk<'a, D, QUADTREE_TILE_THREADS, QUADTREE_PIECE_POINTS>;

/// A tile of a parent's points.
struct Tile<const D: usize> {
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
        of_tiles: Slice<'_, u32>,
    ) -> Self {
        let block = thread::block_idx_x();
        let k = of_tiles.load(block as usize) as usize;
        let (first, next) = (tiles.load(k), tiles.load(k + 1));
        let node = Node::from_bits(nodes.load(parents.load(k) as usize));
        let begin = u64::from(node.start) + u64::from(block - first) * u64::from(TILE_POINTS);
        let end = begin + u64::from(TILE_POINTS);
        let end = if end < node.end.into() { end } else { node.end.into() };
        Self {
            start: node.start,
            first: first as usize,
            num: (next - first) as usize,
            own: (block - first) as usize,
            begin: begin as usize,
            end: end as usize,
        }
    }

    /// Counts the points of each child. All threads call.
    #[inline(always)]
    unsafe fn count(
        &self,
        smem: *mut LevelSmem<QUADTREE_TILE_THREADS>,
        points: &Points<'_, D>,
        counts: SliceMut<'_, u32>,
    ) {
        let (mut own, mut j, thread) = (Counts::<D>([0; 2]), 0, thread::thread_idx_x() as usize);
        while j < QUADTREE_PIECE_POINTS {
            let i = self.begin + j * QUADTREE_TILE_THREADS + thread;
            if i < self.end {
                own.add(points.child(points.codes.load(i)));
            }
            j += 1;
        }
        let (_, total) = scan::<D, QUADTREE_TILE_THREADS>(own, shared_field!(smem, counts));
        if thread < 1 << D {
            counts.store(self.of_child(thread), total.of(thread as u32));
        }
        if thread::block_idx_x() == 0 && thread == 0 {
            counts.store(counts.len() - 1, 0);
        }
    }

    /// Moves the points, given the scanned counts; children of at least `splits_from` points split. All threads call.
    #[inline(always)]
    unsafe fn move_points(
        &self,
        smem: *mut LevelSmem<QUADTREE_TILE_THREADS>,
        points: &Points<'_, D>,
        offsets: Slice<'_, u32>,
        splits_from: u32,
        to: &Targets<'_>,
    ) {
        if self.end - self.begin == TILE_POINTS as usize {
            self.move_chunk::<true>(smem, points, offsets, splits_from, to);
        } else {
            self.move_chunk::<false>(smem, points, offsets, splits_from, to);
        }
    }

    #[inline(always)]
    unsafe fn move_chunk<const FULL: bool>(
        &self,
        smem: *mut LevelSmem<QUADTREE_TILE_THREADS>,
        points: &Points<'_, D>,
        offsets: Slice<'_, u32>,
        splits_from: u32,
        to: &Targets<'_>,
    ) {
        let len = (self.end - self.begin) as u32;
        let chunk = TileChunk::load::<FULL>(smem, points, self.begin, len);
        let (bases, child) = (shared_field!(smem, bases), thread::thread_idx_x() as usize);
        if child < 1 << D {
            let before = chunk.total.begins().of(child as u32);
            bases.store(child, self.begin_of(offsets, child).wrapping_sub(before));
        }
        chunk.sort::<FULL>();
        let (mut splits, mut child) = (0, 0);
        while child < 1 << D {
            splits |= u32::from(self.len_of(offsets, child) >= splits_from) << child;
            child += 1;
        }
        chunk.store::<FULL>(splits, to, |child| bases.load(child));
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
}

/// Where the children of the nodes that split are written, and which of them split in turn.
#[derive(Clone, Copy)]
struct Children<'a, const D: usize> {
    frame: Slice<'a, u64>,
    nodes: SliceMut<'a, Bits128>,
    cells: SliceMut<'a, u32>,
    /// A node with as many points splits.
    splits_from: u32,
    first_node: u32,
    /// Of each child its node, and whether it splits.
    numbers: SliceMut<'a, u32>,
    flags: SliceMut<'a, u8>,
}

/// A node that splits.
struct Parent {
    /// Its place on the list of these, and its number.
    k: usize,
    number: u32,
    node: Node,
}

impl<const D: usize> Children<'_, D> {
    /// A node on a list.
    #[inline(always)]
    unsafe fn parent(&self, parents: Slice<'_, u32>, k: usize) -> Parent {
        let number = parents.load(k);
        Parent { k, number, node: Node::from_bits(self.nodes.load(number as usize)) }
    }

    /// Writes a child.
    #[inline(always)]
    unsafe fn write(&self, parent: &Parent, child: usize, start: u32, end: u32) {
        let (at, level) = ((parent.k << D) + child, parent.node.level + 1);
        let own = Node { start, end, first_child: 0, level };
        let number = self.first_node as usize + at;
        self.nodes.store(number, own.to_bits());
        let (side, mut axis) = (1 << (Frame::<D>::load(self.frame).levels - level), 0);
        while axis < D {
            let is_upper = (child >> (D - 1 - axis) & 1) as u32;
            let corner = self.cells.load(parent.number as usize * D + axis);
            self.cells.store(number * D + axis, corner + is_upper * side);
            axis += 1;
        }
        self.numbers.store(at, number as u32);
        self.flags.store(at, u8::from(own.len() >= self.splits_from));
    }

    /// Writes where the children of a node are.
    #[inline(always)]
    unsafe fn write_parent(&self, parent: &Parent) {
        let first_child = self.first_node + ((parent.k as u32) << D);
        self.nodes.store(parent.number as usize, Node { first_child, ..parent.node }.to_bits());
    }
}

/// Writes the children of the nodes that split, given the scanned counts of their tiles; a thread a child.
#[kernel(family = "quadtree", block = PER_ITEM_THREADS, hot)]
#[instances(D = [2, 3])]
pub unsafe fn quadtree_level_children<const D: usize>(
    frame: Slice<u64>,
    nodes: SliceMut<Bits128>,
    cells: SliceMut<u32>,
    parents: Slice<u32>,
    tiles: Slice<u32>,
    offsets: Slice<u32>,
    splits_from: u32,
    first_node: u32,
    numbers: SliceMut<u32>,
    flags: SliceMut<u8>,
) {
    let i = thread::index_1d_u64() as usize;
    let (k, child) = (i >> D, i & ((1 << D) - 1));
    let children = Children::<D> { frame, nodes, cells, splits_from, first_node, numbers, flags };
    let mut parent = Parent { k, number: 0, node: Node { start: 0, end: 0, first_child: 0, level: 0 } };
    if k < parents.len() {
        parent = children.parent(parents, k);
        let (first, num) = (tiles.load(k) as usize, (tiles.load(k + 1) - tiles.load(k)) as usize);
        let offset = |child| offsets.load((first << D) + child * num) - offsets.load(first << D);
        let start = parent.node.start;
        children.write(&parent, child, start + offset(child), start + offset(child + 1));
    }
    // All children are of one warp, and have read their parent.
    warp::sync_warp(warp::FULL_MASK);
    if k < parents.len() && child == 0 {
        children.write_parent(&parent);
    }
}

/// The same with the moves, a block a node with all its points.
#[kernel(family = "quadtree-levels", block = THREADS, min_blocks = min_blocks(D, THREADS), shared = LevelSmem<THREADS>, hot)]
#[instances(D = [2], THREADS = [32, 64, 128, 4, 8, 16, 256, 512])]
#[instances(D = [3], THREADS = [32, 64, 128])]
pub unsafe fn quadtree_level_by_block<const D: usize, const THREADS: usize>(
    codes: Slice<u32>,
    ids: Slice<u32>,
    shift: u32,
    frame: Slice<u64>,
    nodes: SliceMut<Bits128>,
    cells: SliceMut<u32>,
    parents: Slice<u32>,
    splits_from: u32,
    first_node: u32,
    next_codes: SliceMut<u32>,
    next_ids: SliceMut<u32>,
    tree_ids: SliceMut<u32>,
    numbers: SliceMut<u32>,
    flags: SliceMut<u8>,
) {
    let (points, to) = (Points { codes, ids, shift }, Targets { next_codes, next_ids, tree_ids });
    let children = Children::<D> { frame, nodes, cells, splits_from, first_node, numbers, flags };
    let parent = children.parent(parents, thread::block_idx_x() as usize);
    split_by_block::<D, THREADS>(shared_mem::<LevelSmem<THREADS>>(), &parent, &points, &to, &children);
}

/// Splits a node by a block. All threads call.
#[inline(always)]
unsafe fn split_by_block<const D: usize, const THREADS: usize>(
    smem: *mut LevelSmem<THREADS>,
    parent: &Parent,
    points: &Points<'_, D>,
    to: &Targets<'_>,
    children: &Children<'_, D>,
) {
    // Threads have no more points than there are for each of them: they look at none in vain.
    match parent.node.len() as usize / THREADS {
        0 => split_at_once::<D, THREADS, 1>(smem, parent, points, to, children),
        1 => split_at_once::<D, THREADS, 2>(smem, parent, points, to, children),
        2 | 3 => split_at_once::<D, THREADS, 4>(smem, parent, points, to, children),
        4..QUADTREE_PIECE_POINTS => {
            split_at_once::<D, THREADS, QUADTREE_PIECE_POINTS>(smem, parent, points, to, children);
        }
        _ => split_by_chunks::<D, THREADS>(smem, parent, points, to, children),
    }
    if thread::thread_idx_x() == 0 {
        children.write_parent(parent);
    }
}

/// Splits a node of fewer points than the threads have with `PIECE` each. All threads call.
#[inline(always)]
unsafe fn split_at_once<const D: usize, const THREADS: usize, const PIECE: usize>(
    smem: *mut LevelSmem<THREADS>,
    parent: &Parent,
    points: &Points<'_, D>,
    to: &Targets<'_>,
    children: &Children<'_, D>,
) {
    let Node { start, .. } = parent.node;
    let chunk = Chunk::<D, THREADS, PIECE>::load::<false>(smem, points, start as usize, parent.node.len());
    let (begins, mut splits, mut child) = (chunk.total.begins(), 0, 0);
    while child < 1 << D {
        splits |= u32::from(chunk.total.of(child) >= children.splits_from) << child;
        child += 1;
    }
    chunk.sort::<false>();
    chunk.store::<false>(splits, to, |_| start);
    let mut child = thread::thread_idx_x();
    while child < 1 << D {
        let begin = start + begins.of(child);
        children.write(parent, child as usize, begin, begin + chunk.total.of(child));
        child += THREADS as u32;
    }
}

/// Splits a node of any number of points. All threads call.
#[inline(always)]
unsafe fn split_by_chunks<const D: usize, const THREADS: usize>(
    smem: *mut LevelSmem<THREADS>,
    parent: &Parent,
    points: &Points<'_, D>,
    to: &Targets<'_>,
    children: &Children<'_, D>,
) {
    let (begins, next) = (shared_field!(smem, begins), shared_field!(smem, next));
    let (rows, bases) = (shared_field!(smem, points), shared_field!(smem, bases));
    let (node, thread) = (parent.node, thread::thread_idx_x() as usize);
    let (mut at, end) = (node.start as usize, node.end as usize);
    count::<D, THREADS>(smem, points, at, end);
    if thread == 0 {
        let (mut begin, mut child) = (node.start, 0);
        while child < 1 << D {
            begins.store(child, begin);
            next.store(child, begin);
            begin += rows.load(child * THREADS) as u32;
            child += 1;
        }
    }
    thread::sync_threads();
    let (mut splits, mut child) = (0, 0);
    while child < 1 << D {
        let len = end_of::<D>(begins, child, node.end) - begins.load(child);
        splits |= u32::from(len >= children.splits_from) << child;
        child += 1;
    }
    let most = Chunk::<D, THREADS, QUADTREE_PIECE_POINTS>::MOST_POINTS;
    while at < end {
        let len = if end - at < most { end - at } else { most };
        let chunk = Chunk::<D, THREADS, QUADTREE_PIECE_POINTS>::load::<false>(smem, points, at, len as u32);
        let mut child = thread;
        while child < 1 << D {
            let (begin, of) = (next.load(child), child as u32);
            bases.store(child, begin.wrapping_sub(chunk.total.begins().of(of)));
            next.store(child, begin + chunk.total.of(of));
            child += THREADS;
        }
        chunk.sort::<false>();
        // The next chunk's points go where the same thread read these.
        chunk.store::<false>(splits, to, |child| bases.load(child));
        at += len;
    }
    let mut child = thread;
    while child < 1 << D {
        children.write(parent, child, begins.load(child), end_of::<D>(begins, child, node.end));
        child += THREADS;
    }
}

/// Where the points of a child end.
#[inline(always)]
unsafe fn end_of<const D: usize>(begins: SharedSlice<'_, u32>, child: usize, end: u32) -> u32 {
    if child + 1 < 1 << D { begins.load(child + 1) } else { end }
}

/// The same, a thread a node with all its points.
#[kernel(family = "quadtree-levels", block = PER_ITEM_THREADS, hot)]
#[instances(D = [2, 3])]
pub unsafe fn quadtree_level_by_thread<const D: usize>(
    codes: Slice<u32>,
    ids: Slice<u32>,
    shift: u32,
    frame: Slice<u64>,
    nodes: SliceMut<Bits128>,
    cells: SliceMut<u32>,
    parents: Slice<u32>,
    splits_from: u32,
    first_node: u32,
    next_codes: SliceMut<u32>,
    next_ids: SliceMut<u32>,
    tree_ids: SliceMut<u32>,
    numbers: SliceMut<u32>,
    flags: SliceMut<u8>,
) {
    let k = thread::index_1d_u64() as usize;
    if k < parents.len() {
        let (points, to) = (Points { codes, ids, shift }, Targets { next_codes, next_ids, tree_ids });
        let children = Children::<D> { frame, nodes, cells, splits_from, first_node, numbers, flags };
        split_by_thread::<D>(&children.parent(parents, k), &points, &to, &children);
    }
}

/// Splits a node by a thread.
#[inline(always)]
unsafe fn split_by_thread<const D: usize>(
    parent: &Parent,
    points: &Points<'_, D>,
    to: &Targets<'_>,
    children: &Children<'_, D>,
) {
    let node = parent.node;
    let (mut counts, mut i) = ([0; MOST_CHILDREN], node.start);
    while i < node.end {
        count_child(&mut counts, points, points.codes.load(i as usize));
        i += 1;
    }
    let (mut next, mut splits, mut begin, mut child) = ([0; MOST_CHILDREN], 0, node.start, 0);
    while child < 1 << D {
        let end = begin + counts[child];
        children.write(parent, child, begin, end);
        splits |= u32::from(counts[child] >= children.splits_from) << child;
        next[child] = begin;
        begin = end;
        child += 1;
    }
    children.write_parent(parent);
    let mut i = node.start;
    while i < node.end {
        let (code, id) = (points.codes.load(i as usize), points.ids.load(i as usize));
        let of = points.child(code);
        // In registers, which no number of a child finds by itself.
        let (mut place, mut child) = (0, 0);
        while child < 1 << D {
            place = if of == child as u32 { next[child] } else { place };
            next[child] += u32::from(of == child as u32);
            child += 1;
        }
        to.store(splits >> of & 1 == 1, place, code, id);
        i += 1;
    }
}

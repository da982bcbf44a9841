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
#[instance(f32, 2)]
#[instance(f32, 3)]
#[instance(f64, 2)]
#[instance(f64, 3)]
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
    /// Codes and ids of a piece a thread, with one free word in 32; or of each child a row, a count a thread.
    codes: [[u32; THREADS]; QUADTREE_PIECE_POINTS + 1],
    ids: [[u32; THREADS]; QUADTREE_PIECE_POINTS + 1],
    counts: [[u64; THREADS]; 2],
    /// Where the points of each child begin, and those of the next piece of them.
    begins: [u32; MOST_CHILDREN],
    next: [u32; MOST_CHILDREN],
    /// What a place among the points of the block, in the order of children, is to be added to.
    bases: [u32; MOST_CHILDREN],
}

/// The place of point `i` in shared memory, so that the threads' pieces begin in different banks.
#[inline(always)]
fn padded(i: usize) -> usize {
    i + i / 32
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

/// Points of a node that follow each other, as many as a block has at one time.
struct Chunk<'a, const D: usize, const THREADS: usize> {
    smem: *mut LevelSmem<THREADS>,
    points: &'a Points<'a, D>,
    len: usize,
    /// Those of the thread.
    codes: [u32; QUADTREE_PIECE_POINTS],
    ids: [u32; QUADTREE_PIECE_POINTS],
    /// How many of each child the threads before have, and all.
    before: Counts<D>,
    total: Counts<D>,
}

impl<'a, const D: usize, const THREADS: usize> Chunk<'a, D, THREADS> {
    const MOST_POINTS: usize = THREADS * QUADTREE_PIECE_POINTS;

    /// Brings points to their threads, and counts them. All threads call.
    #[inline(always)]
    unsafe fn load(
        smem: *mut LevelSmem<THREADS>,
        points: &'a Points<'a, D>,
        begin: usize,
        len: usize,
    ) -> Self {
        let (codes, ids) = (shared_field!(smem, codes), shared_field!(smem, ids));
        let (counts, thread) = (shared_field!(smem, counts), thread::thread_idx_x() as usize);
        let mut j = 0;
        while j < QUADTREE_PIECE_POINTS {
            let i = j * THREADS + thread;
            if i < len {
                codes.store(padded(i), points.codes.load(begin + i));
                ids.store(padded(i), points.ids.load(begin + i));
            }
            j += 1;
        }
        thread::sync_threads();
        let (mut own_codes, mut own_ids) = ([0; QUADTREE_PIECE_POINTS], [0; QUADTREE_PIECE_POINTS]);
        let (first, per_thread) = Self::piece(len);
        let (mut own, mut j) = (Counts([0; 2]), 0);
        while j < QUADTREE_PIECE_POINTS {
            if j < per_thread && first + j < len {
                own_codes[j] = codes.load(padded(first + j));
                own_ids[j] = ids.load(padded(first + j));
                own.add(points.child(own_codes[j]));
            }
            j += 1;
        }
        let (up_to, total) = scan::<D, THREADS>(own, counts);
        Self { smem, points, len, codes: own_codes, ids: own_ids, before: up_to.minus(own), total }
    }

    /// Where the thread's piece begins among so many points, and how long it is; beyond them there is nothing.
    #[inline(always)]
    fn piece(len: usize) -> (usize, usize) {
        // Tiles are full, but for the last of a node.
        let is_tile = THREADS >= QUADTREE_TILE_THREADS;
        let per_thread = if is_tile { QUADTREE_PIECE_POINTS } else { len.div_ceil(THREADS) };
        (thread::thread_idx_x() as usize * per_thread, per_thread)
    }

    /// Moves the points to the `next` of their children, which then follows them; of the children `splits` has a bit for those that split.
    /// All threads call.
    #[inline(always)]
    unsafe fn place(self, splits: u32, to: &Targets<'_>) {
        let (codes, ids) = (shared_field!(self.smem, codes), shared_field!(self.smem, ids));
        let (next, bases) = (shared_field!(self.smem, next), shared_field!(self.smem, bases));
        let (thread, begins) = (thread::thread_idx_x() as usize, self.total.begins());
        let mut child = thread;
        while child < 1 << D {
            let at = next.load(child);
            bases.store(child, at.wrapping_sub(begins.of(child as u32)));
            next.store(child, at + self.total.of(child as u32));
            child += THREADS;
        }
        let (first, per_thread) = Self::piece(self.len);
        let (mut places, mut j) = (self.before.plus(begins), 0);
        while j < QUADTREE_PIECE_POINTS {
            if j < per_thread && first + j < self.len {
                let child = self.points.child(self.codes[j]);
                let place = padded(places.of(child) as usize);
                codes.store(place, self.codes[j]);
                ids.store(place, self.ids[j]);
                places.add(child);
            }
            j += 1;
        }
        thread::sync_threads();
        let mut j = 0;
        while j < QUADTREE_PIECE_POINTS {
            let i = j * THREADS + thread;
            if i < self.len {
                let (code, id) = (codes.load(padded(i)), ids.load(padded(i)));
                let child = self.points.child(code);
                let place = bases.load(child as usize).wrapping_add(i as u32);
                to.store(splits >> child & 1 == 1, place, code, id);
            }
            j += 1;
        }
        thread::sync_threads();
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

/// Counts the points of each child among some that follow each other, into the first number of each row of `codes`. All threads call.
#[inline(always)]
unsafe fn count<const D: usize, const THREADS: usize>(
    smem: *mut LevelSmem<THREADS>,
    points: &Points<'_, D>,
    begin: usize,
    end: usize,
) {
    let (rows, thread) = (shared_field!(smem, codes), thread::thread_idx_x() as usize);
    let (mut counts, mut i) = ([0; MOST_CHILDREN], begin + thread);
    while i < end {
        count_child(&mut counts, points, points.codes.load(i));
        i += THREADS;
    }
    let mut child = 0;
    while child < 1 << D {
        rows.store(child * THREADS + thread, counts[child]);
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
#[instance(2)]
#[instance(3)]
pub unsafe fn quadtree_level_count<const D: usize>(
    codes: Slice<u32>,
    shift: u32,
    nodes: Slice<Bits128>,
    parents: Slice<u32>,
    tiles: Slice<u32>,
    of_tiles: Slice<u32>,
    counts: SliceMut<u32>,
) {
    let (tile, smem) =
        (Tile::<D>::new(nodes, parents, tiles, of_tiles), shared_mem::<LevelSmem<QUADTREE_TILE_THREADS>>());
    let (points, thread) = (Points::<D> { codes, ids: codes, shift }, thread::thread_idx_x() as usize);
    let (mut own, mut j) = (Counts::<D>([0; 2]), 0);
    while j < QUADTREE_PIECE_POINTS {
        let i = tile.begin + j * QUADTREE_TILE_THREADS + thread;
        if i < tile.end {
            own.add(points.child(codes.load(i)));
        }
        j += 1;
    }
    let (_, total) = scan::<D, QUADTREE_TILE_THREADS>(own, shared_field!(smem, counts));
    if thread < 1 << D {
        counts.store(tile.of_child(thread), total.of(thread as u32));
    }
    if thread::block_idx_x() == 0 && thread == 0 {
        counts.store(counts.len() - 1, 0);
    }
}

/// Moves the points of each tile to where those of its children are, given such counts, scanned: those of leaves to the tree, others to
/// where the next level finds them. A block a tile.
#[kernel(family = "quadtree-levels", block = QUADTREE_TILE_THREADS, min_blocks = min_blocks(D, QUADTREE_TILE_THREADS), shared = LevelSmem<QUADTREE_TILE_THREADS>, hot)]
#[instance(2)]
#[instance(3)]
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
    let (tile, smem) =
        (Tile::<D>::new(nodes, parents, tiles, of_tiles), shared_mem::<LevelSmem<QUADTREE_TILE_THREADS>>());
    let (next, points) = (shared_field!(smem, next), Points { codes, ids, shift });
    let child = thread::thread_idx_x() as usize;
    if child < 1 << D {
        next.store(child, tile.begin_of(offsets, child));
    }
    let chunk = Chunk::<D, QUADTREE_TILE_THREADS>::load(smem, &points, tile.begin, tile.end - tile.begin);
    let (mut splits, mut child) = (0, 0);
    while child < 1 << D {
        splits |= u32::from(tile.len_of(offsets, child) >= splits_from) << child;
        child += 1;
    }
    chunk.place(splits, &Targets { next_codes, next_ids, tree_ids });
}

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

impl<const D: usize> Children<'_, D> {
    /// Writes a child of parent `k`.
    #[inline(always)]
    unsafe fn write(&self, k: usize, parent: u32, child: usize, level: u32, start: u32, end: u32) {
        let (own, at) = (Node { start, end, first_child: 0, level }, (k << D) + child);
        let number = self.first_node as usize + at;
        self.nodes.store(number, own.to_bits());
        let (side, mut axis) = (1 << (Frame::<D>::load(self.frame).levels - level), 0);
        while axis < D {
            let is_upper = (child >> (D - 1 - axis) & 1) as u32;
            let corner = self.cells.load(parent as usize * D + axis);
            self.cells.store(number * D + axis, corner + is_upper * side);
            axis += 1;
        }
        self.numbers.store(at, number as u32);
        self.flags.store(at, u8::from(own.len() >= self.splits_from));
    }

    /// Writes where the children of parent `k` are.
    #[inline(always)]
    unsafe fn write_parent(&self, k: usize, parent: u32, node: Node) {
        let first_child = self.first_node + ((k as u32) << D);
        self.nodes.store(parent as usize, Node { first_child, ..node }.to_bits());
    }
}

/// Writes the children of the nodes that split, given the scanned counts of their tiles; a thread a child.
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
    first_node: u32,
    numbers: SliceMut<u32>,
    flags: SliceMut<u8>,
) {
    let i = thread::index_1d_u64() as usize;
    let (k, child) = (i >> D, i & ((1 << D) - 1));
    let children = Children::<D> { frame, nodes, cells, splits_from, first_node, numbers, flags };
    let (mut parent, mut node) = (0, Node { start: 0, end: 0, first_child: 0, level: 0 });
    if k < parents.len() {
        parent = parents.load(k);
        node = Node::from_bits(nodes.load(parent as usize));
        let (first, num) = (tiles.load(k) as usize, (tiles.load(k + 1) - tiles.load(k)) as usize);
        let offset = |child| offsets.load((first << D) + child * num) - offsets.load(first << D);
        let (begin, end) = (node.start + offset(child), node.start + offset(child + 1));
        children.write(k, parent, child, node.level + 1, begin, end);
    }
    // All children are of one warp, and have read their parent.
    warp::sync_warp(warp::FULL_MASK);
    if k < parents.len() && child == 0 {
        children.write_parent(k, parent, node);
    }
}

/// The same with the moves, a block a node with all its points.
#[kernel(family = "quadtree-levels", block = THREADS, min_blocks = min_blocks(D, THREADS), shared = LevelSmem<THREADS>, hot)]
#[instance(2, 32)]
#[instance(3, 32)]
#[instance(3, 64)]
#[instance(3, 128)]
#[instance(2, 4)]
#[instance(2, 8)]
#[instance(2, 16)]
#[instance(2, 64)]
#[instance(2, 128)]
#[instance(2, 256)]
#[instance(2, 512)]
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
    let smem = shared_mem::<LevelSmem<THREADS>>();
    let (begins, next) = (shared_field!(smem, begins), shared_field!(smem, next));
    let (k, thread) = (thread::block_idx_x() as usize, thread::thread_idx_x() as usize);
    let (parent, points) = (parents.load(k), Points { codes, ids, shift });
    let node = Node::from_bits(nodes.load(parent as usize));
    let (mut at, end) = (node.start as usize, node.end as usize);
    let fits = end - at <= Chunk::<D, THREADS>::MOST_POINTS;
    if !fits {
        count::<D, THREADS>(smem, &points, at, end);
        let rows = shared_field!(smem, codes);
        if thread == 0 {
            let (mut begin, mut child) = (node.start, 0);
            while child < 1 << D {
                begins.store(child, begin);
                next.store(child, begin);
                begin += rows.load(child * THREADS);
                child += 1;
            }
        }
        thread::sync_threads();
    }
    let to = Targets { next_codes, next_ids, tree_ids };
    let mut splits = 0;
    while at < end {
        let left = end - at;
        let most = Chunk::<D, THREADS>::MOST_POINTS;
        let len = if left < most { left } else { most };
        let chunk = Chunk::<D, THREADS>::load(smem, &points, at, len);
        if fits {
            let of_children = chunk.total.begins();
            let mut child = thread;
            while child < 1 << D {
                let begin = node.start + of_children.of(child as u32);
                begins.store(child, begin);
                next.store(child, begin);
                child += THREADS;
            }
            thread::sync_threads();
        }
        if at == node.start as usize {
            let mut child = 0;
            while child < 1 << D {
                let len = end_of::<D>(begins, child, node.end) - begins.load(child);
                splits |= u32::from(len >= splits_from) << child;
                child += 1;
            }
        }
        chunk.place(splits, &to);
        at += len;
    }
    let children = Children::<D> { frame, nodes, cells, splits_from, first_node, numbers, flags };
    let mut child = thread;
    while child < 1 << D {
        let (begin, end) = (begins.load(child), end_of::<D>(begins, child, node.end));
        children.write(k, parent, child, node.level + 1, begin, end);
        child += THREADS;
    }
    if thread == 0 {
        children.write_parent(k, parent, node);
    }
}

/// Where the points of a child end.
#[inline(always)]
unsafe fn end_of<const D: usize>(begins: SharedSlice<'_, u32>, child: usize, end: u32) -> u32 {
    if child + 1 < 1 << D { begins.load(child + 1) } else { end }
}

/// The same, a thread a node with all its points.
#[kernel(family = "quadtree-levels", block = PER_ITEM_THREADS, hot)]
#[instance(2)]
#[instance(3)]
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
        let (parent, points) = (parents.load(k), Points::<D> { codes, ids, shift });
        let node = Node::from_bits(nodes.load(parent as usize));
        let (mut counts, mut i) = ([0; MOST_CHILDREN], node.start);
        while i < node.end {
            count_child(&mut counts, &points, codes.load(i as usize));
            i += 1;
        }
        let children = Children::<D> { frame, nodes, cells, splits_from, first_node, numbers, flags };
        let (mut next, mut splits, mut begin, mut child) = ([0; MOST_CHILDREN], 0, node.start, 0);
        while child < 1 << D {
            let end = begin + counts[child];
            children.write(k, parent, child, node.level + 1, begin, end);
            splits |= u32::from(counts[child] >= splits_from) << child;
            next[child] = begin;
            begin = end;
            child += 1;
        }
        children.write_parent(k, parent, node);
        let to = Targets { next_codes, next_ids, tree_ids };
        let mut i = node.start;
        while i < node.end {
            let (code, id) = (codes.load(i as usize), ids.load(i as usize));
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
}

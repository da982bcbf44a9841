//! Builds whole subtrees in shared memory: sorts their points once on each axis, then partitions these orders level by level (after Brown
//! 2015, *Building a Balanced k-d Tree in O(kn log n) Time*). A partition moves two bytes per point and axis.

use super::{Points, PointsMut, Run};
use crate::block::merge::{Tile, TileSmem};
use crate::kdtree::axes::Cell;
use crate::policy::SELECTION;
use crate::query::axes::Axes;
use crate::query::left_balanced::{full_tree, level};
use crate::thread::coord::Coord;
use crate::thread::order::{ByRank, Lookup};
use crate::thread::words::computed;
use crate::warp::scan::inclusive_sum;
use cuda_std::prelude::*;

const THREADS: usize = SELECTION.subtrees_threads;
const WARPS: usize = THREADS / 32;

/// Returns the number of positions of a block with `rows` positions per thread. A subtree has at most one point less.
const fn capacity(rows: usize) -> usize {
    THREADS * rows
}

/// Writes the nodes of every subtree of the level that begins at node `first_node`. One block per subtree. Subtrees have fewer than
/// `THREADS * ROWS` points of up to `DIMS` dimensions; `ITEMS` is odd and more than `ROWS`. If `PLANES` is 0, levels split on the axes of
/// `splits` in turn. If `PLANES` is `ROWS`, nodes split on the widest axis of their cell: then `cells` holds the cells of the level, and the
/// kernel writes the axes of all nodes to `axes`. If `nodes` has no coordinates, the coordinates are in the order of ids and are not moved.
#[kernel(
    family = "kdtree", block = THREADS, min_blocks = SELECTION.subtrees_min_blocks,
    shared = SubtreesSmem<C, DIMS, ROWS, ITEMS, PLANES>, hot
)]
#[instances(C = [f32, f64, i32], DIMS = [8], ROWS = [4], ITEMS = [5], PLANES = [0, 4])]
#[instances(C = [f32, i32], DIMS = [4], ROWS = [8], ITEMS = [9], PLANES = [0, 8])]
pub unsafe fn kdtree_subtrees<
    C: Coord,
    const DIMS: usize,
    const ROWS: usize,
    const ITEMS: usize,
    const PLANES: usize,
>(
    coords: Slice<C>,
    ids: Slice<u32>,
    splits: Axes<'_>,
    cells: Slice<C>,
    axes: SliceMut<u8>,
    first_node: u32,
    nodes: PointsMut<'_, C>,
) {
    let dims = splits.dims as usize;
    let num_points = (coords.len() / dims) as u32;
    let root = first_node + thread::block_idx_x();
    let subtree = Subtree::<C, DIMS, ROWS, ITEMS, PLANES> {
        points: Points { coords, ids, dims, by_id: nodes.coords.is_empty() },
        nodes,
        splits,
        cells,
        axes,
        num_points,
        run: Run::of(root, num_points),
        smem: shared_mem(),
    };
    if subtree.run.len > 0 {
        subtree.run();
    }
}

/// Shared memory of a subtree.
#[repr(C, align(16))]
pub struct SubtreesSmem<
    C: Coord,
    const DIMS: usize,
    const ROWS: usize,
    const ITEMS: usize,
    const PLANES: usize,
> {
    phases: Phases<C::Ranked, ROWS, ITEMS>,
    /// The points in the order of each axis.
    orders: [[[u16; THREADS]; ROWS]; DIMS],
    /// The split coordinate and the split axis of each node whose pivot is known. The root is node 1.
    planes: [[C; THREADS]; PLANES],
    axes: [[u8; THREADS]; PLANES],
}

/// Two phases that do not overlap.
#[repr(C, align(16))]
union Phases<R: Copy, const ROWS: usize, const ITEMS: usize> {
    sort: TileSmem<R, u32, THREADS, ITEMS>,
    levels: Levels<ROWS>,
}

/// The arrays of the partition of a level.
#[repr(C)]
#[derive(Clone, Copy)]
struct Levels<const ROWS: usize> {
    /// The side of each point.
    sides: [[u8; THREADS]; ROWS],
    /// For each position the node whose subtree contains it; with [`DONE`], the position holds the node itself. The root is node 1.
    nodes: [[u16; THREADS]; ROWS],
    /// The begin and the pivot of each subtree of the level.
    begins: [[u16; THREADS]; ROWS],
    pivots: [[u16; THREADS]; ROWS],
    /// For each position the begin of its subtree, and the pivot in the upper half word.
    subtrees: [[u32; THREADS]; ROWS],
    /// One bit per position for the points that move left and for those that move right, and the number of bits set in the preceding words.
    bits: [[[u32; WARPS]; ROWS]; 2],
    before: [[[u32; WARPS]; ROWS]; 2],
}

const DONE: u16 = 1 << 15;

/// Sides of a point in the partition of a level.
const TO_LEFT: u8 = 0;
const TO_RIGHT: u8 = 1;
const IS_PIVOT: u8 = 2;
const FINISHED: u8 = 3;

/// One subtree.
struct Subtree<'a, C: Coord, const DIMS: usize, const ROWS: usize, const ITEMS: usize, const PLANES: usize> {
    points: Points<'a, C>,
    nodes: PointsMut<'a, C>,
    splits: Axes<'a>,
    cells: Slice<'a, C>,
    axes: SliceMut<'a, u8>,
    num_points: u32,
    run: Run,
    smem: *mut SubtreesSmem<C, DIMS, ROWS, ITEMS, PLANES>,
}

impl<C: Coord, const DIMS: usize, const ROWS: usize, const ITEMS: usize, const PLANES: usize>
    Subtree<'_, C, DIMS, ROWS, ITEMS, PLANES>
{
    /// Whether nodes split on the widest axis of their cell.
    const IS_WIDEST: bool = PLANES > 0;

    #[inline(always)]
    unsafe fn run(self) {
        let mut axis = 0;
        while axis < self.points.dims {
            self.sort_axis(axis);
            axis += 1;
        }
        self.begin_levels();
        // The subtrees of the last level are single points, which are in order.
        let mut depth = 0;
        while full_tree(depth + 1) < self.run.len {
            self.level(depth);
            depth += 1;
        }
        thread::sync_threads();
        self.write();
    }

    /// Returns the order of an axis.
    #[inline(always)]
    fn order(&self, axis: usize) -> SharedSlice<'_, u16> {
        // SAFETY: computes an address, and accesses no memory.
        unsafe { shared_field!(self.smem, orders).part(axis * capacity(ROWS), capacity(ROWS)) }
    }

    /// Sorts the points on an axis, by (coordinate, id).
    #[inline(always)]
    unsafe fn sort_axis(&self, axis: usize) {
        let len = self.run.len as usize;
        let lookup = Lookup { coords: Slice::from_raw_parts(core::ptr::dangling(), 0), dims: 0, axis: 0 };
        let tile = Tile::<C::Ranked, u32, ByRank, ITEMS>::new(&raw mut (*self.smem).phases.sort, lookup);
        let mut i = thread::thread_idx_x() as usize;
        while i < len {
            tile.set(i, (self.points.ranked(self.run.begin + i, axis), i as u32));
            i += THREADS;
        }
        thread::sync_threads();
        tile.sort(len);
        thread::sync_threads();
        let mut i = thread::thread_idx_x() as usize;
        while i < len {
            self.order(axis).store(i, tile.get(i).1 as u16);
            i += THREADS;
        }
        thread::sync_threads();
    }

    /// Assigns all points to the subtree of the root.
    #[inline(always)]
    unsafe fn begin_levels(&self) {
        let nodes = shared_field!(self.smem, phases.levels.nodes);
        let mut i = thread::thread_idx_x() as usize;
        while i < self.run.len as usize {
            nodes.store(i, 1);
            i += THREADS;
        }
    }

    /// Returns the node of the whole tree that is node `code` of this subtree, whose root is node 1.
    #[inline(always)]
    fn node(&self, code: u32) -> u32 {
        let depth = level(code - 1);
        ((self.run.node + 1) << depth) - 1 + (code - (1 << depth))
    }

    /// Partitions the subtrees of a level in all orders: left points, pivot, right points.
    #[inline(always)]
    unsafe fn level(&self, depth: u32) {
        let begins = shared_field!(self.smem, phases.levels.begins);
        let pivots = shared_field!(self.smem, phases.levels.pivots);
        let nodes = shared_field!(self.smem, phases.levels.nodes);
        let sides = shared_field!(self.smem, phases.levels.sides);
        let thread = thread::thread_idx_x();
        let level_axis = if Self::IS_WIDEST {
            0
        } else {
            self.splits.cycle().of_level(level(self.run.node) + depth, self.splits.dims)
        };

        let first = 1 << depth;
        let mut i = thread;
        while i < first {
            let run = Run::of(self.node(first + i), self.num_points);
            let begin = run.begin.wrapping_sub(self.run.begin) as u32;
            begins.store(i as usize, begin as u16);
            pivots.store(i as usize, (begin + run.left_len) as u16);
            if Self::IS_WIDEST {
                self.choose_axis(first + i);
            }
            i += THREADS as u32;
        }
        thread::sync_threads();
        let subtrees = shared_field!(self.smem, phases.levels.subtrees);
        for row in 0..ROWS {
            let i = thread + (row * THREADS) as u32;
            if i < self.run.len {
                let code = nodes.load(i as usize);
                let mut side = FINISHED;
                let axis = if Self::IS_WIDEST { self.axis_of(code & !DONE) } else { level_axis };
                let point = self.order(axis).load(i as usize) as usize;
                if code & DONE == 0 {
                    let subtree = code as usize - first as usize;
                    let pivot = u32::from(pivots.load(subtree));
                    subtrees.store(i as usize, pivot << 16 | u32::from(begins.load(subtree)));
                    side = if i < pivot { TO_LEFT } else { TO_RIGHT };
                    let child = 2 * code + u16::from(i > pivot);
                    nodes.store(i as usize, if i == pivot { code | DONE } else { child });
                    side = if i == pivot { IS_PIVOT } else { side };
                    if Self::IS_WIDEST && i == pivot {
                        let at = self.points.coord(self.run.begin + point, axis);
                        shared_field!(self.smem, planes).store(code as usize, at);
                    }
                }
                sides.store(point, side);
            }
        }
        thread::sync_threads();
        let mut axis = 0;
        while axis < self.points.dims {
            // The order of the split axis is already partitioned.
            if Self::IS_WIDEST || axis != level_axis {
                self.partition(axis);
            }
            axis += 1;
        }
    }

    /// Computes and stores the widest axis of the cell of node `code`.
    #[inline(always)]
    unsafe fn choose_axis(&self, code: u32) {
        let planes = shared_field!(self.smem, planes);
        let dims = self.points.dims;
        let cell = self.cells.part(thread::block_idx_x() as usize * 2 * dims, 2 * dims);
        let plane = |ancestor: u32| (self.axis_of(ancestor as u16), planes.load(ancestor as usize));
        let axis = Cell::<C, DIMS>::load(cell, dims).of_descendant(1, code, plane).widest(dims) as u8;
        shared_field!(self.smem, axes).store(code as usize, axis);
        let node = self.node(code) as usize;
        if node < self.axes.len() {
            self.axes.store(node, axis);
        }
    }

    #[inline(always)]
    unsafe fn axis_of(&self, code: u16) -> usize {
        shared_field!(self.smem, axes).load(code as usize) as usize
    }

    /// Partitions the order of an axis by the sides, stably.
    #[inline(always)]
    unsafe fn partition(&self, axis: usize) {
        let sides = shared_field!(self.smem, phases.levels.sides);
        let bits = shared_field!(self.smem, phases.levels.bits);
        let before = shared_field!(self.smem, phases.levels.before);
        let subtrees = shared_field!(self.smem, phases.levels.subtrees);
        let order = self.order(axis);
        let thread = thread::thread_idx_x();
        let (lane, warp) = (warp::lane_id(), thread as usize / 32);
        let words = WARPS * ROWS;

        // The point at each position of the thread, with its side in the upper half word.
        let mut points = [u32::from(FINISHED) << 16; ROWS];
        for row in 0..ROWS {
            let i = thread as usize + row * THREADS;
            if i < self.run.len as usize {
                let point = order.load(i);
                points[row] = computed(u32::from(sides.load(point as usize)) << 16 | u32::from(point));
            }
            let side = (points[row] >> 16) as u8;
            let left = warp::warp_vote_ballot(warp::FULL_MASK, side == TO_LEFT);
            let right = warp::warp_vote_ballot(warp::FULL_MASK, side == TO_RIGHT);
            if lane == 0 {
                bits.store(row * WARPS + warp, left);
                bits.store(words + row * WARPS + warp, right);
            }
        }
        thread::sync_threads();
        // One warp per side computes the prefix sums of the bit counts.
        if warp < 2 {
            let mut sum = 0;
            let mut begin = 0;
            while begin < words {
                let word = begin + lane as usize;
                let count = if word < words { bits.load(warp * words + word).count_ones() } else { 0 };
                let inclusive = inclusive_sum(count);
                if word < words {
                    before.store(warp * words + word, sum + inclusive - count);
                }
                sum += warp::shuffle_idx(warp::FULL_MASK, inclusive, 31);
                begin += 32;
            }
        }
        thread::sync_threads();
        let rank = |side: u32, i: u32| {
            let word = side as usize * words + (i / 32) as usize;
            before.load(word) + (bits.load(word) & ((1 << (i % 32)) - 1)).count_ones()
        };
        for row in 0..ROWS {
            let i = thread + (row * THREADS) as u32;
            let side = (points[row] >> 16) as u8;
            if side != FINISHED {
                // The position remains within the subtree of the point, so the subtree at the position is that of the point.
                let subtree = subtrees.load(i as usize);
                let (begin, pivot) = (subtree & 0xFFFF, subtree >> 16);
                let right = u32::from(side == TO_RIGHT);
                let first = if side == TO_RIGHT { pivot + 1 } else { begin };
                let target =
                    if side == IS_PIVOT { pivot } else { first + rank(right, i) - rank(right, begin) };
                order.store(target as usize, points[row] as u16);
            }
        }
        thread::sync_threads();
    }

    /// Writes the points in in-order sequence, which is now the order of every axis.
    #[inline(always)]
    unsafe fn write(&self) {
        let mut i = thread::thread_idx_x() as usize;
        while i < self.run.len as usize {
            let point = self.run.begin + self.order(0).load(i) as usize;
            self.nodes.set(self.run.begin + i, self.points, point);
            i += THREADS;
        }
    }
}

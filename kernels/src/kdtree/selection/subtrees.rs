//! Builds whole subtrees: sorts the points of each node on the split axis of the node, level by level.
//!
//! A subtree of `2^h - 1` points is a segment of `2^h` slots, of which the last one is empty. Once it is sorted, the pivot is the last slot of
//! its lower half; the other slots of the two halves are the segments of the children, with one empty slot each. So the slots are in in-order
//! sequence at the end, and the segments of all levels are aligned, as the sort in registers needs it ([`segments`](crate::block::segments)).
//!
//! On a level, the subtrees on the left have `2^h - 1` points and those on the right have `2^(h-1) - 1`; one between them may have any number
//! in between. A block builds one large subtree, or two small ones, or the one in between. In that one, it moves the points of the children
//! to their halves after each sort.
//!
//! The order on an axis is by (coordinate, id). The sort compares ids only if equal coordinates are beside a pivot: then the block sorts its
//! points by id and starts again, with the ranks of the ids behind the coordinates.

use super::{Points, PointsMut, Run};
use crate::block::segments::SegmentSort;
use crate::kdtree::axes::Cell;
use crate::policy::SELECTION;
use crate::query::axes::Axes;
use crate::query::left_balanced::{full_tree, in_order_begin, level, num_levels, subtree_size};
use crate::thread::coord::Coord;
use crate::thread::items::strided;
use crate::thread::measure::MAX_DIMS;
use crate::thread::radix_key::RadixKey;
use crate::thread::ranked::{RankBits, Ranked};
use cuda_std::prelude::*;

const THREADS: usize = SELECTION.subtrees_threads;

/// The order of an empty slot.
const EMPTY: u16 = u16::MAX;

/// Returns the number of levels of the subtrees that blocks build.
pub const fn max_levels<C>() -> u32 {
    (THREADS * items::<C>()).ilog2()
}

/// Returns the number of slots of a thread.
const fn items<C>() -> usize {
    if size_of::<C>() == 4 { SELECTION.subtrees_items[0] } else { SELECTION.subtrees_items[1] }
}

/// Returns the number of subtrees of level `level` for which a block is launched each: those that have more than half the slots. `n` is the
/// number of points, at least 1.
const fn num_large(n: u32, level: u32) -> u32 {
    let above_lowest = num_levels(n) - 1;
    (n - full_tree(above_lowest)).div_ceil(1 << (above_lowest - level))
}

/// Returns the number of blocks that build the subtrees of level `level` of a tree over `n` points.
pub const fn num_blocks(n: u32, level: u32) -> u32 {
    let large = num_large(n, level);
    large + ((1 << level) - large).div_ceil(2)
}

/// Writes the nodes of every subtree of the level that begins at node `first_node`, by [`num_blocks`] blocks. Subtrees have at most
/// [`max_levels`] levels. If `PLANES` is 0, levels split on the axes of `splits` in turn. If `PLANES` is half of `ITEMS`, nodes split on the
/// widest axis of their cell: then `cells` holds the cells of the level, and the kernel writes the axes of all nodes to `axes`. If `nodes`
/// has no coordinates, the coordinates are in the order of ids and are not moved.
#[kernel(
    family = "kdtree", block = THREADS, min_blocks = SELECTION.subtrees_min_blocks[size_of::<C>() / 8],
    shared = SubtreesSmem<C, ITEMS, PLANES>, hot
)]
#[instances(C = [f32, i32], ITEMS = [16], PLANES = [0, 8])]
#[instances(C = [f64], ITEMS = [8], PLANES = [0, 4])]
pub unsafe fn kdtree_subtrees<C: Coord, const ITEMS: usize, const PLANES: usize>(
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
    let points = Points { coords, ids, dims, by_id: nodes.coords.is_empty() };
    let (block, depth) = (thread::block_idx_x(), level(first_node));
    let height = num_levels(num_points) - depth;
    let num_large = num_large(num_points, depth);
    let is_pair = block >= num_large;
    let root = first_node + if is_pair { 2 * block - num_large } else { block };
    let len = subtree_size(root, num_points);
    let mut subtrees = Subtrees::<C, ITEMS, PLANES> {
        points,
        nodes,
        splits,
        cells,
        axes,
        num_points,
        first_node,
        root,
        roots_depth: u32::from(is_pair),
        height,
        begin: in_order_begin(root, num_points) as usize,
        end: len,
        gap: len,
        is_full: is_pair || len == full_tree(height),
        smem: shared_mem(),
    };
    if is_pair && level(root + 1) == depth {
        subtrees.end = 2 * len + 1;
    }
    subtrees.run();
}

/// Shared memory of a block.
#[repr(C, align(16))]
pub struct SubtreesSmem<C: Coord, const ITEMS: usize, const PLANES: usize> {
    exchange: [[C::Ranked; THREADS]; ITEMS],
    /// The key of each point on the axis of the level.
    keys: [[C::Key; THREADS]; ITEMS],
    /// The point of each slot whose node is known.
    order: [[u16; THREADS]; ITEMS],
    /// The split coordinate and the split axis of each node whose pivot is known.
    planes: [[C; THREADS]; PLANES],
    axes: [[u8; THREADS]; PLANES],
    /// The last item of each thread.
    last: [C::Ranked; THREADS],
    /// 1 if a coordinate beside a pivot equals that of the pivot.
    has_equal: [u32; 1],
}

/// The subtrees of a block: one, or two neighbors on their level. Within the block, nodes are numbered as in a tree of `height` levels whose
/// root is node 1: the root of a single subtree is node 1, those of two are the nodes 2 and 3.
struct Subtrees<'a, C: Coord, const ITEMS: usize, const PLANES: usize> {
    points: Points<'a, C>,
    nodes: PointsMut<'a, C>,
    splits: Axes<'a>,
    cells: Slice<'a, C>,
    axes: SliceMut<'a, u8>,
    num_points: u32,
    first_node: u32,
    /// The root of the first subtree.
    root: u32,
    /// 1 if there are two subtrees.
    roots_depth: u32,
    height: u32,
    /// The position of the first point.
    begin: usize,
    /// The points are at the positions from 0 to `end` from there, except for `gap`.
    end: u32,
    gap: u32,
    /// No node has an empty child beside one that is not.
    is_full: bool,
    smem: *mut SubtreesSmem<C, ITEMS, PLANES>,
}

impl<C: Coord, const ITEMS: usize, const PLANES: usize> Subtrees<'_, C, ITEMS, PLANES> {
    /// Whether nodes split on the widest axis of their cell.
    const IS_WIDEST: bool = PLANES > 0;

    #[inline(always)]
    unsafe fn run(self) {
        let mut by_id = !self.is_full;
        while !self.build(by_id) {
            by_id = true;
        }
        self.write();
    }

    /// Finds the node of each slot. Returns false if the order of equal coordinates matters and is not known.
    #[inline(always)]
    unsafe fn build(&self, by_id: bool) -> bool {
        let keys = shared_field!(self.smem, keys);
        let has_equal = shared_field!(self.smem, has_equal);
        let sort = SegmentSort::<C::Ranked, ITEMS> { exchange: shared_field!(self.smem, exchange) };
        let first = thread::thread_idx_x() * ITEMS as u32;
        // The low half word of an item is the position of its point; the high one is the rank of its id, if `by_id`.
        let mut items = [C::Ranked::LAST; ITEMS];
        for i in 0..ITEMS {
            if self.has_point(first + i as u32) {
                items[i] = C::Ranked::new(C::Key::ZERO, first + i as u32);
            }
        }
        if !by_id && thread::thread_idx_x() == 0 {
            has_equal.store(0, 0);
        }
        let mut sorts_ids = by_id;
        let mut log_len = self.height - self.roots_depth;
        while log_len > 0 {
            let depth = self.height - log_len;
            if Self::IS_WIDEST {
                // The planes of the level above are complete.
                thread::sync_threads();
                self.choose_axes(depth);
            }
            self.load_keys(depth, sorts_ids);
            thread::sync_threads();
            if !by_id && has_equal.load(0) != 0 {
                break;
            }
            for i in 0..ITEMS {
                let id = items[i].id();
                if items[i].is_before(C::Ranked::LAST) {
                    let position = (id & 0xFFFF) as usize;
                    let key = if Self::IS_WIDEST && !sorts_ids {
                        let axis = self.axis_of((1 << depth) + ((first + i as u32) >> log_len));
                        self.points.coord(self.begin + position, axis).key()
                    } else {
                        keys.load(position)
                    };
                    items[i] = C::Ranked::new(key, id);
                }
            }
            sort.sort(&mut items, log_len);
            if sorts_ids {
                for i in 0..ITEMS {
                    if items[i].is_before(C::Ranked::LAST) {
                        items[i] =
                            C::Ranked::new(C::Key::ZERO, (first + i as u32) << 16 | items[i].id() & 0xFFFF);
                    }
                }
                sorts_ids = false;
                thread::sync_threads();
            } else {
                if !self.is_full {
                    self.move_to_halves(&mut items, log_len);
                }
                let last = shared_field!(self.smem, last);
                last.store(thread::thread_idx_x() as usize, items[ITEMS - 1]);
                thread::sync_threads();
                if !by_id {
                    self.note_equal(&items, log_len);
                }
                self.take_pivots(&mut items, log_len);
                log_len -= 1;
            }
        }
        thread::sync_threads();
        by_id || has_equal.load(0) == 0
    }

    /// Returns true if the slot has a point before the first sort. Unless points move to halves, it also has one in the end.
    #[inline(always)]
    fn has_point(&self, slot: u32) -> bool {
        slot < self.end && slot != self.gap
    }

    /// Loads the keys of all points, on the axis of the level at `depth` if all nodes have the same, or the ids.
    #[inline(always)]
    unsafe fn load_keys(&self, depth: u32, ids: bool) {
        let keys = shared_field!(self.smem, keys);
        let level = level(self.root) + depth - self.roots_depth;
        let axis = self.splits.cycle().of_level(level, self.splits.dims);
        for i in strided(thread::thread_idx_x(), self.end, THREADS as u32) {
            if i != self.gap {
                let position = self.begin + i as usize;
                if ids {
                    let id = u64::from(self.points.id(position));
                    keys.store(i as usize, C::Key::from_high_bits(id << 32));
                } else if !Self::IS_WIDEST {
                    keys.store(i as usize, self.points.coord(position, axis).key());
                }
            }
        }
    }

    /// Notes if the pivot of a sorted segment has the coordinate of a point beside it.
    #[inline(always)]
    unsafe fn note_equal(&self, items: &[C::Ranked; ITEMS], log_len: u32) {
        let thread = thread::thread_idx_x();
        let before_first = if thread == 0 { 0 } else { thread as usize - 1 };
        let mut before = shared_field!(self.smem, last).load(before_first);
        let half = 1_u32 << (log_len - 1);
        let mut is_equal = false;
        for i in 0..ITEMS {
            let in_segment = (thread * ITEMS as u32 + i as u32) & (2 * half - 1);
            // The pivot and the slot behind it; a segment of two slots has one point.
            let is_beside = half > 1 && in_segment.wrapping_add(1).wrapping_sub(half) < 2;
            is_equal |= is_beside && items[i].rank() == before.rank();
            before = items[i];
        }
        if is_equal {
            shared_field!(self.smem, has_equal).atomic_or(0, 1, Ordering::Relaxed, Scope::Block);
        }
    }

    /// Takes the pivot out of each segment, the last slot of the lower half.
    #[inline(always)]
    unsafe fn take_pivots(&self, items: &mut [C::Ranked; ITEMS], log_len: u32) {
        let order = shared_field!(self.smem, order);
        let half = 1_u32 << (log_len - 1);
        for i in 0..ITEMS {
            let slot = thread::thread_idx_x() * ITEMS as u32 + i as u32;
            if slot & (2 * half - 1) == half - 1 {
                let is_empty = !items[i].is_before(C::Ranked::LAST);
                let point = if is_empty { EMPTY } else { items[i].id() as u16 };
                order.store(slot as usize, point);
                if Self::IS_WIDEST && half > 1 && !is_empty {
                    let code = (1 << (self.height - log_len)) + (slot >> log_len);
                    let at = self.points.coord(self.begin + point as usize, self.axis_of(code));
                    shared_field!(self.smem, planes).store(code as usize, at);
                }
                items[i] = C::Ranked::LAST;
            }
        }
    }

    /// Moves the pivot of each sorted segment to the last slot of the lower half, and the points of the right subtree to the upper half.
    #[inline(always)]
    unsafe fn move_to_halves(&self, items: &mut [C::Ranked; ITEMS], log_len: u32) {
        let exchange = shared_field!(self.smem, exchange);
        let first = thread::thread_idx_x() * ITEMS as u32;
        let half = 1_u32 << (log_len - 1);
        thread::sync_threads();
        for i in 0..ITEMS {
            let slot = first + i as u32;
            let node = self.node((1 << (self.height - log_len)) + (slot >> log_len));
            let Run { len, left_len, .. } = Run::of(node, self.num_points);
            let rank = slot & (2 * half - 1);
            let to = if len == 0 || rank < left_len {
                rank
            } else if rank == left_len {
                half - 1
            } else if rank < len {
                half + rank - left_len - 1
            } else if rank - len < half - 1 - left_len {
                left_len + rank - len
            } else {
                // Empty slots: those before are in the lower half.
                rank
            };
            exchange.store((slot - rank + to) as usize, items[i]);
        }
        thread::sync_threads();
        for i in 0..ITEMS {
            items[i] = exchange.load((first + i as u32) as usize);
        }
    }

    /// Returns the node of the whole tree that is node `code` of the block.
    #[inline(always)]
    fn node(&self, code: u32) -> u32 {
        let depth = level(code - 1);
        ((self.root + 1) << (depth - self.roots_depth)) - 1 + (code - (1 << depth))
    }

    /// Computes and stores the widest axis of the cell of each node at `depth`.
    #[inline(always)]
    unsafe fn choose_axes(&self, depth: u32) {
        let planes = shared_field!(self.smem, planes);
        let dims = self.points.dims;
        let plane = |ancestor: u32| (self.axis_of(ancestor), planes.load(ancestor as usize));
        // Nodes of the last level have no children.
        let end = if depth + 1 < self.height { 2 << depth } else { 0 };
        for code in strided((1 << depth) + thread::thread_idx_x(), end, THREADS as u32) {
            let root = code >> (depth - self.roots_depth);
            // The second subtree may be missing.
            if root > 2 && self.end == self.gap {
                continue;
            }
            let cell = (self.root - self.first_node + (root & self.roots_depth)) as usize * 2 * dims;
            let cell = Cell::<C, MAX_DIMS>::load(self.cells.part(cell, 2 * dims), dims);
            let axis = cell.of_descendant(root, code, plane).widest(dims) as u8;
            shared_field!(self.smem, axes).store(code as usize, axis);
            let node = self.node(code) as usize;
            if node < self.axes.len() {
                self.axes.store(node, axis);
            }
        }
    }

    /// Returns the split axis of node `code`; any axis on the last level.
    #[inline(always)]
    unsafe fn axis_of(&self, code: u32) -> usize {
        let is_inner = code < 1 << (self.height - 1);
        if is_inner { shared_field!(self.smem, axes).load(code as usize) as usize } else { 0 }
    }

    /// Writes the points in in-order sequence.
    #[inline(always)]
    unsafe fn write(&self) {
        let order = shared_field!(self.smem, order);
        for slot in strided(thread::thread_idx_x(), full_tree(self.height), THREADS as u32) {
            // Nodes of the lowest level, which have the even slots, are missing at its end.
            let missing = if self.is_full {
                0
            } else {
                slot.div_ceil(2).saturating_sub(self.end - full_tree(self.height - 1))
            };
            let is_known = !self.is_full || self.has_point(slot);
            let point = if is_known { order.load(slot as usize) } else { EMPTY };
            if point != EMPTY {
                let point = self.begin + point as usize;
                self.nodes.set(self.begin + (slot - missing) as usize, self.points, point);
            }
        }
    }
}

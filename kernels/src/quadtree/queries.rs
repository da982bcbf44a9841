//! Queries: the leaf of a point, the points in boxes.
//!
//! A walk goes through nodes in the order of depth first without a stack: the children of a node follow each other, and from the last of
//! them the next node is found by way of its parents.

use super::frame::Frame;
use super::node::Node;
use crate::policy::PER_ITEM_THREADS;
use crate::thread::coord::Coord;
use crate::thread::point::load_point;
use crate::thread::words::Bits128;
use cuda_std::prelude::*;

/// The number of no node.
pub const NO_NODE: u32 = u32::MAX;

/// Writes the node that each family of children has, family after family; a thread a node.
#[kernel(family = "quadtree", block = PER_ITEM_THREADS)]
pub unsafe fn quadtree_parents(nodes: Slice<Bits128>, dims: u32, parents: SliceMut<u32>) {
    let i = thread::index_1d_u64() as usize;
    if i < nodes.len() {
        let node = Node::from_bits(nodes.load(i));
        if !node.is_leaf() {
            parents.store(((node.first_child - 1) >> dims) as usize, i as u32);
        }
    }
}

/// Writes the leaf that each query is in, [`NO_NODE`] for one that is not in the root; a thread a query.
#[kernel(family = "quadtree", block = PER_ITEM_THREADS, hot)]
#[instance(f32, 2)]
#[instance(f32, 3)]
#[instance(f64, 2)]
#[instance(f64, 3)]
pub unsafe fn quadtree_leaves<C: Coord, const D: usize>(
    frame: Slice<u64>,
    nodes: Slice<Bits128>,
    queries: Slice<C>,
    leaves: SliceMut<u32>,
) {
    let i = thread::index_1d_u64() as usize;
    if i < leaves.len() {
        let (frame, query) = (Frame::<D>::load(frame), load_point::<C, D>(queries, i, D));
        let mut leaf = NO_NODE;
        if frame.has(query) {
            let unit = frame.unit(query);
            leaf = 0;
            let mut node = Node::from_bits(nodes.load(0));
            while !node.is_leaf() {
                leaf = node.first_child + frame.code(unit, node.level, 1);
                node = Node::from_bits(nodes.load(leaf as usize));
            }
        }
        leaves.store(i, leaf);
    }
}

/// The tree.
#[derive(Clone, Copy)]
struct Tree<'a, C, const D: usize> {
    frame: Frame<D>,
    nodes: Slice<'a, Bits128>,
    cells: Slice<'a, u32>,
    parents: Slice<'a, u32>,
    coords: Slice<'a, C>,
}

/// How a cell lies to what is looked for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lies {
    Inside,
    Outside,
    /// Across its border.
    Across,
}

impl<C: Coord, const D: usize> Tree<'_, C, D> {
    /// Calls `take` with the places of the points in a box with these corners, its border included: those from one to another.
    #[inline(always)]
    unsafe fn each_in_box(&self, low: [C; D], high: [C; D], mut take: impl FnMut(usize, usize)) {
        let (low_unit, high_unit) = (self.frame.unit_of_any(low), self.frame.unit_of_any(high));
        let mut at = 0;
        while at != NO_NODE {
            let node = Node::from_bits(self.nodes.load(at as usize));
            let lies = self.lies(at, &node, low_unit, high_unit);
            if lies == Lies::Across && !node.is_leaf() {
                at = node.first_child;
                continue;
            }
            if lies == Lies::Inside {
                take(node.start as usize, node.end as usize);
            } else if lies == Lies::Across {
                let mut place = node.start as usize;
                while place < node.end as usize {
                    let point = load_point::<C, D>(self.coords, place, D);
                    let (mut is_inside, mut axis) = (true, 0);
                    while axis < D {
                        is_inside &= point[axis] >= low[axis] && point[axis] <= high[axis];
                        axis += 1;
                    }
                    if is_inside {
                        take(place, place + 1);
                    }
                    place += 1;
                }
            }
            at = self.next(at);
        }
    }

    /// How a node's cell lies to a box between two units. A point in a unit between them is inside.
    #[inline(always)]
    unsafe fn lies(&self, at: u32, node: &Node, low: [i64; D], high: [i64; D]) -> Lies {
        if node.is_empty() {
            return Lies::Outside;
        }
        // Units behind the first on an axis.
        let more = (1_i64 << (self.frame.levels - node.level)) - 1;
        let (mut is_inside, mut is_outside, mut axis) = (true, false, 0);
        while axis < D {
            let first = i64::from(self.cells.load(at as usize * D + axis));
            let last = first + more;
            is_inside &= first > low[axis] && last < high[axis];
            is_outside |= last < low[axis] || first > high[axis];
            axis += 1;
        }
        if is_outside {
            Lies::Outside
        } else if is_inside {
            Lies::Inside
        } else {
            Lies::Across
        }
    }

    /// The node behind all below a node.
    #[inline(always)]
    unsafe fn next(&self, mut at: u32) -> u32 {
        while at != 0 {
            let of_family = (at - 1) & ((1 << D) - 1);
            if of_family + 1 < 1 << D {
                return at + 1;
            }
            at = self.parents.load(((at - 1) >> D) as usize);
        }
        NO_NODE
    }
}

/// The corners of a box, the least coordinates first.
#[inline(always)]
unsafe fn load_box<C: Coord, const D: usize>(corners: Slice<'_, C>, i: usize) -> [[C; D]; 2] {
    [load_point(corners, 2 * i, D), load_point(corners, 2 * i + 1, D)]
}

/// Writes how many points are in each box; a thread a box.
#[kernel(family = "quadtree", block = PER_ITEM_THREADS, hot)]
#[instance(f32, 2)]
#[instance(f32, 3)]
#[instance(f64, 2)]
#[instance(f64, 3)]
pub unsafe fn quadtree_count_in_boxes<C: Coord, const D: usize>(
    frame: Slice<u64>,
    nodes: Slice<Bits128>,
    cells: Slice<u32>,
    parents: Slice<u32>,
    coords: Slice<C>,
    corners: Slice<C>,
    counts: SliceMut<u32>,
) {
    let i = thread::index_1d_u64() as usize;
    if i < counts.len() {
        let tree = Tree::<C, D> { frame: Frame::load(frame), nodes, cells, parents, coords };
        let ([low, high], mut count) = (load_box(corners, i), 0);
        tree.each_in_box(low, high, |begin, end| count += (end - begin) as u32);
        counts.store(i, count);
    }
}

/// Writes the ids of the points in each box, in the order of the tree, from the box's offset on; a thread a box.
#[kernel(family = "quadtree", block = PER_ITEM_THREADS, hot)]
#[instance(f32, 2)]
#[instance(f32, 3)]
#[instance(f64, 2)]
#[instance(f64, 3)]
pub unsafe fn quadtree_emit_in_boxes<C: Coord, const D: usize>(
    frame: Slice<u64>,
    nodes: Slice<Bits128>,
    cells: Slice<u32>,
    parents: Slice<u32>,
    coords: Slice<C>,
    ids: Slice<u32>,
    corners: Slice<C>,
    offsets: Slice<u64>,
    found: SliceMut<u32>,
) {
    let i = thread::index_1d_u64() as usize;
    if i + 1 < offsets.len() {
        let tree = Tree::<C, D> { frame: Frame::load(frame), nodes, cells, parents, coords };
        let ([low, high], mut to) = (load_box(corners, i), offsets.load(i) as usize);
        tree.each_in_box(low, high, |begin, end| {
            let mut place = begin;
            while place < end {
                found.store(to, ids.load(place));
                (to, place) = (to + 1, place + 1);
            }
        });
    }
}

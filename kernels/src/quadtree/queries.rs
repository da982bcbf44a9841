//! Queries: the leaf of a point, the leaves adjacent to a node, a sample of each node, and the start bucket of nearest-neighbor queries.
//!
//! The traversal is depth first and needs no stack: the children of a node have consecutive numbers, and after the last of them it returns
//! through the parents.

use super::frame::Frame;
use super::node::Node;
use crate::policy::PER_ITEM_THREADS;
use crate::query::buckets::BucketLayout;
use crate::thread::coord::Coord;
use crate::thread::items::own_item;
use crate::thread::point::load_point;
use crate::thread::words::Bits128;
use cuda_std::prelude::*;

/// Stands for no node where a node number is expected.
pub const NO_NODE: u32 = u32::MAX;

/// Writes the parent of each group of siblings, in the order of the groups. One thread per node.
#[kernel(family = "quadtree", block = PER_ITEM_THREADS)]
pub unsafe fn quadtree_parents(nodes: Slice<Bits128>, dims: u32, parents: SliceMut<u32>) {
    let Some(i) = own_item(nodes.len()) else { return };
    let node = Node::from_bits(nodes.load(i));
    if !node.is_leaf() {
        parents.store(((node.first_child - 1) >> dims) as usize, i as u32);
    }
}

/// Returns the number of the leaf that contains a unit, and the leaf.
#[inline(always)]
unsafe fn leaf_of<const D: usize>(
    frame: &Frame<D>,
    nodes: Slice<'_, Bits128>,
    unit: [u32; D],
) -> (u32, Node) {
    let (mut leaf, mut node) = (0, Node::from_bits(nodes.load(0)));
    while !node.is_leaf() {
        leaf = node.first_child + frame.code(unit, node.level, 1);
        node = Node::from_bits(nodes.load(leaf as usize));
    }
    (leaf, node)
}

/// Writes the leaf that contains each query; [`NO_NODE`] for a query outside of the root. One thread per query.
#[kernel(family = "quadtree", block = PER_ITEM_THREADS, hot)]
#[instances(C = [f32, f64, i32], D = [2, 3])]
pub unsafe fn quadtree_leaves<C: Coord, const D: usize>(
    frame: Slice<u64>,
    nodes: Slice<Bits128>,
    queries: Slice<C>,
    leaves: SliceMut<u32>,
) {
    let Some(i) = own_item(leaves.len()) else { return };
    let (frame, query) = (Frame::<D>::load(frame), load_point::<C, D>(queries, i, D));
    let leaf = if frame.contains(query) { leaf_of(&frame, nodes, frame.unit(query)).0 } else { NO_NODE };
    leaves.store(i, leaf);
}

/// Writes the start [bucket](crate::query::buckets) of each query, and the query's index. The start bucket has the first point of the
/// query's leaf; a query outside of the root takes the leaf nearest to it on each axis. One thread per query.
#[kernel(family = "quadtree", block = PER_ITEM_THREADS)]
#[instances(C = [f32, f64, i32], D = [2, 3])]
pub unsafe fn quadtree_query_buckets<C: Coord, const D: usize>(
    frame: Slice<u64>,
    nodes: Slice<Bits128>,
    num_points: u32,
    queries: Slice<C>,
    buckets: SliceMut<u32>,
    numbers: SliceMut<u32>,
) {
    let Some(i) = own_item(numbers.len()) else { return };
    let frame = Frame::<D>::load(frame);
    let (any, mut unit, mut axis) = (frame.unit_of_any(load_point::<C, D>(queries, i, D)), [0; D], 0);
    while axis < D {
        unit[axis] = any[axis].max(0).min((1 << frame.levels) - 1) as u32;
        axis += 1;
    }
    let (_, leaf) = leaf_of(&frame, nodes, unit);
    // An empty leaf may begin after the last point.
    let point = if leaf.start < num_points { leaf.start } else { num_points - 1 };
    buckets.store(i, BucketLayout::left_balanced(num_points).bucket_of(point));
    numbers.store(i, i as u32);
}

/// A tree with parents, for traversals.
#[derive(Clone, Copy, KernelArgs)]
pub struct Tree<'a> {
    /// The nodes.
    pub nodes: Slice<'a, Bits128>,
    /// The low corner of each node's cell, in units.
    pub cells: Slice<'a, u32>,
    /// The parent of each group of siblings.
    pub parents: Slice<'a, u32>,
    /// The root has 2^`frame_levels` units on a side.
    pub frame_levels: u32,
}

impl Tree<'_> {
    /// Traverses the tree depth first, and skips the subtrees of nodes for which `enters` returns false. Calls `visit_leaf` for each leaf
    /// that is entered.
    #[inline(always)]
    unsafe fn traverse<const D: usize>(
        &self,
        mut enters: impl FnMut(u32, &Node) -> bool,
        mut visit_leaf: impl FnMut(u32, &Node),
    ) {
        let mut number = 0;
        while number != NO_NODE {
            let node = Node::from_bits(self.nodes.load(number as usize));
            if enters(number, &node) {
                if !node.is_leaf() {
                    number = node.first_child;
                    continue;
                }
                visit_leaf(number, &node);
            }
            number = self.next_after::<D>(number);
        }
    }

    /// Returns the first and the last unit of a node's cell on each axis.
    #[inline(always)]
    unsafe fn units<const D: usize>(&self, number: u32, node: &Node) -> [[i64; D]; 2] {
        let (mut ends, more, mut axis) = ([[0; D]; 2], (1 << (self.frame_levels - node.level)) - 1, 0);
        while axis < D {
            ends[0][axis] = self.cells.load(number as usize * D + axis).into();
            ends[1][axis] = ends[0][axis] + more;
            axis += 1;
        }
        ends
    }

    /// Calls `visit` for each leaf outside of a node's cell that touches it, even at a corner only. There are none if `target` is not the
    /// number of a node.
    #[inline(always)]
    unsafe fn for_each_adjacent_leaf<const D: usize>(&self, target: u32, mut visit: impl FnMut(u32)) {
        if target as usize >= self.nodes.len() {
            return;
        }
        let [first, last] = self.units::<D>(target, &Node::from_bits(self.nodes.load(target as usize)));
        self.traverse::<D>(
            |number, node| {
                let ([from, to], mut touches, mut axis) = (self.units::<D>(number, node), true, 0);
                while axis < D {
                    touches &= from[axis] <= last[axis] + 1 && to[axis] + 1 >= first[axis];
                    axis += 1;
                }
                touches && number != target
            },
            |number, _| visit(number),
        );
    }

    /// Returns the node that follows a node's subtree in depth-first order.
    #[inline(always)]
    unsafe fn next_after<const D: usize>(&self, mut number: u32) -> u32 {
        while number != 0 {
            let child = (number - 1) & ((1 << D) - 1);
            if child + 1 < 1 << D {
                return number + 1;
            }
            number = self.parents.load(((number - 1) >> D) as usize);
        }
        NO_NODE
    }
}

/// Counts the leaves adjacent to each node. One thread per node.
#[kernel(family = "quadtree", block = PER_ITEM_THREADS, hot)]
#[instances(D = [2, 3])]
pub unsafe fn quadtree_count_adjacent<const D: usize>(
    tree: Tree<'_>,
    targets: Slice<u32>,
    counts: SliceMut<u32>,
) {
    let Some(i) = own_item(counts.len()) else { return };
    let mut count = 0;
    tree.for_each_adjacent_leaf::<D>(targets.load(i), |_| count += 1);
    counts.store(i, count);
}

/// Writes the leaves adjacent to each node in depth-first order, from the node's offset on, up to the capacity of `leaves`. One thread per
/// node.
#[kernel(family = "quadtree", block = PER_ITEM_THREADS, hot)]
#[instances(D = [2, 3])]
pub unsafe fn quadtree_emit_adjacent<const D: usize>(
    tree: Tree<'_>,
    targets: Slice<u32>,
    offsets: Slice<u64>,
    leaves: SliceMut<u32>,
) {
    let i = thread::index_1d_u64() as usize;
    if i + 1 < offsets.len() {
        let mut to = offsets.load(i) as usize;
        tree.for_each_adjacent_leaf::<D>(targets.load(i), |leaf| {
            if to < leaves.len() {
                leaves.store(to, leaf);
            }
            to += 1;
        });
    }
}

/// Writes the sample of each node of a level, from node `first` on, as an index in tree order; [`NO_NODE`] for a node without points. One
/// thread per node.
///
/// The sample of a leaf is the point nearest to the center of its cell, or its first point if it has more than `leaf_points` points, which then
/// share one unit. The sample of an inner node is the sample of a child that is nearest to its own center. A tie goes to the first in
/// tree order.
#[kernel(family = "quadtree", block = PER_ITEM_THREADS, hot)]
#[instances(C = [f32, f64, i32], D = [2, 3])]
pub unsafe fn quadtree_samples<C: Coord, const D: usize>(
    frame: Slice<u64>,
    nodes: Slice<Bits128>,
    cells: Slice<u32>,
    coords: Slice<C>,
    leaf_points: u32,
    first: u32,
    end: u32,
    samples: SliceMut<u32>,
) {
    let number = u64::from(first) + thread::index_1d_u64();
    if number < end.into() {
        let (frame, node) = (Frame::<D>::load(frame), Node::from_bits(nodes.load(number as usize)));
        let (mut center, mut axis) = ([0.0; D], 0);
        while axis < D {
            let half = 0.5 * (1_u64 << (frame.levels - node.level)) as f64;
            center[axis] = f64::from(cells.load(number as usize * D + axis)) + half;
            axis += 1;
        }
        let (mut best, mut best_distance) = (NO_NODE, f64::INFINITY);
        let mut consider = |candidate: u32| {
            let distance = frame.dist2_in_units(load_point::<C, D>(coords, candidate as usize, D), center);
            if distance < best_distance {
                (best, best_distance) = (candidate, distance);
            }
        };
        if !node.is_leaf() {
            let mut child = 0;
            while child < 1 << D {
                let sample = samples.load((node.first_child + child) as usize);
                if sample != NO_NODE {
                    consider(sample);
                }
                child += 1;
            }
        } else if node.len() > leaf_points {
            best = node.start;
        } else {
            let mut point = node.start;
            while point < node.end {
                consider(point);
                point += 1;
            }
        }
        samples.store(number as usize, best);
    }
}

//! Queries: the leaf of a point, the leaves around a node, a sample of each node; and where other queries are in the order of points.
//!
//! A walk goes through nodes in the order of depth first without a stack: the children of a node follow each other, and from the last of
//! them the next node is found by way of its parents.

use super::frame::Frame;
use super::node::Node;
use crate::policy::PER_ITEM_THREADS;
use crate::query::buckets::Cut;
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

/// The number of the leaf that a unit is in, and the leaf.
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

/// Writes the leaf that each query is in, [`NO_NODE`] for one that is not in the root; a thread a query.
#[kernel(family = "quadtree", block = PER_ITEM_THREADS, hot)]
#[instances(C = [f32, f64], D = [2, 3])]
pub unsafe fn quadtree_leaves<C: Coord, const D: usize>(
    frame: Slice<u64>,
    nodes: Slice<Bits128>,
    queries: Slice<C>,
    leaves: SliceMut<u32>,
) {
    let i = thread::index_1d_u64() as usize;
    if i < leaves.len() {
        let (frame, query) = (Frame::<D>::load(frame), load_point::<C, D>(queries, i, D));
        let leaf = if frame.has(query) { leaf_of(&frame, nodes, frame.unit(query)).0 } else { NO_NODE };
        leaves.store(i, leaf);
    }
}

/// Writes the [bucket](crate::query::buckets) that has the first point of each query's leaf, of the points in their order, and the query's
/// number; of a query outside of the root that of the leaf next to it. A thread a query.
#[kernel(family = "quadtree", block = PER_ITEM_THREADS)]
#[instances(C = [f32, f64], D = [2, 3])]
pub unsafe fn quadtree_query_buckets<C: Coord, const D: usize>(
    frame: Slice<u64>,
    nodes: Slice<Bits128>,
    num_points: u32,
    queries: Slice<C>,
    buckets: SliceMut<u32>,
    numbers: SliceMut<u32>,
) {
    let i = thread::index_1d_u64() as usize;
    if i < numbers.len() {
        let frame = Frame::<D>::load(frame);
        let (any, mut unit, mut axis) = (frame.unit_of_any(load_point::<C, D>(queries, i, D)), [0; D], 0);
        while axis < D {
            unit[axis] = any[axis].max(0).min((1 << frame.levels) - 1) as u32;
            axis += 1;
        }
        let (_, leaf) = leaf_of(&frame, nodes, unit);
        // An empty leaf may be behind all points.
        let place = if leaf.start < num_points { leaf.start } else { num_points - 1 };
        buckets.store(i, Cut::left_balanced(num_points).bucket_of(place));
        numbers.store(i, i as u32);
    }
}

/// The tree.
struct Tree<'a, const D: usize> {
    frame: Frame<D>,
    nodes: Slice<'a, Bits128>,
    cells: Slice<'a, u32>,
    parents: Slice<'a, u32>,
}

impl<const D: usize> Tree<'_, D> {
    /// Goes to every node that `goes_into` says, and to the children of those that it does; `leaf` is called with the leaves among them.
    #[inline(always)]
    unsafe fn walk(&self, mut goes_into: impl FnMut(u32, &Node) -> bool, mut leaf: impl FnMut(u32, &Node)) {
        let mut at = 0;
        while at != NO_NODE {
            let node = Node::from_bits(self.nodes.load(at as usize));
            if goes_into(at, &node) {
                if !node.is_leaf() {
                    at = node.first_child;
                    continue;
                }
                leaf(at, &node);
            }
            at = self.next(at);
        }
    }

    /// The first and the last unit of a node's cell on each axis.
    #[inline(always)]
    unsafe fn units(&self, at: u32, node: &Node) -> [[i64; D]; 2] {
        let (mut ends, more, mut axis) = ([[0; D]; 2], (1 << (self.frame.levels - node.level)) - 1, 0);
        while axis < D {
            ends[0][axis] = self.cells.load(at as usize * D + axis).into();
            ends[1][axis] = ends[0][axis] + more;
            axis += 1;
        }
        ends
    }

    /// Calls `take` with the leaves outside of a node's cell that touch it, be it with a corner.
    #[inline(always)]
    unsafe fn each_around(&self, of: u32, mut take: impl FnMut(u32)) {
        let [first, last] = self.units(of, &Node::from_bits(self.nodes.load(of as usize)));
        self.walk(
            |at, node| {
                let ([from, to], mut touches, mut axis) = (self.units(at, node), true, 0);
                while axis < D {
                    touches &= from[axis] <= last[axis] + 1 && to[axis] + 1 >= first[axis];
                    axis += 1;
                }
                touches && at != of
            },
            |at, _| take(at),
        );
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

/// Writes how many leaves there are around each node; a thread a node.
#[kernel(family = "quadtree", block = PER_ITEM_THREADS, hot)]
#[instances(D = [2, 3])]
pub unsafe fn quadtree_count_around<const D: usize>(
    frame: Slice<u64>,
    nodes: Slice<Bits128>,
    cells: Slice<u32>,
    parents: Slice<u32>,
    of: Slice<u32>,
    counts: SliceMut<u32>,
) {
    let i = thread::index_1d_u64() as usize;
    if i < counts.len() {
        let tree = Tree::<D> { frame: Frame::load(frame), nodes, cells, parents };
        let mut count = 0;
        tree.each_around(of.load(i), |_| count += 1);
        counts.store(i, count);
    }
}

/// Writes the leaves around each node in the order of depth first, from the node's offset on; a thread a node.
#[kernel(family = "quadtree", block = PER_ITEM_THREADS, hot)]
#[instances(D = [2, 3])]
pub unsafe fn quadtree_emit_around<const D: usize>(
    frame: Slice<u64>,
    nodes: Slice<Bits128>,
    cells: Slice<u32>,
    parents: Slice<u32>,
    of: Slice<u32>,
    offsets: Slice<u64>,
    found: SliceMut<u32>,
) {
    let i = thread::index_1d_u64() as usize;
    if i + 1 < offsets.len() {
        let tree = Tree::<D> { frame: Frame::load(frame), nodes, cells, parents };
        let mut to = offsets.load(i) as usize;
        tree.each_around(of.load(i), |leaf| {
            found.store(to, leaf);
            to += 1;
        });
    }
}

/// Writes the sample of each node of a level, from node `first` on: of a leaf the point that is nearest to the middle of its cell, or its
/// first point if it has more than `most`, which are all in one unit; of another node of its children's samples the one that is nearest to
/// its own. Of equally near ones the first, by its place; [`NO_NODE`] where there is no point. A thread a node.
#[kernel(family = "quadtree", block = PER_ITEM_THREADS, hot)]
#[instances(C = [f32, f64], D = [2, 3])]
pub unsafe fn quadtree_samples<C: Coord, const D: usize>(
    frame: Slice<u64>,
    nodes: Slice<Bits128>,
    cells: Slice<u32>,
    coords: Slice<C>,
    most: u32,
    first: u32,
    end: u32,
    samples: SliceMut<u32>,
) {
    let at = u64::from(first) + thread::index_1d_u64();
    if at < end.into() {
        let (frame, node) = (Frame::<D>::load(frame), Node::from_bits(nodes.load(at as usize)));
        let (mut middle, mut axis) = ([0.0; D], 0);
        while axis < D {
            let half = 0.5 * (1_u64 << (frame.levels - node.level)) as f64;
            middle[axis] = f64::from(cells.load(at as usize * D + axis)) + half;
            axis += 1;
        }
        let (mut best, mut best_distance) = (NO_NODE, f64::INFINITY);
        let mut look = |place: u32| {
            let distance = frame.units_from(load_point::<C, D>(coords, place as usize, D), middle);
            if distance < best_distance {
                (best, best_distance) = (place, distance);
            }
        };
        if !node.is_leaf() {
            let mut child = 0;
            while child < 1 << D {
                let sample = samples.load((node.first_child + child) as usize);
                if sample != NO_NODE {
                    look(sample);
                }
                child += 1;
            }
        } else if node.len() > most {
            best = node.start;
        } else {
            let mut place = node.start;
            while place < node.end {
                look(place);
                place += 1;
            }
        }
        samples.store(at as usize, best);
    }
}

//! Nearest queries by node-by-node traversal, one query per thread. Three ways to come back from a child:
//!
//! - stack-free: to the parent; the node that the traversal comes from tells which one is next (Wald 2022, *A Stack-Free Traversal
//!   Algorithm for Left-Balanced k-d Trees*);
//! - stack: to the last pending child, if the query is near enough to its split plane;
//! - closest corner: to the last pending child, if the query is near enough to its cell (after Wald's library cudaKDTree, which keeps the
//!   corner of the cell that is closest to the query).
//!
//! At most one child per level is pending, and in an implicit tree its number follows from the path: the stacks hold distances only.

use super::axes::AxisCycle;
use super::left_balanced::in_order_rank;
use crate::policy::{WALK_MIN_BLOCKS, WALK_STACK_MIN_BLOCKS, WALK_THREADS};
use crate::thread::best_k::BestK;
use crate::thread::coord::{Coord, Float, dist2};
use crate::thread::measure::MAX_DIMS;
use crate::thread::point::load_point;
use cuda_std::prelude::*;

const MAX_LEVELS: usize = 32;

/// The nodes of a left-balanced tree, points in in-order sequence.
#[derive(Clone, Copy, KernelArgs)]
pub struct Nodes<'a, C> {
    /// The coordinates, point after point.
    pub coords: Slice<'a, C>,
    /// The ids of the points.
    pub ids: Slice<'a, u32>,
    /// The split axis of each node.
    pub axes: crate::query::axes::Axes<'a>,
}

/// The arguments of the kernels.
#[derive(Clone, Copy, KernelArgs)]
pub struct NodeQueries<'a, C: Coord> {
    /// The tree.
    pub nodes: crate::query::by_nodes::Nodes<'a, C>,
    /// The coordinates, query after query.
    pub coords: Slice<'a, C>,
    /// The result row of each query; empty if that is the order of the queries.
    pub rows: Slice<'a, u32>,
    /// The result.
    pub result: crate::query::nearest::ResultRows<'a, <C as crate::thread::coord::Coord>::Distance>,
}

impl<'a, C: Coord> NodeQueries<'a, C> {
    /// Returns the traversal of the thread's query, if it has one. The number of dimensions is a constant unless `D` is [`MAX_DIMS`].
    #[inline(always)]
    unsafe fn traversal<const D: usize>(self) -> Option<NodeTraversal<'a, C, D>> {
        let Self { mut nodes, coords, rows, result } = self;
        nodes.axes.dims = if D == MAX_DIMS { nodes.axes.dims } else { D as u32 };
        let i = thread::index_1d_u64() as usize;
        if i * nodes.dims() >= coords.len() {
            return None;
        }
        let row = if rows.is_empty() { i } else { rows.load(i) as usize };
        // `rows` may hold anything while another stream builds the tree.
        if row >= result.ids.len() / result.k() {
            return None;
        }
        let row = result.row(row);
        let best = BestK::new(row.dist2, row.ids, C::Distance::INFINITY);
        let query = load_point(coords, i, nodes.dims());
        Some(NodeTraversal { nodes, cycle: nodes.axes.cycle(), query, best })
    }
}

/// Writes the `k` nearest points of each query by stack-free traversal; one thread per query. The number of dimensions is `D`, or any
/// number up to `D` if that is [`MAX_DIMS`].
#[kernel(family = "research-query", block = WALK_THREADS, min_blocks = WALK_MIN_BLOCKS, hot)]
#[instances(C = [f32, f64], D = [3, 8])]
#[instance(f32, 2)]
pub unsafe fn query_nearest_stack_free<C: Coord, const D: usize>(queries: NodeQueries<'_, C>) {
    if let Some(traversal) = queries.traversal::<D>() {
        traversal.run_stack_free()
    }
}

/// Writes the `k` nearest points of each query by traversal with a stack of distances to split planes; otherwise as
/// [`query_nearest_stack_free()`].
#[kernel(family = "research-query", block = WALK_THREADS, min_blocks = WALK_STACK_MIN_BLOCKS, shared = StackSmem<<C as Coord>::Distance, 1>, hot)]
#[instances(C = [f32, f64], D = [3, 8])]
#[instance(f32, 2)]
pub unsafe fn query_nearest_stack<C: Coord, const D: usize>(queries: NodeQueries<'_, C>) {
    if let Some(traversal) = queries.traversal::<D>() {
        traversal.run_with_stack(shared_mem::<StackSmem<C::Distance, 1>>())
    }
}

/// Writes the `k` nearest points of each query by traversal with a stack of distances to cells; otherwise as
/// [`query_nearest_stack_free()`].
#[kernel(family = "research-query", block = WALK_THREADS, min_blocks = WALK_STACK_MIN_BLOCKS, shared = StackSmem<<C as Coord>::Distance, 2>, hot)]
#[instances(C = [f32, f64], D = [3, 8])]
#[instance(f32, 2)]
pub unsafe fn query_nearest_closest_corner<C: Coord, const D: usize>(queries: NodeQueries<'_, C>) {
    if let Some(traversal) = queries.traversal::<D>() {
        traversal.run_with_stack(shared_mem::<StackSmem<C::Distance, 2>>())
    }
}

/// Shared memory of the stacks. For each level and thread: the distance of the pending child, and with a second number the offset of the
/// cell along the split axis before the pending child was entered.
#[repr(C, align(16))]
pub struct StackSmem<C, const NUMBERS: usize> {
    stack: [[[C; WALK_THREADS]; MAX_LEVELS]; NUMBERS],
}

impl<C: Coord> Nodes<'_, C> {
    #[inline(always)]
    fn dims(&self) -> usize {
        self.axes.dims as usize
    }

    /// True if the tree has a node with this path code, 1 for the root. The code is 64-bit because children of the last level may lie
    /// beyond 2^32.
    #[inline(always)]
    fn has(&self, code: u64) -> bool {
        code <= self.ids.len() as u64
    }

    /// Returns the slot of a node's point.
    #[inline(always)]
    fn slot(&self, code: u64) -> usize {
        in_order_rank((code - 1) as u32, self.ids.len() as u32) as usize
    }
}

/// The traversal of one query.
struct NodeTraversal<'a, C: Coord, const D: usize> {
    nodes: Nodes<'a, C>,
    /// The axes of the levels, unless nodes have axes of their own.
    cycle: AxisCycle,
    query: [C::Distance; D],
    best: BestK<'a, C::Distance>,
}

impl<C: Coord, const D: usize> NodeTraversal<'_, C, D> {
    #[inline(always)]
    unsafe fn run_stack_free(mut self) {
        let (mut code, mut previous) = (1_u64, 0_u64);
        while code != 0 {
            let mut next = code / 2;
            if self.nodes.has(code) {
                let from_above = previous < code;
                let slot = self.nodes.slot(code);
                if from_above {
                    self.offer(slot);
                }
                let (_, offset) = self.offset(code, slot);
                let near = 2 * code + u64::from(offset > C::Distance::ZERO);
                if from_above {
                    next = near;
                } else if previous == near && offset * offset <= self.best.bound() {
                    // Inclusive: at the distance of the k-th best a point with a smaller id wins.
                    next = near ^ 1;
                }
            }
            previous = code;
            code = next;
        }
        self.best.finish()
    }

    /// Prunes by distances to split planes with one number per entry, and by distances to cells with two.
    #[inline(always)]
    unsafe fn run_with_stack<const NUMBERS: usize>(mut self, smem: *mut StackSmem<C::Distance, NUMBERS>) {
        let by_cells = NUMBERS == 2;
        let stack = shared_field!(smem, stack);
        let index_of = |level: u32| level as usize * WALK_THREADS + thread::thread_idx_x() as usize;
        let second = MAX_LEVELS * WALK_THREADS;
        let (mut code, mut level) = (1_u64, 0);
        // Bit l: the far child of the path's node on level l is pending; the far child was entered.
        let (mut pending, mut entered) = (0_u32, 0_u32);
        // The distance to the cell along each axis.
        let mut offsets = [C::Distance::ZERO; D];
        loop {
            while self.nodes.has(code) {
                let slot = self.nodes.slot(code);
                self.offer(slot);
                let (axis, offset) = self.offset(code, slot);
                let near = 2 * code + u64::from(offset > C::Distance::ZERO);
                if self.nodes.has(near ^ 1) {
                    let distance = if by_cells {
                        let along = |other| if other == axis { offset } else { offsets[other] };
                        dist2(D, along, |_| C::Distance::ZERO)
                    } else {
                        offset * offset
                    };
                    if distance <= self.best.bound() {
                        stack.store(index_of(level), distance);
                        pending |= 1 << level;
                    }
                }
                (code, level) = (near, level + 1);
            }
            loop {
                if pending == 0 {
                    return self.best.finish();
                }
                let last = 31 - pending.leading_zeros();
                pending ^= 1 << last;
                // Restore the offsets of the cells that the traversal leaves.
                while by_cells && entered >> last > 1 {
                    let left = 31 - entered.leading_zeros();
                    entered ^= 1 << left;
                    let axis = self.axis(code >> (level - left));
                    set(&mut offsets, axis, stack.load(second + index_of(left)));
                }
                if stack.load(index_of(last)) <= self.best.bound() {
                    let near = code >> (level - last - 1);
                    if by_cells {
                        let (axis, offset) = self.offset(near / 2, self.nodes.slot(near / 2));
                        stack.store(second + index_of(last), get(&offsets, axis));
                        set(&mut offsets, axis, offset);
                        entered |= 1 << last;
                    }
                    (code, level) = (near ^ 1, last + 1);
                    break;
                }
            }
        }
    }

    /// Returns the split axis of a node.
    #[inline(always)]
    unsafe fn axis(&self, code: u64) -> usize {
        self.nodes.axes.of((code - 1) as u32, self.cycle)
    }

    /// Returns the split axis of a node, and the signed distance of the query from the split plane.
    #[inline(always)]
    unsafe fn offset(&self, code: u64, slot: usize) -> (usize, C::Distance) {
        let axis = self.axis(code);
        let plane = self.nodes.coords.load(slot * self.nodes.dims() + axis).widen();
        (axis, get(&self.query, axis) - plane)
    }

    #[inline(always)]
    unsafe fn offer(&mut self, slot: usize) {
        let point = load_point::<C, D>(self.nodes.coords, slot, self.nodes.dims());
        let distance = dist2(D, |axis| self.query[axis], |axis| point[axis]);
        // Most candidates are too far: reject them without reading the id.
        if distance <= self.best.bound() {
            self.best.offer(distance, self.nodes.ids.load(slot));
        }
    }
}

/// Returns a coordinate by a run-time index; the array stays in registers.
#[inline(always)]
fn get<C: Coord, const D: usize>(coords: &[C; D], axis: usize) -> C {
    let mut coord = coords[0];
    for other in 1..D {
        if other == axis {
            coord = coords[other];
        }
    }
    coord
}

/// Sets a coordinate by a run-time index; the array stays in registers.
#[inline(always)]
fn set<C: Coord, const D: usize>(coords: &mut [C; D], axis: usize, coord: C) {
    for other in 0..D {
        if other == axis {
            coords[other] = coord;
        }
    }
}

//! The k nearest points of each query, each by a walk of its own from node to node, by three ways back:
//!
//! - stack-free: from a child to its parent, which tells by where it came from what is next (Wald 2022, *A Stack-Free Traversal
//!   Algorithm for Left-Balanced k-d Trees*);
//! - stack: to the last child left aside, if its plane is near enough;
//! - closest corner: to the last child left aside, if its cell is near enough (after Wald's library cudaKDTree, which keeps the
//!   corner of the cell that is closest to the query).
//!
//! Of every level one child at most is left aside, and in an implicit tree its number is known: a stack has distances alone.

use super::axes::Axes;
use super::left_balanced::in_order_rank;
use crate::policy::{WALK_MIN_BLOCKS, WALK_STACK_MIN_BLOCKS, WALK_THREADS};
use crate::thread::best_k::BestK;
use crate::thread::coord::{Coord, dist2};
use crate::thread::measure::MAX_DIMS;
use crate::thread::point::load_point;
use cuda_std::prelude::*;

const MAX_LEVELS: usize = 32;

/// Finds the k nearest points of each query without a stack, a thread a query; `rows` are those of the result, empty if queries are
/// in their order. The number of dimensions is `D`, or up to that if it is [`MAX_DIMS`].
#[kernel(family = "query-by-nodes", block = WALK_THREADS, min_blocks = WALK_MIN_BLOCKS, hot)]
#[instances(C = [f32, f64], D = [3, 8])]
#[instance(f32, 2)]
pub unsafe fn query_nearest_stack_free<C: Coord, const D: usize>(
    node_coords: Slice<C>,
    node_ids: Slice<u32>,
    axes: Slice<u8>,
    queries: Slice<C>,
    rows: Slice<u32>,
    result_dist2: SliceMut<C>,
    result_ids: SliceMut<u32>,
    dims: u32,
    k: u64,
) {
    let nodes = Nodes::<C, D>::new(node_coords, node_ids, axes, dims);
    if let Some(walk) = Walk::new(nodes, queries, rows, result_dist2, result_ids, k as usize) {
        walk.run()
    }
}

/// The same with a stack of distances to planes.
#[kernel(family = "query-by-nodes", block = WALK_THREADS, min_blocks = WALK_STACK_MIN_BLOCKS, shared = StackSmem<C, 1>, hot)]
#[instances(C = [f32, f64], D = [3, 8])]
#[instance(f32, 2)]
pub unsafe fn query_nearest_stack<C: Coord, const D: usize>(
    node_coords: Slice<C>,
    node_ids: Slice<u32>,
    axes: Slice<u8>,
    queries: Slice<C>,
    rows: Slice<u32>,
    result_dist2: SliceMut<C>,
    result_ids: SliceMut<u32>,
    dims: u32,
    k: u64,
) {
    let nodes = Nodes::<C, D>::new(node_coords, node_ids, axes, dims);
    if let Some(walk) = Walk::new(nodes, queries, rows, result_dist2, result_ids, k as usize) {
        walk.run_with_stack(shared_mem::<StackSmem<C, 1>>())
    }
}

/// The same with a stack of distances to cells.
#[kernel(family = "query-by-nodes", block = WALK_THREADS, min_blocks = WALK_STACK_MIN_BLOCKS, shared = StackSmem<C, 2>, hot)]
#[instances(C = [f32, f64], D = [3, 8])]
#[instance(f32, 2)]
pub unsafe fn query_nearest_closest_corner<C: Coord, const D: usize>(
    node_coords: Slice<C>,
    node_ids: Slice<u32>,
    axes: Slice<u8>,
    queries: Slice<C>,
    rows: Slice<u32>,
    result_dist2: SliceMut<C>,
    result_ids: SliceMut<u32>,
    dims: u32,
    k: u64,
) {
    let nodes = Nodes::<C, D>::new(node_coords, node_ids, axes, dims);
    if let Some(walk) = Walk::new(nodes, queries, rows, result_dist2, result_ids, k as usize) {
        walk.run_with_stack(shared_mem::<StackSmem<C, 2>>())
    }
}

/// Shared memory of stacks: of each level and thread how far the child was that is left aside, and if there is a second number how
/// far the cell was along the axis before one was entered.
#[repr(C, align(16))]
pub struct StackSmem<C, const NUMBERS: usize> {
    stack: [[[C; WALK_THREADS]; MAX_LEVELS]; NUMBERS],
}

/// The nodes of a tree.
#[derive(Clone, Copy)]
struct Nodes<'a, C, const D: usize> {
    coords: Slice<'a, C>,
    ids: Slice<'a, u32>,
    axes: Axes<'a>,
    dims: usize,
}

impl<'a, C: Coord, const D: usize> Nodes<'a, C, D> {
    #[inline(always)]
    fn new(coords: Slice<'a, C>, ids: Slice<'a, u32>, axes: Slice<'a, u8>, dims: u32) -> Self {
        Self { coords, ids, axes: Axes { axes, dims }, dims: if D == MAX_DIMS { dims as usize } else { D } }
    }

    /// The node numbered `code` from 1 at the root; 64-bit, because children of the last level lie beyond all, which may be close to
    /// 2^32.
    #[inline(always)]
    fn has(&self, code: u64) -> bool {
        code <= self.ids.len() as u64
    }

    /// Where its point is stored.
    #[inline(always)]
    fn place(&self, code: u64) -> usize {
        in_order_rank((code - 1) as u32, self.ids.len() as u32) as usize
    }
}

/// One query's way through the tree.
struct Walk<'a, C, const D: usize> {
    nodes: Nodes<'a, C, D>,
    query: [C; D],
    best: BestK<'a, C>,
}

impl<'a, C: Coord, const D: usize> Walk<'a, C, D> {
    /// That of the thread's query, if there is one.
    #[inline(always)]
    unsafe fn new(
        nodes: Nodes<'a, C, D>,
        queries: Slice<'a, C>,
        rows: Slice<'a, u32>,
        result_dist2: SliceMut<'a, C>,
        result_ids: SliceMut<'a, u32>,
        k: usize,
    ) -> Option<Self> {
        let i = thread::index_1d_u64() as usize;
        if i * nodes.dims >= queries.len() {
            return None;
        }
        let row = if rows.is_empty() { i } else { rows.load(i) as usize };
        // A tree that another stream is building may have any numbers yet.
        if row >= result_ids.len() / k {
            return None;
        }
        let best = BestK::new(result_dist2.part(row * k, k), result_ids.part(row * k, k), C::INFINITY);
        Some(Self { nodes, query: load_point(queries, i, nodes.dims), best })
    }

    #[inline(always)]
    unsafe fn run(mut self) {
        let (mut code, mut previous) = (1_u64, 0_u64);
        while code != 0 {
            let mut next = code / 2;
            if self.nodes.has(code) {
                let from_above = previous < code;
                let place = self.nodes.place(code);
                if from_above {
                    self.offer(place);
                }
                let (_, offset) = self.offset(code, place);
                let near = 2 * code + u64::from(offset > C::ZERO);
                if from_above {
                    next = near;
                } else if previous == near && offset * offset <= self.best.bound() {
                    // Inclusive: a point as far as the k-th best wins by a smaller id.
                    next = near ^ 1;
                }
            }
            previous = code;
            code = next;
        }
        self.best.finish()
    }

    /// With one number by distances to planes, with two by distances to cells.
    #[inline(always)]
    unsafe fn run_with_stack<const NUMBERS: usize>(mut self, smem: *mut StackSmem<C, NUMBERS>) {
        let by_cells = NUMBERS == 2;
        let stack = shared_field!(smem, stack);
        let place_of = |level: u32| level as usize * WALK_THREADS + thread::thread_idx_x() as usize;
        let before = MAX_LEVELS * WALK_THREADS;
        let (mut code, mut level) = (1_u64, 0);
        // Bit l: of the node on level l of the way the other child is left aside; it is the one that was entered.
        let (mut waiting, mut entered) = (0_u32, 0_u32);
        // How far the cell is along each axis.
        let mut offsets = [C::ZERO; D];
        loop {
            while self.nodes.has(code) {
                let place = self.nodes.place(code);
                self.offer(place);
                let (axis, offset) = self.offset(code, place);
                let near = 2 * code + u64::from(offset > C::ZERO);
                if self.nodes.has(near ^ 1) {
                    let distance = if by_cells {
                        let along = |other| if other == axis { offset } else { offsets[other] };
                        dist2(D, along, |_| C::ZERO)
                    } else {
                        offset * offset
                    };
                    if distance <= self.best.bound() {
                        stack.store(place_of(level), distance);
                        waiting |= 1 << level;
                    }
                }
                (code, level) = (near, level + 1);
            }
            loop {
                if waiting == 0 {
                    return self.best.finish();
                }
                let last = 31 - waiting.leading_zeros();
                waiting ^= 1 << last;
                // Cells that are left.
                while by_cells && entered >> last > 1 {
                    let left = 31 - entered.leading_zeros();
                    entered ^= 1 << left;
                    let axis = self.nodes.axes.of(((code >> (level - left)) - 1) as u32);
                    set(&mut offsets, axis, stack.load(before + place_of(left)));
                }
                if stack.load(place_of(last)) <= self.best.bound() {
                    let near = code >> (level - last - 1);
                    if by_cells {
                        let (axis, offset) = self.offset(near / 2, self.nodes.place(near / 2));
                        stack.store(before + place_of(last), get(&offsets, axis));
                        set(&mut offsets, axis, offset);
                        entered |= 1 << last;
                    }
                    (code, level) = (near ^ 1, last + 1);
                    break;
                }
            }
        }
    }

    /// The axis of a node, and how far the query is beyond its plane.
    #[inline(always)]
    unsafe fn offset(&self, code: u64, place: usize) -> (usize, C) {
        let axis = self.nodes.axes.of((code - 1) as u32);
        (axis, get(&self.query, axis) - self.nodes.coords.load(place * self.nodes.dims + axis))
    }

    #[inline(always)]
    unsafe fn offer(&mut self, place: usize) {
        let point = load_point::<C, D>(self.nodes.coords, place, self.nodes.dims);
        let distance = dist2(D, |axis| self.query[axis], |axis| point[axis]);
        // Most candidates are too far: settle that without reading the id.
        if distance <= self.best.bound() {
            self.best.offer(distance, self.nodes.ids.load(place));
        }
    }
}

/// A coordinate by a number that is not known when loops are unrolled; the array stays in registers.
#[inline(always)]
fn get<C: Coord, const D: usize>(coords: &[C; D], axis: usize) -> C {
    let mut coord = coords[0];
    let mut other = 1;
    while other < D {
        if other == axis {
            coord = coords[other];
        }
        other += 1;
    }
    coord
}

/// Sets one in the same way.
#[inline(always)]
fn set<C: Coord, const D: usize>(coords: &mut [C; D], axis: usize, coord: C) {
    let mut other = 0;
    while other < D {
        if other == axis {
            coords[other] = coord;
        }
        other += 1;
    }
}

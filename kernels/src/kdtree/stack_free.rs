//! The k nearest points of each query, by the stack-free walk (Wald 2022, "A Stack-Free Traversal Algorithm for
//! Left-Balanced k-d Trees").

use super::left_balanced::{in_order_rank, level};
use crate::policy::{WALK_MIN_BLOCKS, WALK_THREADS};
use crate::thread::best_k::BestK;
use crate::thread::coord::{Coord, dist2};
use cuda_std::prelude::*;

/// Finds the k nearest points of each query, a thread a query; `rows` are those of the result, empty if queries are in their order. The number of dimensions is `D`, or `dims` if `D` is 0.
#[kernel(family = "kdtree", block = WALK_THREADS, min_blocks = WALK_MIN_BLOCKS, hot)]
#[instance(f32, 2)]
#[instance(f32, 3)]
#[instance(f32, 4)]
#[instance(f32, 0)]
#[instance(f64, 2)]
#[instance(f64, 3)]
#[instance(f64, 4)]
#[instance(f64, 0)]
pub unsafe fn kdtree_nearest_stack_free<C: Coord, const D: usize>(
    node_coords: Slice<C>,
    node_ids: Slice<u32>,
    queries: Slice<C>,
    rows: Slice<u32>,
    result_dist2: SliceMut<C>,
    result_ids: SliceMut<u32>,
    dims: u32,
    k: u64,
) {
    let dims = if D == 0 { dims as usize } else { D };
    let (q, k) = (thread::index_1d_u64() as usize, k as usize);
    if q * dims < queries.len() {
        let row = if rows.is_empty() { q } else { rows.load(q) as usize };
        // A tree that another stream is building may have any numbers yet.
        if row >= result_ids.len() / k {
            return;
        }
        let best = BestK::new(result_dist2.part(row * k, k), result_ids.part(row * k, k), C::INFINITY);
        Walk { node_coords, node_ids, query: queries.part(q * dims, dims), dims, best }.run()
    }
}

/// One query's way through the tree.
struct Walk<'a, C> {
    node_coords: Slice<'a, C>,
    node_ids: Slice<'a, u32>,
    query: Slice<'a, C>,
    dims: usize,
    best: BestK<'a, C>,
}

impl<C: Coord> Walk<'_, C> {
    #[inline(always)]
    unsafe fn run(mut self) {
        let n = self.node_ids.len() as u64;
        // 64-bit, because children of the last level lie beyond n, which may be close to 2^32.
        let (mut node, mut previous) = (0u64, None::<u64>);
        loop {
            let mut next = None;
            if node < n {
                let from_above = previous.is_none_or(|p| p < node);
                let place = in_order_rank(node as u32, n as u32) as usize;
                if from_above {
                    self.offer(place);
                }
                let axis = (level(node as u32) as usize) % self.dims;
                let d = self.query.load(axis) - self.node_coords.load(place * self.dims + axis);
                let near = 2 * node + if d > C::ZERO { 2 } else { 1 };
                let far = 4 * node + 3 - near;
                if from_above {
                    next = Some(near);
                } else if previous == Some(near) && d * d <= self.best.bound() {
                    // Inclusive: a point as far as the k-th best wins by a smaller id.
                    next = Some(far);
                }
            }
            previous = Some(node);
            node = match next {
                Some(child) => child,
                None if node == 0 => break,
                None => (node - 1) / 2,
            };
        }
        self.best.finish()
    }

    #[inline(always)]
    unsafe fn offer(&mut self, place: usize) {
        let d = dist2(
            self.dims,
            |axis| self.query.load(axis),
            |axis| self.node_coords.load(place * self.dims + axis),
        );
        // Most candidates are too far: settle that without reading the id.
        if d <= self.best.bound() {
            self.best.offer(d, self.node_ids.load(place));
        }
    }
}

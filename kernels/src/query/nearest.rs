//! Nearest queries: the k nearest points of each query, by a traversal of the bucket index.
//!
//! The best points so far are ranks with ids, so that of equally near points the smaller id comes first. They start as the bound with the
//! largest id, which no point beyond the bound beats. A list with more than `k` entries starts with fillers that come before every point
//! and are not written to the result.
//!
//! - `one`: the nearest point.
//! - `list`: up to 32, in the registers of a lane.
//! - `queue`: up to 256, in the registers of a warp that shares one query.
//! - `heap`: any number, as a heap in the result row.

mod heap;
mod list;
mod one;
mod queue;

use super::traversal::together::TogetherSmem;
use super::traversal::{BucketTraversal, THREADS, TraversalSmem};
use crate::policy::QUERIES;
use crate::thread::coord::{Coord, Float};
use crate::thread::ranked::Ranked;
use crate::thread::region::Measure;
use cuda_std::prelude::*;
use heap::Heap;
use list::List;
use one::One;
use queue::Queue;

pub use list::ListSmem;

/// Warps of a block.
const WARPS: usize = THREADS / 32;

/// Result rows of `k` neighbors.
#[derive(Clone, Copy, KernelArgs)]
pub struct ResultRows<'a, C> {
    /// The distances, row after row.
    pub dist2: SliceMut<'a, C>,
    /// The ids, row after row.
    pub ids: SliceMut<'a, u32>,
    /// Entries of a row.
    pub k: u64,
}

impl<'a, C: Float> ResultRows<'a, C> {
    #[inline(always)]
    pub(crate) fn k(&self) -> usize {
        self.k as usize
    }

    #[inline(always)]
    pub(crate) unsafe fn row(&self, row: usize) -> Self {
        let begin = row * self.k();
        Self { dist2: self.dist2.part(begin, self.k()), ids: self.ids.part(begin, self.k()), k: self.k }
    }

    /// Writes entry `i` of this single row; the largest id stands for no point.
    #[inline(always)]
    unsafe fn set(&self, i: usize, best: C::Ranked) {
        let id = best.id();
        self.ids.store(i, id);
        self.dist2.store(i, if id == u32::MAX { C::INFINITY } else { C::from_key(best.rank()) });
    }
}

/// Keeps the best points that a lane or a warp finds.
trait KeepBest<C: Coord, const D: usize> {
    /// True if all lanes of a warp share one query.
    const ONE_QUERY_PER_WARP: bool;
    /// Finds the best points within `bound`. All lanes of the warp call it.
    unsafe fn search(&mut self, bound: C::Distance, traversal: Traversal<'_, C, D>);
    /// Writes the best points to their row.
    unsafe fn write(self, row: ResultRows<'_, C::Distance>);
}

/// The traversal of a query point.
type Traversal<'a, C, const D: usize> = BucketTraversal<'a, C, Measure<'a, <C as Coord>::Distance, D>, D>;

/// The arguments of the kernels.
#[derive(Clone, Copy, KernelArgs)]
pub struct Nearest<'a, C: Coord> {
    /// The index.
    pub index: crate::query::buckets::Index<'a, C>,
    /// The queries.
    pub queries: crate::query::queries::Queries<'a, C>,
    /// The result.
    pub result: crate::query::nearest::ResultRows<'a, <C as crate::thread::coord::Coord>::Distance>,
}

impl<'a, C: Coord> Nearest<'a, C> {
    /// Answers query `i` together with the warp's other queries; `keep_best` makes the lane's list from a bound and a row.
    #[inline(always)]
    unsafe fn run<const D: usize, B: KeepBest<C, D>>(
        &self,
        i: u64,
        smem: *mut TraversalSmem<C::Distance>,
        keep_best: impl FnOnce(C::Distance, ResultRows<'a, C::Distance>) -> B,
    ) {
        let Some((traversal, row)) = self.queries.traversal::<D>(i, B::ONE_QUERY_PER_WARP, self.index, smem)
        else {
            return;
        };
        // `rows` may hold anything while another stream builds the tree.
        let row = row.filter(|&row| row < self.result.ids.len() / self.result.k());
        let is_active = row.is_some();
        let row = self.result.row(row.unwrap_or(0));
        let bound = if is_active {
            C::Distance::from_f64(self.queries.bound)
        } else {
            C::Distance::ZERO - C::Distance::INFINITY
        };
        let mut best = keep_best(bound, row);
        best.search(bound, traversal);
        if is_active {
            best.write(row);
        }
    }
}

/// Returns the rank that comes after every point within `bound`; it stands for no point.
#[inline(always)]
fn worst<C: Float>(bound: C) -> C::Ranked {
    Ranked::new(bound.key(), u32::MAX)
}

/// Writes the nearest point of each query within the queries' bound; one lane per query, which share their work.
#[kernel(family = "query-nearest", block = THREADS, min_blocks = QUERIES.one_min_blocks(D, size_of::<<C as Coord>::Distance>()), shared = TogetherSmem<<C as Coord>::Distance, D, WARPS>, hot)]
#[instances(C = [f32, f64, i32], D = [2, 3, 8])]
#[instance(f32, 4)]
pub unsafe fn query_nearest_one<C: Coord, const D: usize>(nearest: Nearest<'_, C>) {
    nearest.run::<D, _>(thread::index_1d_u64(), core::ptr::null_mut(), |_, _| {
        One::<C::Distance, D>::new(shared_mem())
    });
}

/// Writes the `k` nearest points of each query, up to `K`; one lane per query, which share their work. Up to `B` points of a query are
/// collected before they are merged.
#[kernel(
    family = "query-nearest", block = THREADS, min_blocks = QUERIES.list_min_blocks,
    shared = ListSmem<<C as Coord>::Distance, D, B>, hot
)]
#[instances(C = [f32], D = [2, 3, 4], K = [8, 16], B = [8])]
#[instances(C = [f32], D = [2, 3, 4], K = [32], B = [16])]
#[instances(C = [f64, i32], D = [2, 3], K = [8], B = [8])]
pub unsafe fn query_nearest_list<C: Coord, const D: usize, const K: usize, const B: usize>(
    nearest: Nearest<'_, C>,
) {
    nearest.run::<D, _>(thread::index_1d_u64(), core::ptr::null_mut(), |bound, row| {
        List::<C::Distance, D, K, B>::new(bound, row.k(), shared_mem())
    });
}

/// Writes the `k` nearest points of each query, up to `32 * T`; one warp per query.
#[kernel(family = "query-nearest-many", block = THREADS, min_blocks = QUERIES.queue_min_blocks(D, size_of::<<C as Coord>::Distance>(), T), shared = TraversalSmem<<C as Coord>::Distance>, hot)]
#[instances(C = [f32, f64, i32], D = [8, 2, 3], T = [4, 8])]
#[instances(C = [f64, i32], D = [8, 2, 3], T = [1])]
#[instances(C = [f32], D = [4], T = [4, 8])]
#[instance(f32, 8, 1)]
pub unsafe fn query_nearest_queue<C: Coord, const D: usize, const T: usize>(nearest: Nearest<'_, C>) {
    nearest.run::<D, _>(thread::index_1d_u64() / 32, shared_mem(), |bound, row| {
        Queue::<C::Distance, T>::new(bound, row.k())
    });
}

/// Writes the `k` nearest points of each query for any `k`; one lane per query.
#[kernel(family = "query-nearest-many", block = THREADS, min_blocks = QUERIES.min_blocks(D, size_of::<<C as Coord>::Distance>()), shared = TraversalSmem<<C as Coord>::Distance>, hot)]
#[instances(C = [f32, f64, i32], D = [2, 3, 8])]
#[instance(f32, 4)]
pub unsafe fn query_nearest_heap<C: Coord, const D: usize>(nearest: Nearest<'_, C>) {
    nearest.run::<D, _>(thread::index_1d_u64(), shared_mem(), Heap::new);
}

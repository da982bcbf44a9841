//! The k nearest points of each query, by a walk over the buckets.
//!
//! The best so far are ranks with ids, so that of equally near points the smaller id comes first. They start as what cannot
//! be beaten by a point too far: the largest distance that is wanted, with the largest id. Where there is room for more than
//! `k`, the rest starts as what comes first of all, and is left out of the result.
//!
//! - `one`: the nearest one.
//! - `list`: up to 32, a list of a lane in registers.
//! - `queue`: up to 256, a query a warp, whose lanes keep the list together.
//! - `heap`: any number, a heap of a lane in the result itself.

mod heap;
mod list;
mod one;
mod queue;

use super::buckets::Index;
use super::queries::Queries;
use super::walk::{THREADS, Visit, WalkSmem};
use crate::policy::QUERIES;
use crate::thread::coord::Coord;
use crate::thread::ranked::Ranked;
use cuda_std::prelude::*;
use heap::Heap;
use list::List;
use one::One;
use queue::Queue;

pub use list::ListSmem;

/// Result rows of `k` neighbors.
#[derive(Clone, Copy, KernelArgs)]
pub struct ResultRows<'a, C> {
    /// The distances of row after row.
    pub dist2: SliceMut<'a, C>,
    /// The ids of row after row.
    pub ids: SliceMut<'a, u32>,
    /// Entries of a row.
    pub k: u64,
}

impl<'a, C: Coord> ResultRows<'a, C> {
    #[inline(always)]
    fn k(&self) -> usize {
        self.k as usize
    }

    #[inline(always)]
    unsafe fn row(&self, row: usize) -> Self {
        let begin = row * self.k();
        Self { dist2: self.dist2.part(begin, self.k()), ids: self.ids.part(begin, self.k()), k: self.k }
    }

    /// Writes entry `i` of the only row; the largest id stands for no point.
    #[inline(always)]
    unsafe fn set(&self, i: usize, best: C::Ranked) {
        let id = best.id();
        self.ids.store(i, id);
        self.dist2.store(i, if id == u32::MAX { C::INFINITY } else { C::from_key(best.rank()) });
    }
}

/// Keeps the best that a lane or a warp meets.
trait Best<C>: Visit<C> {
    /// All points have been met. All lanes call.
    #[inline(always)]
    unsafe fn finish(&mut self) {}
    /// Writes them to their row.
    unsafe fn write(self, row: ResultRows<'_, C>);
}

/// One launch.
struct Nearest<'a, C> {
    index: Index<'a, C>,
    queries: Queries<'a, C>,
    result: ResultRows<'a, C>,
}

impl<'a, C: Coord> Nearest<'a, C> {
    /// Answers query `i` of the order, and the warp's other queries; `best` makes what keeps a lane's best, of a bound and a row.
    #[inline(always)]
    unsafe fn run<const D: usize, B: Best<C>>(
        &self,
        i: u64,
        smem: *mut WalkSmem<C>,
        best: impl FnOnce(C, ResultRows<'a, C>) -> B,
    ) {
        let Some((walk, row)) = self.queries.walk::<D>(i, B::ONE_QUERY, self.index, smem) else {
            return;
        };
        // A tree that another stream is building may have any numbers yet.
        let row = row.filter(|&row| row < self.result.ids.len() / self.result.k());
        let is_active = row.is_some();
        let row = self.result.row(row.unwrap_or(0));
        let mut best =
            best(if is_active { C::from_f64(self.queries.bound) } else { C::ZERO - C::INFINITY }, row);
        walk.run(&mut best);
        best.finish();
        if is_active {
            best.write(row);
        }
    }
}

/// What comes last among what is not farther than a bound: no point at all.
#[inline(always)]
fn worst<C: Coord>(bound: C) -> C::Ranked {
    Ranked::new(bound.key(), u32::MAX)
}

/// Writes the nearest point of each query that is not farther than `bound`; a lane a query.
#[kernel(family = "query-nearest", block = THREADS, min_blocks = QUERIES.min_blocks(D, size_of::<C>()), shared = WalkSmem<C>, hot)]
#[instances(C = [f32, f64], D = [2, 3, 8])]
#[instance(f32, 4)]
pub unsafe fn query_nearest_one<C: Coord, const D: usize>(
    index: Index<'_, C>,
    queries: Queries<'_, C>,
    result: ResultRows<'_, C>,
) {
    let nearest = Nearest { index, queries, result };
    nearest.run::<D, _>(thread::index_1d_u64(), shared_mem(), |bound, _| One::new(bound));
}

/// The same of the `k` nearest, up to `K`; so many as `B` are collected before they are sorted in.
#[kernel(
    family = "query-nearest", block = THREADS, min_blocks = QUERIES.list_min_blocks,
    shared = ListSmem<C, B>, hot
)]
#[instances(C = [f32], D = [2, 3, 4], K = [8, 16], B = [8])]
#[instances(C = [f32], D = [2, 3, 4], K = [32], B = [16])]
#[instances(C = [f64], D = [2, 3], K = [8], B = [8])]
pub unsafe fn query_nearest_list<C: Coord, const D: usize, const K: usize, const B: usize>(
    index: Index<'_, C>,
    queries: Queries<'_, C>,
    result: ResultRows<'_, C>,
) {
    let nearest = Nearest { index, queries, result };
    let smem = shared_mem::<ListSmem<C, B>>();
    let walk = &raw mut (*smem).walk;
    nearest
        .run::<D, _>(thread::index_1d_u64(), walk, |bound, row| List::<C, K, B>::new(bound, row.k(), smem));
}

/// The same of the `k` nearest, up to `32 * T`; a warp a query.
#[kernel(family = "query-nearest-many", block = THREADS, min_blocks = QUERIES.queue_min_blocks(D, size_of::<C>(), T), shared = WalkSmem<C>, hot)]
#[instances(C = [f32, f64], D = [8, 2, 3], T = [4, 8])]
#[instances(C = [f64], D = [8, 2, 3], T = [1])]
#[instances(C = [f32], D = [4], T = [4, 8])]
#[instance(f32, 8, 1)]
pub unsafe fn query_nearest_queue<C: Coord, const D: usize, const T: usize>(
    index: Index<'_, C>,
    queries: Queries<'_, C>,
    result: ResultRows<'_, C>,
) {
    let nearest = Nearest { index, queries, result };
    nearest.run::<D, _>(thread::index_1d_u64() / 32, shared_mem(), |bound, row| {
        Queue::<C, T>::new(bound, row.k())
    });
}

/// The same of any number; a lane a query.
#[kernel(family = "query-nearest-many", block = THREADS, min_blocks = QUERIES.min_blocks(D, size_of::<C>()), shared = WalkSmem<C>, hot)]
#[instances(C = [f32, f64], D = [2, 3, 8])]
#[instance(f32, 4)]
pub unsafe fn query_nearest_heap<C: Coord, const D: usize>(
    index: Index<'_, C>,
    queries: Queries<'_, C>,
    result: ResultRows<'_, C>,
) {
    let nearest = Nearest { index, queries, result };
    nearest.run::<D, _>(thread::index_1d_u64(), shared_mem(), Heap::new);
}

//! The k nearest points of each query, by a walk of whole warps over the buckets.
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

use super::buckets::{Buckets, load_point};
use super::walk::{Filter, Visit, Walk};
use crate::policy::QUERIES;
use crate::thread::coord::Coord;
use crate::thread::measure::{Measure, Norm};
use crate::thread::ranked::Ranked;
use cuda_std::prelude::*;
use heap::Heap;
use list::List;
use one::One;
use queue::Queue;

pub use list::ListSmem;

const THREADS: usize = QUERIES.threads;

/// What is asked for beside the points, in one word.
pub mod flags {
    /// Queries lie in the order of `rows`; otherwise query `i` of the order is that of row `rows[i]`.
    pub const IN_ORDER: u32 = 1;
    /// The norm is in the bits from here on.
    pub const NORM_SHIFT: u32 = 1;
}

/// The queries, and what they ask for.
#[derive(Clone, Copy)]
pub(super) struct Queries<'a, C> {
    pub(super) coords: Slice<'a, C>,
    /// The row of the result for each query in the order of the walk; empty if that is the order of the rows.
    pub(super) rows: Slice<'a, u32>,
    /// The id of a point that each query, in the order of the walk, does not take; empty if it takes all.
    pub(super) except: Slice<'a, u32>,
    /// A bit a point that may be taken; empty if all may be.
    pub(super) mask: Slice<'a, u32>,
    pub(super) periods: Slice<'a, C>,
    pub(super) flags: u32,
}

impl<'a, C: Coord> Queries<'a, C> {
    /// Number of queries.
    #[inline(always)]
    pub(super) fn len(&self, dims: usize) -> usize {
        if self.rows.is_empty() { self.coords.len() / dims } else { self.rows.len() }
    }

    /// The walk of query `i` of the order, and its row.
    #[inline(always)]
    pub(super) unsafe fn walk<const D: usize>(
        &self,
        i: usize,
        buckets: Buckets<'a, C>,
        boxes: Slice<'a, C>,
    ) -> (Walk<'a, C, D>, usize) {
        let row = if self.rows.is_empty() { i } else { self.rows.load(i) as usize };
        let place = if self.flags & flags::IN_ORDER != 0 { i } else { row };
        let query = load_point(self.coords, place, buckets.dims);
        let norm = Norm::of(self.flags >> flags::NORM_SHIFT);
        let measure = Measure::new(query, buckets.dims, norm, self.periods);
        let except = if self.except.is_empty() { u32::MAX } else { self.except.load(i) };
        (Walk { buckets, boxes, measure, filter: Filter { mask: self.mask, except } }, row)
    }
}

/// Rows of a result.
#[derive(Clone, Copy)]
struct Rows<'a, C> {
    dist2: SliceMut<'a, C>,
    ids: SliceMut<'a, u32>,
    /// Entries of a row.
    k: usize,
}

impl<'a, C: Coord> Rows<'a, C> {
    #[inline(always)]
    unsafe fn row(&self, row: usize) -> Self {
        let (begin, k) = (row * self.k, self.k);
        Self { dist2: self.dist2.part(begin, k), ids: self.ids.part(begin, k), k }
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
    /// Writes them to their row.
    unsafe fn write(self, row: Rows<'_, C>);
}

/// One launch.
struct Nearest<'a, C> {
    buckets: Buckets<'a, C>,
    boxes: Slice<'a, C>,
    queries: Queries<'a, C>,
    /// No point farther than that is wanted.
    bound: C,
    result: Rows<'a, C>,
}

impl<'a, C: Coord> Nearest<'a, C> {
    /// Answers query `i` of the order, and the warp's other queries; `best` makes what keeps a lane's best, of a bound and a row.
    #[inline(always)]
    unsafe fn run<const D: usize, B: Best<C>>(&self, i: u64, best: impl FnOnce(C, Rows<'a, C>) -> B) {
        let num_queries = self.queries.len(self.buckets.dims) as u64;
        let first = if B::ONE_QUERY { i } else { i - u64::from(warp::lane_id()) };
        if first >= num_queries {
            return;
        }
        // Lanes without a query go along with the warp's first one, and take nothing.
        let is_active = i < num_queries;
        let query = if is_active { i } else { first };
        let (walk, row) = self.queries.walk::<D>(query as usize, self.buckets, self.boxes);
        let row = self.result.row(row);
        let mut best = best(if is_active { self.bound } else { C::ZERO - C::INFINITY }, row);
        walk.run(&mut best);
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
#[kernel(family = "kdtree-queries", block = THREADS, min_blocks = QUERIES.min_blocks(D), hot)]
#[instance(f32, 2)]
#[instance(f32, 3)]
#[instance(f32, 4)]
#[instance(f32, 8)]
#[instance(f64, 2)]
#[instance(f64, 3)]
#[instance(f64, 8)]
pub unsafe fn kdtree_nearest_one<C: Coord, const D: usize>(
    coords: Slice<C>,
    ids: Slice<u32>,
    boxes: Slice<C>,
    dims: u32,
    queries: Slice<C>,
    rows: Slice<u32>,
    except: Slice<u32>,
    mask: Slice<u32>,
    periods: Slice<C>,
    flags: u32,
    bound: f64,
    k: u64,
    result_dist2: SliceMut<C>,
    result_ids: SliceMut<u32>,
) {
    let buckets = Buckets::new(coords, ids, dims as usize);
    let queries = Queries { coords: queries, rows, except, mask, periods, flags };
    let result = Rows { dist2: result_dist2, ids: result_ids, k: k as usize };
    let nearest = Nearest { buckets, boxes, queries, bound: C::from_f64(bound), result };
    nearest.run::<D, _>(thread::index_1d_u64(), |bound, _| One::new(bound));
}

/// The same of the `k` nearest, up to `K`; so many as `B` are collected before they are sorted in.
#[kernel(
    family = "kdtree-queries", block = THREADS, min_blocks = QUERIES.list_min_blocks,
    shared = ListSmem<<C as Coord>::Ranked, B>, hot
)]
#[instance(f32, 2, 8, 8)]
#[instance(f32, 3, 8, 8)]
#[instance(f32, 4, 8, 8)]
#[instance(f32, 2, 16, 8)]
#[instance(f32, 3, 16, 8)]
#[instance(f32, 4, 16, 8)]
#[instance(f32, 2, 32, 16)]
#[instance(f32, 3, 32, 16)]
#[instance(f32, 4, 32, 16)]
pub unsafe fn kdtree_nearest_list<C: Coord, const D: usize, const K: usize, const B: usize>(
    coords: Slice<C>,
    ids: Slice<u32>,
    boxes: Slice<C>,
    dims: u32,
    queries: Slice<C>,
    rows: Slice<u32>,
    except: Slice<u32>,
    mask: Slice<u32>,
    periods: Slice<C>,
    flags: u32,
    bound: f64,
    k: u64,
    result_dist2: SliceMut<C>,
    result_ids: SliceMut<u32>,
) {
    let buckets = Buckets::new(coords, ids, dims as usize);
    let queries = Queries { coords: queries, rows, except, mask, periods, flags };
    let result = Rows { dist2: result_dist2, ids: result_ids, k: k as usize };
    let nearest = Nearest { buckets, boxes, queries, bound: C::from_f64(bound), result };
    nearest
        .run::<D, _>(thread::index_1d_u64(), |bound, row| List::<C, K, B>::new(bound, row.k, shared_mem()));
}

/// The same of the `k` nearest, up to `32 * T`; a warp a query.
#[kernel(family = "kdtree-queries", block = THREADS, min_blocks = QUERIES.min_blocks(D), hot)]
#[instance(f32, 8, 1)]
#[instance(f64, 2, 1)]
#[instance(f64, 3, 1)]
#[instance(f64, 8, 1)]
#[instance(f32, 2, 4)]
#[instance(f32, 3, 4)]
#[instance(f32, 4, 4)]
#[instance(f32, 8, 4)]
#[instance(f64, 2, 4)]
#[instance(f64, 3, 4)]
#[instance(f64, 8, 4)]
#[instance(f32, 2, 8)]
#[instance(f32, 3, 8)]
#[instance(f32, 4, 8)]
#[instance(f32, 8, 8)]
#[instance(f64, 2, 8)]
#[instance(f64, 3, 8)]
#[instance(f64, 8, 8)]
pub unsafe fn kdtree_nearest_queue<C: Coord, const D: usize, const T: usize>(
    coords: Slice<C>,
    ids: Slice<u32>,
    boxes: Slice<C>,
    dims: u32,
    queries: Slice<C>,
    rows: Slice<u32>,
    except: Slice<u32>,
    mask: Slice<u32>,
    periods: Slice<C>,
    flags: u32,
    bound: f64,
    k: u64,
    result_dist2: SliceMut<C>,
    result_ids: SliceMut<u32>,
) {
    let buckets = Buckets::new(coords, ids, dims as usize);
    let queries = Queries { coords: queries, rows, except, mask, periods, flags };
    let result = Rows { dist2: result_dist2, ids: result_ids, k: k as usize };
    let nearest = Nearest { buckets, boxes, queries, bound: C::from_f64(bound), result };
    nearest.run::<D, _>(thread::index_1d_u64() / 32, |bound, row| Queue::<C, T>::new(bound, row.k));
}

/// The same of any number; a lane a query.
#[kernel(family = "kdtree-queries", block = THREADS, min_blocks = QUERIES.min_blocks(D), hot)]
#[instance(f32, 2)]
#[instance(f32, 3)]
#[instance(f32, 4)]
#[instance(f32, 8)]
#[instance(f64, 2)]
#[instance(f64, 3)]
#[instance(f64, 8)]
pub unsafe fn kdtree_nearest_heap<C: Coord, const D: usize>(
    coords: Slice<C>,
    ids: Slice<u32>,
    boxes: Slice<C>,
    dims: u32,
    queries: Slice<C>,
    rows: Slice<u32>,
    except: Slice<u32>,
    mask: Slice<u32>,
    periods: Slice<C>,
    flags: u32,
    bound: f64,
    k: u64,
    result_dist2: SliceMut<C>,
    result_ids: SliceMut<u32>,
) {
    let buckets = Buckets::new(coords, ids, dims as usize);
    let queries = Queries { coords: queries, rows, except, mask, periods, flags };
    let result = Rows { dist2: result_dist2, ids: result_ids, k: k as usize };
    let nearest = Nearest { buckets, boxes, queries, bound: C::from_f64(bound), result };
    nearest.run::<D, _>(thread::index_1d_u64(), Heap::new);
}

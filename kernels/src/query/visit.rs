//! Visits: kernels of your own that take the points around each query, one by one, without lists of ids in memory.
//!
//! This kernel estimates the light that falls on surfaces from the photons that have hit them (Jensen 1996, *Global Illumination using Photon
//! Maps*): the power of the photons within a radius that come from the side of the surface's normal. The host launches it with
//! `DeviceIndex::visit_on`. A [`Visit`] is plain Rust: `SpatialIndex::visit` calls the same one on the CPU, with a closure that reads the
//! photons from a slice. The example `11_own_visitor` does both.
//!
//! ```
//! use cuda_std::prelude::*;
//! use kauri_kernels::query::traversal::TraversalSmem;
//! use kauri_kernels::query::visit::{THREADS, Visit, Visits};
//!
//! struct Irradiance<F> {
//!     bound: f32,
//!     normal: [f32; 3],
//!     /// Returns the direction to where a photon has come from, and its power.
//!     photon: F,
//!     power: f32,
//! }
//!
//! impl<F: Fn(u32) -> [f32; 4]> Visit<f32> for Irradiance<F> {
//!     fn bound(&self) -> f32 {
//!         self.bound
//!     }
//!
//!     fn point(&mut self, _: f32, id: u32) {
//!         let [x, y, z, power] = (self.photon)(id);
//!         if x * self.normal[0] + y * self.normal[1] + z * self.normal[2] > 0.0 {
//!             self.power += power;
//!         }
//!     }
//! }
//!
//! #[kernel(block = THREADS, shared = TraversalSmem<f32>)]
//! pub unsafe fn own_irradiance(
//!     visits: Visits<'_, f32>,
//!     normals: Slice<[f32; 3]>,
//!     photons: Slice<[f32; 4]>,
//!     irradiances: SliceMut<f32>,
//! ) {
//!     // There is a photon for each point of the index.
//!     let photon = |id| photons.load(id as usize);
//!     visits.run::<3, _>(
//!         shared_mem(),
//!         |query, bound| Irradiance { bound, normal: normals.load(query), photon, power: 0.0 },
//!         // The area of the disk: the bound is the square of its radius.
//!         |query, sum| irradiances.store(query, sum.power / (core::f32::consts::PI * sum.bound)),
//!     );
//! }
//! # fn main() {}
//! ```

pub use super::traversal::THREADS;
use super::traversal::{TraversalSmem, Visitor};
use crate::thread::coord::{Coord, Float};
use crate::thread::ranked::Ranked;
use cuda_std::prelude::*;

/// Takes the points around a query.
pub trait Visit<C> {
    /// Returns the largest distance at which points are of use: the square of a length for the Euclidean norm. It never grows.
    fn bound(&self) -> C;
    /// Takes a point, whose distance is at most the bound. Nearer points tend to come first; the order is not defined.
    fn point(&mut self, distance: C, id: u32);
}

/// The index and the queries of a visit, the argument of a kernel of your own.
#[derive(Clone, Copy, KernelArgs)]
pub struct Visits<'a, C: Coord> {
    /// The index.
    pub index: crate::query::buckets::Index<'a, C>,
    /// Points of the index that had no room in the buckets; without points unless the index changes.
    pub overflow: crate::query::buckets::Index<'a, C>,
    /// The queries, in the order in which threads take them.
    pub queries: crate::query::queries::Queries<'a, C>,
}

impl<'a, C: Coord> Visits<'a, C> {
    /// Visits every point within the bound of the thread's query. `begin` makes the visitor from the number of the query and the bound of
    /// the options; `end` receives both after the last point. Points are of exactly `D` dimensions, or of fewer than `D` if that is 8.
    ///
    /// # Safety
    /// All threads of blocks of [`THREADS`] call it; `smem` is the shared memory of the block, which nothing else uses.
    #[inline(always)]
    pub unsafe fn run<const D: usize, V: Visit<C::Distance>>(
        &self,
        smem: *mut TraversalSmem<C::Distance>,
        begin: impl FnOnce(usize, C::Distance) -> V,
        end: impl FnOnce(usize, V),
    ) {
        let Some((traversal, query)) =
            self.queries.traversal::<D>(thread::index_1d_u64(), false, self.index, smem)
        else {
            return;
        };
        let bound = C::Distance::from_f64(self.queries.bound);
        let query = match query {
            Some(query) if !self.queries.is_removed(query) => Some(query),
            _ => None,
        };
        let mut lane = Lane { visitor: query.map(|query| begin(query, bound)) };
        traversal.run(&mut lane);
        if !self.overflow.ids.is_empty() {
            traversal.of(self.overflow).run(&mut lane);
        }
        if let (Some(query), Some(visitor)) = (query, lane.visitor) {
            end(query, visitor);
        }
    }
}

/// The visitor of a lane, if it has a query.
struct Lane<V> {
    visitor: Option<V>,
}

impl<C: Float, V: Visit<C>> Visitor<C> for Lane<V> {
    const ONE_QUERY_PER_WARP: bool = false;
    const NEAREST_FIRST: bool = true;

    #[inline(always)]
    fn bound(&self) -> C {
        self.visitor.as_ref().map_or(C::ZERO - C::INFINITY, V::bound)
    }

    #[inline(always)]
    unsafe fn offer(&mut self, is_accepted: bool, distance: C, id: u32) {
        if let Some(visitor) = &mut self.visitor
            && is_accepted
        {
            visitor.point(distance, id);
        }
    }
}

/// A visitor that keeps the `K` nearest points, by (distance, id).
pub struct NearestPoints<C: Float, const K: usize> {
    best: [C::Ranked; K],
    bound: C,
}

impl<C: Float, const K: usize> NearestPoints<C, K> {
    /// Keeps no points at first, and none beyond `bound`.
    #[inline(always)]
    pub fn new(bound: C) -> Self {
        Self { best: [Ranked::new(bound.key(), u32::MAX); K], bound }
    }

    /// Calls `take` with the distance and the id of each point, the nearest first.
    #[inline(always)]
    pub fn for_each(&self, mut take: impl FnMut(C, u32)) {
        for i in 0..K {
            if self.best[i].id() != u32::MAX {
                take(C::from_key(self.best[i].rank()), self.best[i].id());
            }
        }
    }
}

impl<C: Float, const K: usize> Visit<C> for NearestPoints<C, K> {
    #[inline(always)]
    fn bound(&self) -> C {
        self.bound
    }

    #[inline(always)]
    fn point(&mut self, distance: C, id: u32) {
        let mut point = C::Ranked::new(distance.key(), id);
        for i in 0..K {
            if point.is_before(self.best[i]) {
                core::mem::swap(&mut point, &mut self.best[i]);
            }
        }
        self.bound = C::from_key(self.best[K - 1].rank());
    }
}

//! The items nearest to points.

use super::distance::nearest_on_triangle;
use super::leaf::*;
use super::search::{Query, Searches};
use crate::plain::plain;
use crate::policy::{RAY_THREADS as THREADS, bvh_nearest_min_blocks};
use crate::query::nearest::ResultRows;
use crate::query::visit::{NearestPoints, Visit};
use crate::rays::aabb::Aabb;
use crate::rays::mesh::is_usable;
use crate::rays::stack::StackSmem;
use crate::thread::best_k::BestK;
use cuda_std::float::sqrt;
use cuda_std::prelude::*;

/// A query for the items near a point, which `visit` takes.
pub struct Near<V> {
    /// The point.
    pub point: [f32; 3],
    /// Takes the items, by the squares of their distances.
    pub visit: V,
}

impl<L: Leaf, V: Visit<f32>> Query<L> for Near<V> {
    #[inline(always)]
    fn near(&self, bounds: Aabb) -> f32 {
        bounds.near2(self.point)
    }

    #[inline(always)]
    fn limit(&self) -> f32 {
        self.visit.bound()
    }

    #[inline(always)]
    unsafe fn item(&mut self, item: L) {
        let dist2 = item.dist2(self.point);
        if dist2 <= self.visit.bound() {
            self.visit.point(dist2, item.id());
        }
    }
}

/// Points and the square of the distance up to which items count.
#[derive(Clone, Copy, KernelArgs)]
pub struct NearQueries<'a> {
    /// The points.
    pub points: Slice<'a, [f32; 3]>,
    /// The square of the largest distance.
    pub bound: f32,
}

impl NearQueries<'_> {
    /// Returns a point and its bound; minus infinity if the point has an unusable coordinate, so that nothing is near it.
    #[inline(always)]
    unsafe fn load(&self, i: usize) -> ([f32; 3], f32) {
        let point = self.points.load(i);
        let [x, y, z] = point.map(is_usable);
        (point, if x && y && z { self.bound } else { f32::NEG_INFINITY })
    }
}

/// Writes up to `K` nearest items of each point, by (distance, id).
#[kernel(family = "bvh", block = THREADS, min_blocks = bvh_nearest_min_blocks(size_of::<L>()), shared = StackSmem)]
#[instances(L = [LeafTriangle, LeafBox], K = [1, 8])]
pub unsafe fn bvh_nearest_few<L: Leaf, const K: usize>(
    searches: Searches<'_, L>,
    queries: NearQueries<'_>,
    result: ResultRows<'_, f32>,
) {
    let begin = |i| {
        let (point, bound) = queries.load(i);
        Near { point, visit: NearestPoints::<f32, K>::new(bound) }
    };
    searches.each(shared_mem(), queries.points.len(), begin, |i, near| {
        let row = result.row(i);
        let mut slot = 0;
        near.visit.for_each(|dist2, id| {
            if slot < row.k() {
                row.dist2.store(slot, dist2);
                row.ids.store(slot, id);
            }
            slot += 1;
        });
        while slot < row.k() {
            row.dist2.store(slot, f32::INFINITY);
            row.ids.store(slot, u32::MAX);
            slot += 1;
        }
    });
}

/// Keeps the best items in a row of the result.
struct Row<'a>(BestK<'a, f32>);

impl Visit<f32> for Row<'_> {
    #[inline(always)]
    fn bound(&self) -> f32 {
        self.0.bound()
    }

    #[inline(always)]
    fn point(&mut self, dist2: f32, id: u32) {
        // SAFETY: the row is that of the thread's query.
        unsafe { self.0.offer(dist2, id) }
    }
}

/// Writes the nearest items of each point, by (distance, id), any number.
#[kernel(family = "bvh", block = THREADS, min_blocks = bvh_nearest_min_blocks(size_of::<L>()), shared = StackSmem)]
#[instances(L = [LeafTriangle, LeafBox])]
pub unsafe fn bvh_nearest_many<L: Leaf>(
    searches: Searches<'_, L>,
    queries: NearQueries<'_>,
    result: ResultRows<'_, f32>,
) {
    let begin = |i| {
        let ((point, bound), row) = (queries.load(i), result.row(i));
        Near { point, visit: Row(BestK::new(row.dist2, row.ids, bound)) }
    };
    searches.each(shared_mem(), queries.points.len(), begin, |_, near| near.visit.0.finish());
}

/// The point of a mesh that is nearest to another point.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClosestPoint {
    /// The point on the mesh.
    pub point: [f32; 3],
    /// Its distance.
    pub distance: f32,
    /// The id of its triangle, the least of equally near ones; [`NO_TRIANGLE`](Self::NO_TRIANGLE) if none is near enough.
    pub triangle: u32,
}

plain! { ClosestPoint { [f32; 3], f32, u32 } }

impl ClosestPoint {
    /// The id where no triangle is near enough.
    pub const NO_TRIANGLE: u32 = u32::MAX;

    /// No triangle is near enough.
    pub const NONE: Self =
        Self { point: [f32::NAN; 3], distance: f32::INFINITY, triangle: Self::NO_TRIANGLE };

    /// True if a triangle is near enough.
    pub const fn is_found(&self) -> bool {
        self.triangle != Self::NO_TRIANGLE
    }
}

/// A query for the nearest triangle of a point, with its corners.
pub struct Closest {
    point: [f32; 3],
    best: NearestPoints<f32, 1>,
    corners: [[f32; 3]; 3],
}

impl Closest {
    /// Begins. `bound` is the square of the largest distance.
    #[inline(always)]
    pub fn new(point: [f32; 3], bound: f32) -> Self {
        Self { point, best: NearestPoints::new(bound), corners: [point; 3] }
    }

    /// Returns the point that is found.
    #[inline(always)]
    pub fn found(&self) -> ClosestPoint {
        let mut found = ClosestPoint::NONE;
        self.best.for_each(|dist2, triangle| {
            let point = nearest_on_triangle(self.point.map(f64::from), self.corners).map(|x| x as f32);
            found = ClosestPoint { point, distance: sqrt(dist2), triangle };
        });
        found
    }
}

impl Query<LeafTriangle> for Closest {
    #[inline(always)]
    fn near(&self, bounds: Aabb) -> f32 {
        bounds.near2(self.point)
    }

    #[inline(always)]
    fn limit(&self) -> f32 {
        self.best.bound()
    }

    #[inline(always)]
    unsafe fn item(&mut self, item: LeafTriangle) {
        let dist2 = item.dist2(self.point);
        if dist2 <= self.best.bound() {
            self.best.point(dist2, item.id());
            self.best.for_each(|_, id| {
                if id == item.id() {
                    self.corners = item.corners();
                }
            });
        }
    }
}

/// Writes the nearest point of a mesh for each point.
#[kernel(family = "bvh", block = THREADS, shared = StackSmem)]
pub unsafe fn bvh_closest_points(
    searches: Searches<'_, LeafTriangle>,
    queries: NearQueries<'_>,
    found: SliceMut<ClosestPoint>,
) {
    let begin = |i| {
        let (point, bound) = queries.load(i);
        Closest::new(point, bound)
    };
    searches.each(shared_mem(), found.len(), begin, |i, closest| found.store(i, closest.found()));
}

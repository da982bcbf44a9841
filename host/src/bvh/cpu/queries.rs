//! Queries on the CPU, in parallel.

use crate::bvh::host_tree::HostTree;
use crate::error::Result;
use crate::memory;
use crate::parallel;
use crate::query::cpu::best::{Best, BoundedHeap, Nearest};
use crate::rays::Aabb;
use crate::rays::cpu::VecStack;
use crate::rows::Rows;
use kauri_kernels::bvh::inside::is_inside;
use kauri_kernels::bvh::leaf::{Leaf, LeafTriangle};
use kauri_kernels::bvh::nearest::{Closest, ClosestPoint, Near};
use kauri_kernels::bvh::overlap::{Count, Overlap, Take};
use kauri_kernels::bvh::search::{Query, search};
use kauri_kernels::query::visit::Visit;
use kauri_kernels::thread::coord::Coord;
use std::collections::BinaryHeap;

/// Number of queries of a task.
const TASK_QUERIES: usize = 64;

/// Keeps the best items of a query.
struct ByBest<B>(B);

impl<B: Best<f32>> Visit<f32> for ByBest<B> {
    #[inline(always)]
    fn bound(&self) -> f32 {
        self.0.worst()
    }

    #[inline(always)]
    fn point(&mut self, dist2: f32, id: u32) {
        self.0.offer(dist2, id);
    }
}

/// Lists ids.
struct List(Vec<u32>);

impl Take for List {
    unsafe fn take(&mut self, id: u32) {
        self.0.push(id);
    }
}

impl<L: Leaf> HostTree<L> {
    /// Answers a query.
    #[inline(always)]
    fn answer<Q: Query<L>>(&self, mut query: Q) -> Q {
        // SAFETY: reads of the hierarchy are bounds-checked, and the stack grows.
        unsafe { search(&self, &mut VecStack::new(), &mut query) };
        query
    }

    /// Returns the ids of the `k` nearest items of each point up to the distance of which `bound` is the square, and the squares of their
    /// distances.
    pub(in super::super) fn nearest(
        &self,
        points: &[[f32; 3]],
        k: usize,
        bound: f32,
    ) -> Result<(Vec<u32>, Vec<f32>)> {
        const LABEL: &str = "neighbors";
        let entries = points.len().saturating_mul(k);
        let (mut ids, mut dist2) =
            (memory::filled(entries, u32::MAX, LABEL)?, memory::filled(entries, f32::INFINITY, LABEL)?);
        let best_one = |i: usize| {
            let Nearest { id, distance, .. } =
                self.answer(Near { point: points[i], visit: ByBest(Nearest::new(bound)) }).visit.0;
            (id, distance)
        };
        let best = |i: usize| {
            let best =
                BoundedHeap { heap: BinaryHeap::with_capacity(k.min(self.items.len())), len: k, bound };
            self.answer(Near { point: points[i], visit: ByBest(best) }).visit.0.heap.into_sorted_vec()
        };
        match k {
            0 => (),
            1 => {
                let found = parallel::collect(points.len(), TASK_QUERIES, LABEL, best_one)?;
                for (i, found) in found.into_iter().enumerate() {
                    (ids[i], dist2[i]) = found;
                }
            }
            _ => {
                let rows = parallel::collect(points.len(), TASK_QUERIES, LABEL, best)?;
                for (row, found) in rows.into_iter().enumerate() {
                    for (entry, (key, id)) in (row * k..).zip(found) {
                        (ids[entry], dist2[entry]) = (id, f32::from_key(key));
                    }
                }
            }
        }
        Ok((ids, dist2))
    }

    /// Counts the items of each box.
    pub(in super::super) fn count_intersecting(&self, boxes: &[Aabb]) -> Result<Vec<u64>> {
        let count = |i: usize| self.answer(Overlap { bounds: boxes[i], take: Count(0) }).take.0;
        parallel::collect(boxes.len(), TASK_QUERIES, "counts of items", count)
    }

    /// Returns the items of each box.
    pub(in super::super) fn intersecting(&self, boxes: &[Aabb]) -> Result<Rows> {
        const LABEL: &str = "items that boxes intersect";
        let list = |i: usize| self.answer(Overlap { bounds: boxes[i], take: List(Vec::new()) }).take.0;
        let rows = parallel::collect(boxes.len(), TASK_QUERIES, LABEL, list)?;
        let mut offsets = memory::vec_with_capacity(boxes.len() + 1, LABEL)?;
        let mut num = 0;
        offsets.push(0);
        for row in &rows {
            num += row.len() as u64;
            offsets.push(num);
        }
        let ids = parallel::joined(rows, LABEL);
        Ok(Rows::new(offsets, ids.map_err(|error| error.of_result(num, size_of::<u32>() as u64))?))
    }
}

impl HostTree<LeafTriangle> {
    /// Returns the nearest point of the mesh for each point, up to the distance of which `bound` is the square.
    pub(in super::super) fn closest_points(
        &self,
        points: &[[f32; 3]],
        bound: f32,
    ) -> Result<Vec<ClosestPoint>> {
        let closest = |i: usize| self.answer(Closest::new(points[i], bound)).found();
        parallel::collect(points.len(), TASK_QUERIES, "closest points", closest)
    }

    /// Returns whether each point is inside the mesh.
    pub(in super::super) fn inside(&self, points: &[[f32; 3]]) -> Result<Vec<bool>> {
        // SAFETY: as in `answer`.
        let inside = |i: usize| unsafe { is_inside(&self, &mut VecStack::new(), points[i]) };
        parallel::collect(points.len(), TASK_QUERIES, "points inside", inside)
    }
}

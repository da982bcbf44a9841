//! Visits of the points around queries.

use cuda_std::prelude::*;
use kauri_kernels::query::traversal::TraversalSmem;
use kauri_kernels::query::visit::{NearestPoints, THREADS, Visit, Visits};

/// Adds up the payloads of the points within the bound.
pub struct Sum<F> {
    /// The largest distance.
    pub bound: f32,
    /// Returns the payload of a point.
    pub payload: F,
    /// The sum.
    pub sum: u32,
}

impl<F: Fn(u32) -> u32> Visit<f32> for Sum<F> {
    fn bound(&self) -> f32 {
        self.bound
    }

    fn point(&mut self, _: f32, id: u32) {
        self.sum = self.sum.wrapping_add((self.payload)(id));
    }
}

/// Writes the sum of the payloads of the points within the radius of each query.
#[kernel(family = "test", block = THREADS, shared = TraversalSmem<f32>)]
pub unsafe fn test_visit_sums(visits: Visits<'_, f32>, payloads: Slice<u32>, sums: SliceMut<u32>) {
    // There is a payload for each point.
    let payload = |id| payloads.load(id as usize);
    visits.run::<3, _>(
        shared_mem(),
        |_, bound| Sum { bound, payload, sum: 0 },
        |query, visitor| sums.store(query, visitor.sum),
    );
}

/// Writes the ids of the five nearest points of each query.
#[kernel(family = "test", block = THREADS, shared = TraversalSmem<f32>)]
pub unsafe fn test_visit_nearest(visits: Visits<'_, f32>, ids: SliceMut<u32>) {
    visits.run::<3, _>(
        shared_mem(),
        |_, bound| NearestPoints::<f32, 5>::new(bound),
        |query, nearest| {
            let mut i = 5 * query;
            nearest.for_each(|_, id| {
                ids.store(i, id);
                i += 1;
            });
        },
    );
}

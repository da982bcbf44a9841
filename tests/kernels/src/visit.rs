//! Visits of the points around queries.

use cuda_std::prelude::*;
use kauri_kernels::query::traversal::TraversalSmem;
use kauri_kernels::query::visit::{NearestPoints, THREADS, Visit, Visits};

/// Adds up the payloads of the points within the bound.
struct Sum<'a> {
    bound: f32,
    payloads: Slice<'a, u32>,
    sum: u32,
}

impl Visit<f32> for Sum<'_> {
    fn bound(&self) -> f32 {
        self.bound
    }

    fn point(&mut self, _: f32, id: u32) {
        // SAFETY: there is a payload for each point.
        self.sum = self.sum.wrapping_add(unsafe { self.payloads.load(id as usize) });
    }
}

/// Writes the sum of the payloads of the points within the radius of each query.
#[kernel(family = "test", block = THREADS, shared = TraversalSmem<f32>)]
pub unsafe fn test_visit_sums(visits: Visits<'_, f32>, payloads: Slice<u32>, sums: SliceMut<u32>) {
    visits.run::<3, _>(
        shared_mem(),
        |_, bound| Sum { bound, payloads, sum: 0 },
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

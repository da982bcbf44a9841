//! Visits on the CPU: one traversal per query, many in parallel.

use kauri_kernels::query::visit::Visit;
use kauri_kernels::thread::coord::{Coord, Float};

use crate::error::Result;
use crate::parallel::Ranges;
use crate::query::backend::VisitQuery;
use crate::query::cpu::best::Best;
use crate::query::cpu::nearest::traverse;
use crate::query::cpu::order::{self, Order};
use crate::query::cpu::queries::PointQueries;
use crate::query::cpu::traversal::Traversable;

/// Calls `visit_query` once for each query, with the traversal that passes points to the visitor of that query.
pub(crate) fn visit<C: Coord, T: Traversable<C, D>, const D: usize>(
    tree: T,
    queries: &PointQueries<'_, C, D>,
    visit_query: &VisitQuery<'_, C::Distance>,
) -> Result<()> {
    let start_bucket = |query: usize| tree.start_bucket(&queries.points[query]);
    for rows in Ranges::new(queries.points.len(), order::MAX_ORDERED).iter() {
        Order::new(tree.num_points(), rows, &start_bucket)?.for_each(&|_, batch| {
            let mut stack = T::Stack::default();
            order::load(batch.iter().map(|row| &queries.points[row]));
            for row in batch.iter() {
                visit_query(row, &mut |visitor| {
                    let bound = visitor.bound();
                    traverse(tree, queries, queries.get(row), &mut stack, &mut Visited { visitor, bound });
                });
            }
        });
    }
    Ok(())
}

/// A visitor of the caller, as the traversal for nearest points sees it.
struct Visited<'a, C> {
    visitor: &'a mut dyn Visit<C>,
    /// The bound of the visitor after the last point.
    bound: C,
}

impl<C: Float> Best<C> for Visited<'_, C> {
    const IS_ONE: bool = false;

    #[inline(always)]
    fn worst(&self) -> C {
        self.bound
    }

    #[inline(always)]
    fn worst_id(&self) -> u32 {
        u32::MAX
    }

    #[inline(always)]
    fn offer(&mut self, distance: C, id: u32) {
        self.visitor.point(distance, id);
        self.bound = self.visitor.bound();
    }
}

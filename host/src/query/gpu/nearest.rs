//! Nearest queries: sorts the queries by start bucket and launches the kernel for `k`.

use crate::device::{Stream, Temp, Workspace};
use crate::error::Result;
use crate::point::with_kernel_dims;
use crate::primitives::planned::carve;
use crate::query::gpu::BucketIndex;
use crate::query::gpu::device_options::{DeviceOptions, QueryView};
use crate::query::gpu::order::{Arrangement, QueryOrderPlan};
use kauri_kernels::policy::QUERIES;
use kauri_kernels::query::buckets::Index;
use kauri_kernels::query::nearest::{
    Nearest, ResultRows, query_nearest_heap, query_nearest_list, query_nearest_one, query_nearest_queue,
};
use kauri_kernels::query::queries::Queries;
use kauri_kernels::thread::coord::Coord;
use kauri_kernels::thread::measure::MAX_DIMS;

impl<C: Coord> BucketIndex<C> {
    /// Writes the rows of the `rows.k` nearest points.
    ///
    /// # Safety
    /// There is a row for each query. Queries and rows do not overlap, and nothing else uses them until the stream has done the work.
    pub(super) unsafe fn launch_nearest(
        &self,
        stream: &Stream,
        workspace: &mut Workspace,
        options: &DeviceOptions<C::Distance>,
        queries: QueryView<'_, C>,
        rows: ResultRows<'_, C::Distance>,
    ) -> Result<()> {
        #[cfg(feature = "research")]
        if super::by_nodes::can_answer(self, options, queries) {
            // SAFETY: passed on to the caller.
            return unsafe { super::by_nodes::launch(stream, self, options, queries, rows) };
        }
        let k = rows.k as usize;
        // SAFETY: passed on to the caller.
        unsafe {
            let (order_plan, temp) = self.plan_order(stream, workspace, options, queries, k)?;
            let order = order_plan.run(&temp, self, queries)?;
            let queries = self.kernel_queries(options, queries, k, order);
            with_kernel_dims!(options.kernel_dims(self.dims), D in [2, 3, 4] or MAX_DIMS => {
                launch::<C, D>(stream, self.view(), queries, rows)?;
                match &self.overflow {
                    Some(overflow) => {
                        let queries = overflow.continued(options, queries, k);
                        launch::<C, D>(stream, overflow.view(), queries, rows)
                    }
                    None => Ok(()),
                }
            })
        }
    }

    /// Plans the order in which threads take queries for `k` points each, and reserves its memory.
    pub(super) fn plan_order<'a>(
        &self,
        stream: &Stream,
        workspace: &'a mut Workspace,
        options: &DeviceOptions<C::Distance>,
        queries: QueryView<'_, C>,
        k: usize,
    ) -> Result<(QueryOrderPlan, Temp<'a>)> {
        let are_few = queries.len(self.dims).saturating_mul(k) < QUERIES.nearest_ordered_from;
        let arrangement = if queries.are_in_order || options.is_brute_force(self.ids.len(), k) {
            Arrangement::Given
        } else if options.validated.coherent || are_few {
            Arrangement::Located
        } else {
            Arrangement::Sorted
        };
        let plan = |layout: &mut _| QueryOrderPlan::plan(layout, self, queries, arrangement);
        carve(stream, workspace, "k-d tree queries", plan)
    }
}

/// Launches the kernel for `rows.k` neighbors.
///
/// # Safety
/// As [`BucketIndex::launch_nearest`], and the tree has no more than `D` dimensions.
unsafe fn launch<C: Coord, const D: usize>(
    stream: &Stream,
    index: Index<'_, C>,
    queries: Queries<'_, C>,
    rows: ResultRows<'_, C::Distance>,
) -> Result<()> {
    // Lists in the registers of a lane need few dimensions, and long lists short distances; otherwise a warp shares a list.
    let has_short_lists = D < MAX_DIMS;
    let has_lists = has_short_lists && size_of::<C::Distance>() == 4;
    let num_queries = queries.len(index.dims as usize) as u64;
    let (lanes, warps) = (num_queries, 32 * num_queries);
    let args = (Nearest { index, queries, result: rows },);
    // SAFETY: passed on to the caller.
    unsafe {
        match rows.k {
            1 => stream.launch_items::<query_nearest_one<C, D>>(lanes, args),
            2..=8 if has_short_lists => stream.launch_items::<query_nearest_list<C, D, 8, 8>>(lanes, args),
            9..=16 if has_lists => stream.launch_items::<query_nearest_list<C, D, 16, 8>>(lanes, args),
            17..=32 if has_lists => stream.launch_items::<query_nearest_list<C, D, 32, 16>>(lanes, args),
            2..=32 => stream.launch_items::<query_nearest_queue<C, D, 1>>(warps, args),
            33..=128 => stream.launch_items::<query_nearest_queue<C, D, 4>>(warps, args),
            129..=256 => stream.launch_items::<query_nearest_queue<C, D, 8>>(warps, args),
            _ => stream.launch_items::<query_nearest_heap<C, D>>(lanes, args),
        }
    }
}

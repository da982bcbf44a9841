//! Visits: launches kernels of the caller that take the points around queries.

use crate::device::{Stream, Workspace};
use crate::error::Result;
use crate::query::backend::LaunchVisits;
use crate::query::gpu::BucketIndex;
use crate::query::gpu::device_options::{DeviceOptions, QueryView};
use kauri_kernels::query::visit::{THREADS, Visits};
use kauri_kernels::thread::coord::Coord;

impl<C: Coord> BucketIndex<C> {
    /// Launches a kernel of the caller that visits the points around each query.
    ///
    /// # Safety
    /// Nothing else uses the queries until the stream has done the work.
    pub(super) unsafe fn launch_visits(
        &self,
        stream: &Stream,
        workspace: &mut Workspace,
        options: &DeviceOptions<C::Distance>,
        queries: QueryView<'_, C>,
        launch: &mut LaunchVisits<'_, C>,
    ) -> Result<()> {
        let num_blocks = queries.len(self.dims).div_ceil(THREADS) as u64;
        // SAFETY: passed on to the caller.
        unsafe {
            let (order_plan, temp) = self.plan_order(stream, workspace, options, queries, 1)?;
            let order = order_plan.run(&temp, self, queries)?;
            let queries = self.kernel_queries(options, queries, 1, order);
            launch(num_blocks, Visits { index: self.view(), overflow: self.overflow_view(), queries })
        }
    }
}

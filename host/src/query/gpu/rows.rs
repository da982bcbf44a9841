//! Rows of a query for all points, if ids have gaps.

use crate::device::{Buffer, Stream, Workspace};
use crate::error::Result;
use crate::primitives::planned::carve;
use crate::query::gpu::BucketIndex;
use crate::query::gpu::sums::SumsPlan;
use cuda_std::mem::Slice;
use kauri_kernels::query::rows::query_rows;
use kauri_kernels::thread::coord::Coord;

impl<C: Coord> BucketIndex<C> {
    /// Returns the row of each slot's point in a query for all points. The first call computes them if ids have gaps, and waits for them.
    pub(crate) fn own_rows(&self, stream: &Stream) -> Result<Slice<'_, u32>> {
        if self.has_point.is_empty() {
            return Ok(self.ids.slice());
        }
        Ok(self.rows.get_or_try_init(|| self.compute_rows(stream))?.slice())
    }

    fn compute_rows(&self, stream: &Stream) -> Result<Buffer<u32>> {
        let mut rows = Buffer::uninitialized(&self.gpu, self.ids.len(), "rows of an index")?;
        let (num_bits, mut workspace) = (32 * self.has_point.len(), Workspace::new(&self.gpu));
        let plan = |layout: &mut _| SumsPlan::plan(layout, num_bits);
        let (sums, temp) = carve(stream, &mut workspace, "rows of an index", plan)?;
        // SAFETY: there is a row for each slot, and the stream is synchronized below.
        unsafe {
            let has_point = sums.run(&temp, self.has_point.slice())?;
            let (ids, to) = (self.ids.slice(), rows.slice_mut());
            stream.launch_items::<query_rows>(ids.len() as u64, (ids, has_point, to))?;
        }
        stream.synchronize()?;
        Ok(rows)
    }
}

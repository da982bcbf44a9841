//! The cheapest planes of large nodes.

use super::large_levels::Level;
use crate::error::Result;
use crate::primitives::scan::ScanKind;
use kauri_kernels::sah::cheapest_planes::{
    COORDINATE_BITS, SortedEvents, sah_cheapest, sah_event_counts, sah_events,
};
use kauri_kernels::sah::chunks::LevelReferences;
use kauri_kernels::thread::operator::Sum;
use kauri_kernels::warp::look_back::Decoupled;

impl Level<'_> {
    /// Finds the cheapest plane of each node on each axis, if nodes split there.
    ///
    /// # Safety
    /// As [`partition`](Self::partition).
    pub(super) unsafe fn find_planes(&self) -> Result<()> {
        let Some(planes) = &self.planes else { return Ok(()) };
        let (stream, num_chunks) = (self.input.stream, self.num_chunks());
        let (counts, best) = (self.view(planes.counts), self.view(planes.best));
        let bits = COORDINATE_BITS + (self.nodes.len() as u32 - 1).checked_ilog2().map_or(0, |log| log + 1);
        // SAFETY: passed on to the caller.
        unsafe {
            stream.fill_bytes(best, 0xFF)?;
            for axis in 0..3 {
                let write =
                    |events, _| stream.launch::<sah_events>(num_chunks, (self.references(), axis, events));
                let (events, _) = planes.sort.run(self.temp, bits, write)?;
                stream.launch_items::<sah_event_counts>(events.len() as u64, (events, counts))?;
                let before = counts.read_only();
                planes.scan.run::<u64, Sum, Decoupled>(self.temp, before, counts, ScanKind::Exclusive)?;
                let LevelReferences { nodes, chunk_nodes, .. } = self.references();
                let sorted = SortedEvents { nodes, chunk_nodes, events, before, axis };
                stream
                    .launch::<sah_cheapest>(2 * num_chunks, (sorted, self.input.options.step_cost, best))?;
            }
        }
        Ok(())
    }
}

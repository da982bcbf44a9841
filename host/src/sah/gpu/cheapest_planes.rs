//! The cheapest planes of large nodes.

use super::large_levels::Level;
use crate::device::{Layout, Region};
use crate::error::Result;
use crate::primitives::radix_sort::PairSort;
use crate::primitives::scan::{Scan, ScanKind};
use crate::sah::options::Quality;
use kauri_kernels::sah::cheapest_planes::{
    COORDINATE_BITS, SortedEvents, sah_cheapest, sah_event_counts, sah_events,
};
use kauri_kernels::sah::chunks::LevelReferences;
use kauri_kernels::sah::large_nodes::CHUNK_TRIANGLES;
use kauri_kernels::thread::carried::NoValue;
use kauri_kernels::thread::operator::Sum;
use kauri_kernels::warp::look_back::Decoupled;

/// The scratch memory of a level's events on one axis, and the planes.
pub(super) struct PlanesLayout {
    sort: PairSort<u64, NoValue>,
    counts: Region<u64>,
    scan: Scan,
    /// The cheapest planes: a row of nodes for each axis.
    pub(super) best: Region<u64>,
}

impl PlanesLayout {
    /// Plans the memory, if nodes split at the cheapest plane.
    pub(super) fn plan(
        layout: &mut Layout,
        [num_nodes, num_chunks]: [usize; 2],
        quality: Quality,
    ) -> Option<Self> {
        let num_events = 2 * num_chunks * CHUNK_TRIANGLES as usize;
        (quality == Quality::Exact).then(|| Self {
            sort: PairSort::plan(layout, num_events),
            counts: layout.reserve(num_events),
            scan: Scan::plan::<u64, Decoupled>(layout, num_events),
            best: layout.reserve(3 * num_nodes),
        })
    }
}

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

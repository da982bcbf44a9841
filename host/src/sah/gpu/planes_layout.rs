//! The scratch memory of the cheapest planes of a level.

use crate::device::{Layout, Region};
use crate::primitives::radix_sort::PairSort;
use crate::primitives::scan::Scan;
use crate::sah::options::Quality;
use kauri_kernels::sah::large_nodes::CHUNK_TRIANGLES;
use kauri_kernels::thread::carried::NoValue;
use kauri_kernels::warp::look_back::Decoupled;

/// The scratch memory of a level's events on one axis, and the planes.
pub(super) struct PlanesLayout {
    pub(super) sort: PairSort<u64, NoValue>,
    pub(super) counts: Region<u64>,
    pub(super) scan: Scan,
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

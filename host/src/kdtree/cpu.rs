//! Left-balanced trees on the CPU.

mod build;
pub(crate) mod varying;
mod verify;

use crate::error::Result;
use crate::kdtree::backend::Backend;
#[cfg(feature = "io")]
use crate::kdtree::backend::Sections;
use crate::kdtree::options::SplitRule;
use crate::memory;
use crate::point::with_dims;
use crate::query::backend::QueryBackend;
use crate::query::cpu::{CpuIndex, points};
use crate::stats::Stats;
use kauri_kernels::thread::coord::Coord;
#[cfg(feature = "io")]
use varying::varying_axes;
pub(crate) use verify::out_of_turn;

/// Builds the tree over validated coordinates (one point after another).
pub(crate) fn build<C: Coord>(
    coords: &[C],
    dims: usize,
    rule: SplitRule,
    stats: &mut Stats,
) -> Result<CpuIndex<C>> {
    with_dims!(dims, D => build::build(points::<C, D>(coords), rule, stats))
}

/// Finds the axes that levels split on, for the nodes of a file.
#[cfg(feature = "io")]
pub(crate) fn with_cycle<C: Coord>(mut index: CpuIndex<C>) -> CpuIndex<C> {
    if index.axes.is_empty() {
        index.cycle = with_dims!(index.dims, D => varying_axes(points::<C, D>(&index.coords)));
    }
    index
}

impl<C: Coord> Backend<C> for CpuIndex<C> {
    fn query_backend(&self) -> &dyn QueryBackend<C> {
        self
    }

    fn verify(&self) -> Result<()> {
        with_dims!(self.dims, D => verify::verify(self.nodes::<D>()))
    }

    fn node_ids(&self) -> Result<Vec<u32>> {
        memory::copy(&self.ids, "ids of the nodes")
    }

    #[cfg(feature = "io")]
    fn sections(&self, write: &mut dyn FnMut(Sections<'_, C>) -> Result<()>) -> Result<()> {
        write(Sections { coords: &self.coords, ids: &self.ids, axes: &self.axes })
    }

    fn num_points(&self) -> usize {
        self.ids.len()
    }
}

/// Returns the temporary bytes of a build.
pub(crate) fn temp_bytes<C: Coord>(num_points: u64, dims: usize, rule: SplitRule) -> u64 {
    // By `Widest`, the build also stores an axis per point until nodes are in level order.
    let axis_bytes = u64::from(rule == SplitRule::Widest);
    num_points * (with_dims!(dims, D => size_of::<build::Item<C, D>>()) as u64 + axis_bytes)
}

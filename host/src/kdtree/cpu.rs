//! Left-balanced trees on the CPU.

mod build;
pub(crate) mod cell;
mod verify;

use crate::error::Result;
use crate::kdtree::SplitRule;
use crate::kdtree::backend::Backend;
#[cfg(feature = "io")]
use crate::kdtree::stored::Loaded;
#[cfg(feature = "io")]
use crate::kdtree::stored::Sections;
use crate::memory;
use crate::point::with_dims;
use crate::query::backend::QueryBackend;
use crate::query::cpu::{CpuIndex, points};
use crate::stats::Stats;
use build::Built;
use kauri_kernels::thread::coord::Coord;

/// Builds the tree over validated coordinates, point after point.
pub(crate) fn build<C: Coord>(
    coords: &[C],
    dims: usize,
    rule: SplitRule,
    stats: &mut Stats,
) -> Result<CpuIndex<C>> {
    with_dims!(dims, D => {
        let Built { nodes, ids, axes } = build::build(points::<C, D>(coords), rule, stats)?;
        Ok(CpuIndex::new(dims, nodes.into_flattened().into(), ids.into(), axes.into(), None))
    })
}

/// The tree of a file.
#[cfg(feature = "io")]
pub(crate) fn loaded<C: Coord>(nodes: Loaded<C>, dims: usize) -> CpuIndex<C> {
    let Loaded { coords, ids, axes } = nodes;
    CpuIndex::new(dims, coords, ids, axes, None)
}

impl<C: Coord> Backend<C> for CpuIndex<C> {
    fn query_backend(&self) -> &dyn QueryBackend<C> {
        self
    }

    fn verify(&self) -> Result<()> {
        with_dims!(self.dims, D => verify::verify(self.nodes::<D>()))
    }

    fn node_ids(&self) -> Result<Vec<u32>> {
        let mut ids = memory::vec_with_capacity(self.ids.len(), "ids of the nodes")?;
        ids.extend_from_slice(&self.ids);
        Ok(ids)
    }

    #[cfg(feature = "io")]
    fn stored(&self) -> Result<Sections<'_, C>> {
        let (coords, ids, axes) = (&*self.coords, &*self.ids, &*self.axes);
        Ok(Sections { coords: coords.into(), ids: ids.into(), axes: axes.into() })
    }

    fn num_points(&self) -> usize {
        self.ids.len()
    }
}

/// Temporary bytes of a build.
pub(crate) fn temp_bytes<C: Coord>(num_points: u64, dims: usize, rule: SplitRule) -> u64 {
    // With the axis of each point, before they are put in level order.
    let axis_bytes = u64::from(rule == SplitRule::Widest);
    num_points * (with_dims!(dims, D => size_of::<build::Item<C, D>>()) as u64 + axis_bytes)
}

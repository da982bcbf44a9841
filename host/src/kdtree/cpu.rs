//! Left-balanced trees on the CPU.

mod build;
pub(crate) mod cell;
mod verify;

use crate::error::Result;
use crate::kdtree::backend::Backend;
use crate::kdtree::options::SplitRule;
#[cfg(feature = "io")]
use crate::kdtree::sections::{LoadedSections, Sections};
use crate::memory;
use crate::point::with_dims;
use crate::query::backend::QueryBackend;
use crate::query::cpu::{CpuIndex, points};
use crate::stats::Stats;
use build::Built;
use kauri_kernels::thread::coord::Coord;

/// Builds the tree over validated coordinates (one point after another).
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

/// Makes the tree of the arrays of a file.
#[cfg(feature = "io")]
pub(crate) fn from_sections<C: Coord>(sections: LoadedSections<C>, dims: usize) -> CpuIndex<C> {
    let LoadedSections { coords, ids, axes } = sections;
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
    fn sections(&self) -> Result<Sections<'_, C>> {
        let (coords, ids, axes) = (&*self.coords, &*self.ids, &*self.axes);
        Ok(Sections { coords: coords.into(), ids: ids.into(), axes: axes.into() })
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

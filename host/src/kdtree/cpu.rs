//! Left-balanced trees on the CPU.

mod build;
#[cfg(feature = "research")]
mod tags;
pub(crate) mod varying;
mod verify;

use crate::error::Result;
use crate::kdtree::backend::Backend;
#[cfg(feature = "io")]
use crate::kdtree::backend::{FileNodes, Sections};
#[cfg(feature = "research")]
use crate::kdtree::options::BuildAlgorithm;
use crate::kdtree::options::{KdTreeOptions, SplitRule};
use crate::point::with_dims;
use crate::query::backend::QueryBackend;
use crate::query::cpu::{CpuIndex, LevelOrder, points};
use crate::stats::Stats;
#[cfg(feature = "io")]
use kauri_kernels::query::axes::AxisCycle;
use kauri_kernels::thread::coord::Coord;
#[cfg(feature = "io")]
use varying::varying_axes;
pub(crate) use verify::out_of_turn;

/// Builds the tree over validated coordinates (one point after another).
pub(crate) fn build<C: Coord>(
    coords: &[C],
    dims: usize,
    options: &KdTreeOptions,
    stats: &mut Stats,
) -> Result<CpuIndex<C>> {
    #[cfg(feature = "research")]
    if options.algorithm == BuildAlgorithm::Tags {
        return with_dims!(dims, D => tags::build(points::<C, D>(coords), options.split, stats));
    }
    with_dims!(dims, D => build::build(points::<C, D>(coords), options.split, stats))
}

/// Makes the index of the nodes of a file.
#[cfg(feature = "io")]
pub(crate) fn of_nodes<C: Coord>(nodes: FileNodes<C>) -> Result<CpuIndex<C>> {
    with_dims!(nodes.dims, D => {
        let points = points::<C, D>(&nodes.coords);
        let cycle = if nodes.axes.is_empty() { varying_axes(points) } else { AxisCycle::all(D as u32) };
        CpuIndex::new(points.len(), nodes.axes, cycle, None, |node, _| (points[node], nodes.ids[node]))
    })
}

impl<C: Coord> Backend<C> for CpuIndex<C> {
    fn query_backend(&self) -> &dyn QueryBackend<C> {
        self
    }

    fn verify(&self) -> Result<()> {
        with_dims!(self.dims, D => {
            let LevelOrder { points, ids } = self.level_order::<D>()?;
            verify::verify(verify::Nodes { points: &points, ids: &ids, axes: &self.axes, cycle: self.cycle })
        })
    }

    fn node_ids(&self) -> Result<Vec<u32>> {
        self.ids_in_level_order()
    }

    #[cfg(feature = "io")]
    fn sections(&self, write: &mut dyn FnMut(Sections<'_, C>) -> Result<()>) -> Result<()> {
        with_dims!(self.dims, D => {
            let LevelOrder { points, ids } = self.level_order::<D>()?;
            write(Sections { coords: points.as_flattened(), ids: &ids, axes: &self.axes })
        })
    }

    fn num_points(&self) -> usize {
        self.num_points()
    }
}

/// Returns the bytes of a tree, without axes.
pub(crate) fn tree_bytes<C: Coord>(num_points: usize, dims: usize) -> u64 {
    with_dims!(dims, D => CpuIndex::<C>::bytes::<D>(num_points)) as u64
}

/// Returns the temporary bytes of a build.
pub(crate) fn temp_bytes<C: Coord>(num_points: u64, dims: usize, options: &KdTreeOptions) -> u64 {
    with_dims!(dims, D => {
        // By `Widest`, the build also stores an axis per point until nodes are in level order.
        let item_bytes = size_of::<build::Item<C, D>>() + usize::from(options.split == SplitRule::Widest);
        #[cfg(feature = "research")]
        let item_bytes = match options.algorithm {
            BuildAlgorithm::Tags => size_of::<tags::Tagged<C, D>>(),
            _ => item_bytes,
        };
        num_points * item_bytes as u64 + CpuIndex::<C>::temp_bytes::<D>(num_points as usize) as u64
    })
}

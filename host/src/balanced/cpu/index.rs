//! The index that answers the queries of a balanced tree on the CPU: its nodes in level order. Nodes of the last level may have no point.

use crate::error::Result;
use crate::kdtree::cpu::varying::varying_axes;
use crate::memory::{self, Items};
use crate::parallel::{self, TASK_ITEMS};
use crate::point::with_dims;
use crate::query::cpu::{CpuIndex, points};
use kauri_kernels::balanced::NONE;
use kauri_kernels::thread::coord::Float;
use std::sync::Arc;

/// Makes the index of one point with an id.
pub(crate) fn of_point<C: Float>(coords: &[C], id: u32) -> CpuIndex<C> {
    CpuIndex::new(coords.len(), coords.to_vec().into(), vec![id].into(), Vec::new().into(), None)
}

/// Makes the index of a balanced tree. `input` holds the coordinates of the input points by id. `medians` is in level order already.
pub(crate) fn of_balanced<C: Float>(
    input: &Arc<Items<C>>,
    dims: usize,
    medians: &[u32],
) -> Result<CpuIndex<C>> {
    with_dims!(dims, D => {
        let input_points = points::<C, D>(input);
        // A node without a point, on the last level, stores the coordinates of its parent; its id `NONE` keeps it out of results.
        let point = |node: usize| match medians[node] {
            NONE => medians[(node - 1) / 2],
            id => id,
        };
        let node = |node: usize| input_points[point(node) as usize];
        let nodes = parallel::collect(medians.len(), TASK_ITEMS, "nodes in order of levels", node)?;
        let ids = memory::copy(medians, "ids of the nodes")?;
        let varying = varying_axes(input_points);
        let coords = nodes.into_flattened().into();
        let mut index = CpuIndex::new(dims, coords, ids.into(), Vec::new().into(), Some(input.clone()));
        // Super keys order points on a line along one axis by that axis, whichever axis a level splits on.
        if varying.mask().is_power_of_two() {
            index.cycle = varying;
        }
        Ok(index)
    })
}

//! The index that answers the queries of a balanced tree on the CPU. Nodes of the last level may have no point.

use crate::error::Result;
use crate::kdtree::cpu::varying::varying_axes;
use crate::memory::Items;
use crate::point::with_dims;
use crate::query::cpu::{CpuIndex, points};
use kauri_kernels::balanced::NONE;
use kauri_kernels::query::axes::AxisCycle;
use kauri_kernels::thread::coord::Float;
use std::sync::Arc;

/// Makes the index of one point with an id.
pub(crate) fn of_point<C: Float>(coords: &[C], id: u32) -> Result<CpuIndex<C>> {
    with_dims!(coords.len(), D => {
        let cycle = AxisCycle::all(D as u32);
        CpuIndex::new(1, Vec::new().into(), cycle, None, |node, _| (points::<C, D>(coords)[node], id))
    })
}

/// Makes the index of a balanced tree. `input` holds the coordinates of the input points by id. `medians` is in level order.
pub(crate) fn of_balanced<C: Float>(
    input: &Arc<Items<C>>,
    dims: usize,
    medians: &[u32],
) -> Result<CpuIndex<C>> {
    with_dims!(dims, D => {
        let input_points = points::<C, D>(input);
        // A node without a point, on the last level, stores the coordinates of its parent; its id `NONE` keeps it out of results.
        let point_of = |node: usize| match medians[node] {
            NONE => medians[(node - 1) / 2],
            id => id,
        };
        let varying = varying_axes(input_points);
        // Super keys order points on a line along one axis by that axis, whichever axis a level splits on.
        let cycle = if varying.mask().is_power_of_two() { varying } else { AxisCycle::all(D as u32) };
        CpuIndex::new(medians.len(), Vec::new().into(), cycle, Some(input.clone()), |node, _| {
            (input_points[point_of(node) as usize], medians[node])
        })
    })
}

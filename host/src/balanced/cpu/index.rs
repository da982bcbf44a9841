//! The index that answers queries to a balanced tree on the CPU: its nodes in level order, of which some on the last level have no point.

use crate::error::Result;
use crate::memory;
use crate::memory::Items;
use crate::point::with_dims;
use crate::query::cpu::{CpuIndex, points};
use kauri_kernels::balanced::NONE;
use kauri_kernels::thread::coord::Coord;
use rayon::prelude::*;
use std::sync::Arc;

/// The index of one point with an id.
pub(crate) fn of_point<C: Coord>(coords: &[C], id: u32) -> CpuIndex<C> {
    CpuIndex::new(coords.len(), coords.to_vec().into(), vec![id].into(), Vec::new().into(), None)
}

/// The index of a balanced tree over points in the order of their ids. The medians are already in level order.
pub(crate) fn of_balanced<C: Coord>(
    given: &Arc<Items<C>>,
    dims: usize,
    medians: &[u32],
) -> Result<CpuIndex<C>> {
    with_dims!(dims, D => {
        let given_points = points::<C, D>(given);
        let mut nodes = memory::vec_with_capacity(medians.len(), "nodes in order of levels")?;
        // Only the last level has nodes without a point. Each holds its parent's point, which is no farther than others.
        let point = |node: usize| match medians[node] {
            NONE => medians[(node - 1) / 2],
            id => id,
        };
        (0..medians.len()).into_par_iter().map(|node| given_points[point(node) as usize]).collect_into_vec(&mut nodes);
        let mut ids = memory::vec_with_capacity(medians.len(), "ids of the nodes")?;
        ids.extend_from_slice(medians);
        let coords = nodes.into_flattened().into();
        Ok(CpuIndex::new(dims, coords, ids.into(), Vec::new().into(), Some(given.clone())))
    })
}

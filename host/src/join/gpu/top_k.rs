//! Chooses the kernels of a top-k distance join by its strategy.

use super::grid::grid_of_device_sets;
use super::heaps::{self, HeapMemory};
use super::nested::{self, BestPointsJoin};
use super::prepared::{DeviceScored, PreparedJoin};
use super::{filter, threshold};
use crate::device::Workspace;
use crate::error::Result;
use crate::join::scored::Score;
use crate::join::strategy::Strategy;
use kauri_kernels::thread::coord::Coord;
use kauri_kernels::thread::words::Bits128;

/// Returns the best pairs of two sets in order, the best first.
pub(in crate::join) fn top_k<C: Coord, S: Score>(
    mut prepared: PreparedJoin<'_, C>,
    workspace: &mut Workspace,
    sets: [DeviceScored<'_, C, S>; 2],
    strategy: Strategy,
) -> Result<Vec<Bits128>> {
    let sets = sets.map(|set| set.view());
    match strategy {
        Strategy::NestedLoop => return nested::best_pairs(&prepared, workspace, sets),
        Strategy::Threshold => match nested::join_best_points_on_device(&prepared, workspace, sets)? {
            BestPointsJoin::Complete(pairs) => return Ok(pairs),
            BestPointsJoin::Threshold(threshold) => prepared.threshold = threshold,
        },
        _ => {}
    }
    let coords = sets.map(|set| set.coords);
    let grid = grid_of_device_sets(prepared.stream, workspace, prepared.dims, coords, prepared.params)?;
    let (prepared, Some(grid)) = (&prepared, grid) else { return Ok(Vec::new()) };
    match strategy {
        Strategy::RegisterHeap => heaps::best_pairs(prepared, workspace, sets, grid, HeapMemory::Registers),
        Strategy::SharedHeap => heaps::best_pairs(prepared, workspace, sets, grid, HeapMemory::Shared),
        Strategy::Filter => filter::best_pairs(prepared, workspace, sets, grid),
        _ => threshold::best_pairs(prepared, workspace, sets, grid),
    }
}

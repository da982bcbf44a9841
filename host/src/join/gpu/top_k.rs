//! Chooses the kernels of a top-k distance join by its strategy.

use super::grid::grid_of_device_sets;
use super::nested::{self, BestPointsJoin};
use super::scored::DeviceScored;
#[cfg(feature = "research")]
use super::{append, heaps};
use super::{filter, threshold};
use crate::device::{Stream, Workspace};
use crate::error::Result;
use crate::join::params::TopKParams;
use crate::join::scored::Score;
use crate::join::strategy::Strategy;
use kauri_kernels::thread::coord::Coord;
use kauri_kernels::thread::words::Bits128;

/// Returns the best pairs of two sets in order, the best first.
pub(in crate::join) fn top_k<C: Coord, S: Score>(
    stream: &Stream,
    workspace: &mut Workspace,
    mut params: TopKParams<C>,
    sets: [DeviceScored<'_, C, S>; 2],
) -> Result<Vec<Bits128>> {
    let sets = sets.map(|set| set.view());
    match params.strategy {
        Strategy::NestedLoop => return nested::best_pairs(stream, workspace, &params, sets),
        Strategy::Threshold => match nested::join_best_points_on_device(stream, workspace, &params, sets)? {
            BestPointsJoin::Complete(pairs) => return Ok(pairs),
            BestPointsJoin::Threshold(threshold) => params.threshold = threshold,
        },
        _ => {}
    }
    let coords = sets.map(|set| set.coords);
    let Some(grid) = grid_of_device_sets(stream, workspace, coords, &params.join)? else {
        return Ok(Vec::new());
    };
    match params.strategy {
        #[cfg(feature = "research")]
        Strategy::RegisterHeap | Strategy::SharedHeap => {
            heaps::best_pairs(stream, workspace, &params, sets, &grid)
        }
        #[cfg(feature = "research")]
        Strategy::AppendSort => append::best_pairs(stream, workspace, &params, sets, &grid),
        Strategy::Filter => filter::best_pairs(stream, workspace, &params, sets, &grid),
        _ => threshold::best_pairs(stream, workspace, params, sets, &grid),
    }
}

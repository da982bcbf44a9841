//! Chooses the kernels of a top-k join by its strategy.

use super::grid::grid_of_device_sets;
use super::nested::{self, BestPointsJoin};
use super::plan::MemoryPlan;
use super::scored::{DeviceScored, ScoredJoin, ScoredView};
#[cfg(feature = "research")]
use super::{append, heaps};
use super::{filter, threshold};
use crate::device::{Stream, Workspace};
use crate::error::Result;
use crate::join::grid::reach;
use crate::join::params::{JoinParams, TopKParams};
use crate::join::scored::Score;
use crate::join::strategy::Strategy;
use cuda_std::mem::SliceMut;
use kauri_kernels::join::cells::Shape;
use kauri_kernels::join::nested::NestedSets;
use kauri_kernels::join::score::PairScores;
use kauri_kernels::thread::coord::Float;
use kauri_kernels::thread::words::Bits128;

/// Returns the best pairs of two sets in order, the best first.
pub(in crate::join) fn top_k<J: ScoredJoin, S: Score>(
    stream: &Stream,
    workspace: &mut Workspace,
    mut params: TopKParams<J>,
    sets: [DeviceScored<'_, J::Coord, S>; 2],
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
    J::best_by_cells(stream, workspace, &params, sets)
}

impl<C: Float> ScoredJoin for JoinParams<C> {
    type Coord = C;

    fn dims(&self) -> usize {
        self.dims
    }

    fn width(&self) -> usize {
        self.dims
    }

    fn reach(&self) -> f64 {
        reach(self)
    }

    fn bound(&self) -> f64 {
        self.bound.to_f64()
    }

    fn shape_without_grid(&self) -> u32 {
        let &Self { norm, curve, pairing, .. } = self;
        Shape { bits: 0, curve, norm, pairing }.to_word()
    }

    unsafe fn launch_nested(
        &self,
        stream: &Stream,
        num_blocks: u64,
        args: (NestedSets<'_, C>, PairScores<'_>, SliceMut<'_, Bits128>, SliceMut<'_, u64>),
    ) -> Result<()> {
        // SAFETY: passed on to the caller.
        unsafe { nested::launch(stream, num_blocks, args) }
    }

    fn best_by_cells(
        stream: &Stream,
        workspace: &mut Workspace,
        params: &TopKParams<Self>,
        sets: [ScoredView<'_, C>; 2],
    ) -> Result<Vec<Bits128>> {
        let coords = sets.map(|set| set.coords);
        let Some(grid) = grid_of_device_sets(stream, workspace, coords, &params.join)? else {
            return Ok(Vec::new());
        };
        match params.strategy {
            #[cfg(feature = "research")]
            Strategy::RegisterHeap | Strategy::SharedHeap => {
                heaps::best_pairs(stream, workspace, params, sets, &grid)
            }
            #[cfg(feature = "research")]
            Strategy::AppendSort => append::best_pairs(stream, workspace, params, sets, &grid),
            Strategy::Filter => filter::best_pairs(stream, workspace, params, sets, &grid),
            _ => threshold::best_pairs(stream, workspace, *params, sets, &grid),
        }
    }

    fn scratch_bytes(params: &TopKParams<Self>, lens: [usize; 2]) -> u64 {
        MemoryPlan::upper_bound(lens, &params.join).of_top_k(params)
    }
}

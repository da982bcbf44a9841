//! The best pairs of boxes: by a nested loop, or by the kernels of [`threshold`] and [`filter`].

use super::filter;
use super::grid::{grid_bytes, grid_of_device_sets};
use super::pairs::scratch_bytes;
use super::threshold;
use crate::device::{Stream, Workspace};
use crate::error::Result;
use crate::join::boxes::params::BoxParams;
use crate::join::gpu::plan::top_k_bytes;
use crate::join::gpu::scored::{ScoredJoin, ScoredView};
use crate::join::params::TopKParams;
use crate::join::strategy::Strategy;
use crate::point::with_kernel_dims;
use cuda_std::mem::SliceMut;
use kauri_kernels::join::boxes::best::join_boxes_best_nested;
use kauri_kernels::join::curve::MAX_DIMS;
use kauri_kernels::join::nested::NestedSets;
use kauri_kernels::join::score::PairScores;
use kauri_kernels::thread::coord::Float;
use kauri_kernels::thread::words::Bits128;

impl<C: Float> ScoredJoin for BoxParams<C> {
    type Coord = C;

    fn dims(&self) -> usize {
        self.test.dims
    }

    fn width(&self) -> usize {
        BoxParams::width(self)
    }

    fn reach(&self) -> f64 {
        BoxParams::reach(self)
    }

    fn bound(&self) -> f64 {
        self.test.bound.to_f64()
    }

    fn shape_without_grid(&self) -> u32 {
        self.shape(0)
    }

    unsafe fn launch_nested(
        &self,
        stream: &Stream,
        num_blocks: u64,
        args: (NestedSets<'_, C>, PairScores<'_>, SliceMut<'_, Bits128>, SliceMut<'_, u64>),
    ) -> Result<()> {
        // SAFETY: passed on to the caller.
        unsafe {
            with_kernel_dims!(self.test.dims, D in [2, 3] or MAX_DIMS => {
                stream.launch::<join_boxes_best_nested<C, D>>(num_blocks, args)
            })
        }
    }

    fn best_by_cells(
        stream: &Stream,
        workspace: &mut Workspace,
        params: &TopKParams<Self>,
        sets: [ScoredView<'_, C>; 2],
    ) -> Result<Vec<Bits128>> {
        if params.strategy == Strategy::Filter {
            return filter::best_pairs(stream, workspace, params, sets);
        }
        let [left, right] = sets.map(|set| set.coords);
        match grid_of_device_sets(stream, workspace, [right, left], &params.join)? {
            Some(grid) => threshold::best_pairs(stream, workspace, params, sets, &grid),
            None => Ok(Vec::new()),
        }
    }

    fn scratch_bytes(params: &TopKParams<Self>, lens: [usize; 2]) -> u64 {
        top_k_bytes(params, lens, |k| match params.strategy {
            Strategy::Filter => scratch_bytes([lens[1], lens[0]], &params.join),
            _ => threshold::scratch_bytes(lens, &params.join, k).max(grid_bytes::<C>(params.join.test.dims)),
        })
    }
}

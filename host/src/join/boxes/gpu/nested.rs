//! All pairs of boxes by a nested loop.

use crate::device::Stream;
use crate::error::Result;
use crate::join::boxes::params::BoxParams;
use crate::point::with_kernel_dims;
use cuda_std::mem::Slice;
use kauri_kernels::join::boxes::nested::{BoxSets, join_boxes_nested};
use kauri_kernels::join::boxes::output::PairOutput;
use kauri_kernels::join::curve::MAX_DIMS;
use kauri_kernels::policy::JOIN_THREADS;
use kauri_kernels::thread::coord::Float;

/// Returns two sets, given as [right, left], as argument of kernels without a grid.
pub(super) fn box_sets<'a, C: Float>(
    [right, left]: [Slice<'a, C>; 2],
    params: &BoxParams<C>,
) -> BoxSets<'a, C> {
    let (dims, shape, bound) = (params.test.dims as u32, params.shape(0), params.test.bound.to_f64());
    BoxSets { left, right, dims, shape, bound }
}

/// Counts or writes the pairs of two sets, given as [right, left].
///
/// # Safety
/// The counts of the output are 0. Nothing else uses the sets and the output until the stream has done the work.
pub(super) unsafe fn launch<C: Float>(
    stream: &Stream,
    sets: [Slice<'_, C>; 2],
    params: &BoxParams<C>,
    output: PairOutput<'_>,
) -> Result<()> {
    let [num_right, num_left] = sets.map(|set| set.len() / params.width());
    let num_blocks = num_left.div_ceil(JOIN_THREADS) as u64 * num_right.div_ceil(JOIN_THREADS) as u64;
    let sets = box_sets(sets, params);
    // SAFETY: passed on to the caller.
    unsafe {
        with_kernel_dims!(params.test.dims, D in [2, 3] or MAX_DIMS => {
            stream.launch::<join_boxes_nested<C, D>>(num_blocks, (sets, output))
        })
    }
}

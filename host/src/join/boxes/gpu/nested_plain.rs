//! All pairs of boxes by a nested loop without shared memory.

use super::nested::box_sets;
use crate::device::Stream;
use crate::error::Result;
use crate::join::boxes::params::BoxParams;
use crate::point::with_kernel_dims;
use cuda_std::mem::Slice;
use kauri_kernels::join::boxes::nested_plain::join_boxes_nested_plain;
use kauri_kernels::join::boxes::output::PairOutput;
use kauri_kernels::join::curve::MAX_DIMS;
use kauri_kernels::thread::coord::Float;

/// Counts or writes the pairs of two sets, given as [right, left].
///
/// # Safety
/// The requirements of [`nested::launch`](super::nested::launch).
pub(super) unsafe fn launch<C: Float>(
    stream: &Stream,
    sets: [Slice<'_, C>; 2],
    params: &BoxParams<C>,
    output: PairOutput<'_>,
) -> Result<()> {
    let (sets, num_left) = (box_sets(sets, params), sets[1].len() / params.width());
    // SAFETY: passed on to the caller.
    unsafe {
        with_kernel_dims!(params.test.dims, D in [2, 3] or MAX_DIMS => {
            stream.launch_items::<join_boxes_nested_plain<C, D>>(num_left as u64, (sets, output))
        })
    }
}

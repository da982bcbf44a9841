//! The k nearest build points of each probe point within a distance.

use super::cells::{Sets, Side, SidesPlan};
use super::grid::grid_of_device_sets;
use crate::device::{Buffer, Stream, Workspace};
use crate::error::Result;
use crate::join::params::JoinParams;
use crate::memory;
use crate::point::with_kernel_dims;
use crate::primitives::planned::carve;
use cuda_std::mem::Slice;
use kauri_kernels::join::curve::MAX_DIMS;
use kauri_kernels::join::nearest::join_nearest;
use kauri_kernels::thread::coord::Float;

/// Ids and distances, a row of `k` for each probe point.
type Rows<C> = (Buffer<u32>, Buffer<C>);

/// Finds the nearest points by a grid, or returns `None` if the neighbor cells of a point have more than `max_density` points on average.
pub(in crate::join) fn nearest<C: Float>(
    stream: &Stream,
    workspace: &mut Workspace,
    sets: [Slice<'_, C>; 2],
    params: &JoinParams<C>,
    k: usize,
    max_density: f64,
) -> Result<Option<Rows<C>>> {
    let lens = sets.map(|set| set.len() / params.dims);
    let grid = grid_of_device_sets(stream, workspace, sets, params)?;
    if grid.as_ref().is_some_and(|grid| grid.density(lens[0]) > max_density) {
        return Ok(None);
    }
    let len = lens[1].saturating_mul(k);
    let mut ids = Buffer::uninitialized(stream.gpu(), len, "ids of neighbors")?;
    let mut dist2 = Buffer::uninitialized(stream.gpu(), len, "distances of neighbors")?;
    let Some(grid) = grid else {
        // No pair is possible.
        ids.fill_bytes(stream, 0xFF)?;
        let none = memory::filled(len, C::INFINITY, "distances of neighbors")?;
        dist2.copy_from_slice(stream, &none)?;
        return Ok(Some((ids, dist2)));
    };
    let plan = |layout: &mut _| SidesPlan::plan(layout, &grid, lens, Sets::Two, Side::Probe);
    let (plan, temp) = carve(stream, workspace, "nearest points", plan)?;
    // SAFETY: the sets are borrowed, nothing else uses the memory of the plan, and buffers wait for the device before they are freed.
    unsafe {
        let sides = plan.run(&temp, &grid, params, sets, None)?;
        let args = (sides.args(), k as u32, ids.slice_mut(), dist2.slice_mut());
        with_kernel_dims!(params.dims, D in [2, 3] or MAX_DIMS => {
            stream.launch_items::<join_nearest<C, D>>(lens[1] as u64, args)
        })?;
    }
    Ok(Some((ids, dist2)))
}

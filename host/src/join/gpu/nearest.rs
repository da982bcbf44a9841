//! The nearest left points of each right point within a distance.

use super::cells::TwoSets;
use super::{grid_on, with_kernel_dims};
use crate::device::{Buffer, Layout, Stream, Workspace};
use crate::error::Result;
use crate::join::Near;
use crate::memory;
use cuda_std::mem::Slice;
use kauri_kernels::join::nearest::join_nearest;
use kauri_kernels::policy::JOIN;
use kauri_kernels::thread::coord::Coord;

/// Ids and distances, a row of `k` a right point.
type Rows<C> = (Buffer<u32>, Buffer<C>);

/// The nearest by cells; nothing if so many points are in the cells around one that a tree takes less, unless it `is_forced`.
pub(in crate::join) fn nearest<C: Coord>(
    stream: &Stream,
    workspace: &mut Workspace,
    dims: usize,
    sets: [Slice<'_, C>; 2],
    near: &Near<C>,
    k: usize,
    is_forced: bool,
) -> Result<Option<Rows<C>>> {
    let lens = sets.map(|set| set.len() / dims);
    let grid = grid_on(stream, workspace, dims, sets, near)?;
    let around = grid.as_ref().map_or(0.0, |grid| grid.part_around() * lens[0] as f64);
    if !is_forced && around > JOIN.nearest_by_cells_to(k) {
        return Ok(None);
    }
    let len = lens[1].saturating_mul(k);
    let mut ids = Buffer::uninitialized(stream.gpu(), len, "ids of neighbors")?;
    let mut dist2 = Buffer::uninitialized(stream.gpu(), len, "distances of neighbors")?;
    let Some(grid) = grid else {
        // No two points are near each other.
        ids.fill_bytes(stream, 0xFF)?;
        let mut none = memory::vec_with_capacity(len, "distances of neighbors")?;
        none.resize(len, C::INFINITY);
        dist2.copy_from_slice(stream, &none)?;
        return Ok(Some((ids, dist2)));
    };
    let mut layout = Layout::new();
    let plan = TwoSets::plan(&mut layout, dims, &grid, lens, false, false, false);
    let temp = workspace.carve(stream, &layout, "nearest points")?;
    // SAFETY: the sets are borrowed, the memory is the plan's own, and buffers wait for the device before they are freed.
    unsafe {
        let joined = plan.run(stream, &temp, dims, &grid, near, sets, None)?;
        let args = (joined.sets(), k as u32, ids.slice_mut(), dist2.slice_mut());
        with_kernel_dims!(dims, D => stream.launch_items::<join_nearest<C, D>>(lens[1] as u64, args))?;
    }
    Ok(Some((ids, dist2)))
}

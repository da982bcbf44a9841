//! Sorted order of rays.

use super::tree::GpuTree;
use crate::device::{Stream, Workspace};
use crate::error::{Result, check_count};
use crate::primitives::planned::carve;
use crate::primitives::radix_sort::PairSort;
use cuda_std::mem::Slice;
use kauri_kernels::sah::ray::Ray;
use kauri_kernels::sah::ray_order::{KEY_BITS, sah_ray_keys};

/// Maximum number of rays that are sorted: their ids have 32 bits.
const MAX_SORTED_RAYS: u64 = 1 << 32;

/// Returns the ids of rays in the order of their sort keys. The result is in the workspace.
pub(super) fn sorted_order<'a>(
    tree: &GpuTree,
    stream: &Stream,
    workspace: &'a mut Workspace,
    rays: Slice<'_, Ray>,
) -> Result<Slice<'a, u32>> {
    let num_rays = rays.len();
    check_count("rays in another order", num_rays as u64, MAX_SORTED_RAYS)?;
    let plan = |layout: &mut _| PairSort::plan(layout, num_rays);
    let (sort, temp) = carve(stream, workspace, "order of rays", plan)?;
    // SAFETY: keys and ids are as long as planned, and the workspace waits for the device before it frees them.
    unsafe {
        let (_, order) = sort.run(&temp, KEY_BITS, |keys, ids| {
            stream.launch_items::<sah_ray_keys>(num_rays as u64, (rays, tree.extent.view(), keys, ids))
        })?;
        Ok(order)
    }
}

//! Sorted order of rays.

use super::tree::GpuTree;
use crate::device::{Layout, Stream, Workspace};
use crate::error::{Result, check_count};
use crate::primitives::pairs::{Pairs, Source};
use crate::primitives::radix_sort::{RadixSort, Shape, SortBy};
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
    let mut layout = Layout::new();
    let [sort] = RadixSort::plan(&mut layout, num_rays, [Shape::of::<u32, u32>(num_rays)]);
    let pairs = [(); 2].map(|()| (layout.reserve::<u32>(num_rays), layout.reserve::<u32>(num_rays)));
    let temp = workspace.carve(stream, &layout, "order of rays")?;
    let [unsorted, sorted] =
        pairs.map(|(keys, values)| Pairs { keys: temp.view(keys), values: temp.view(values) });
    // SAFETY: the buffers have one length, and the workspace waits for the device before it frees them.
    unsafe {
        let args = (rays, tree.extent.view(), unsorted.keys, unsorted.values);
        stream.launch_items::<sah_ray_keys>(num_rays as u64, args)?;
        let from = Source { keys: unsorted.keys.read_only(), values: unsorted.values.read_only() };
        let [to, _] = sort.run(&temp, SortBy::low_bits(KEY_BITS), from, [sorted, unsorted])?;
        Ok(to.values.read_only())
    }
}

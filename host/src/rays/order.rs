//! Sorted order of rays.

use crate::device::{Layout, Temp};
use crate::error::{Result, check_count};
use crate::primitives::radix_sort::PairSort;
use cuda_std::mem::Slice;
use kauri_kernels::rays::extent::Extent;
use kauri_kernels::rays::order::{KEY_BITS, rays_keys};
use kauri_kernels::rays::ray::Ray;

/// Maximum number of rays that are sorted: their ids have 32 bits.
const MAX_SORTED_RAYS: u64 = 1 << 32;

/// The temporary memory of rays in another order.
pub(super) struct Order {
    sort: PairSort<u32, u32>,
}

impl Order {
    /// Plans the order of `num_rays` rays.
    pub(super) fn plan(layout: &mut Layout, num_rays: usize) -> Result<Self> {
        check_count("rays in another order", num_rays as u64, MAX_SORTED_RAYS)?;
        Ok(Self { sort: PairSort::plan(layout, num_rays) })
    }

    /// Returns the ids of rays, in a scene of this extent, in the order of their sort keys.
    ///
    /// # Safety
    /// There are as many rays as planned. Nothing else uses the temporary memory until the stream has done the work.
    pub(super) unsafe fn run<'a>(
        &self,
        temp: &Temp<'a>,
        rays: Slice<'_, Ray>,
        extent: Slice<'_, Extent>,
    ) -> Result<Slice<'a, u32>> {
        // SAFETY: keys and ids are as long as planned.
        let keys = |keys, ids| unsafe {
            temp.stream.launch_items::<rays_keys>(rays.len() as u64, (rays, extent, keys, ids))
        };
        // SAFETY: passed on to the caller.
        let (_, order) = unsafe { self.sort.run(temp, KEY_BITS, keys)? };
        Ok(order)
    }
}

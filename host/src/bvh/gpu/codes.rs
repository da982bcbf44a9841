//! The order of triangles along a space-filling curve.

use crate::device::{Layout, Temp};
use crate::error::Result;
use crate::primitives::radix_sort::PairSort;
use cuda_std::mem::Slice;
use kauri_kernels::bvh::codes::{CODE_BITS, bvh_codes};
use kauri_kernels::rays::aabb::Aabb;

/// The temporary memory of codes and their sort.
pub(super) struct CodesPlan(PairSort<u64, u32>);

impl CodesPlan {
    pub(super) fn new(layout: &mut Layout, num_triangles: usize) -> Self {
        Self(PairSort::plan(layout, num_triangles))
    }

    /// Returns the sorted codes of boxes and their numbers, given the keys of their extent.
    ///
    /// # Safety
    /// There are as many boxes as planned. Nothing else uses the temporary memory until the stream has done the work.
    pub(super) unsafe fn sorted<'a>(
        &self,
        temp: &Temp<'a>,
        boxes: Slice<'_, Aabb>,
        found: Slice<'_, u32>,
    ) -> Result<(Slice<'a, u64>, Slice<'a, u32>)> {
        // SAFETY: passed on to the caller.
        unsafe {
            self.0.run(temp, CODE_BITS, |codes, numbers| {
                temp.stream.launch_items::<bvh_codes>(boxes.len() as u64, (boxes, found, codes, numbers))
            })
        }
    }
}

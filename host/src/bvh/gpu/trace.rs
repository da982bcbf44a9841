//! Ray queries on a GPU.

use super::tree::GpuTree;
use crate::device::{Gpu, Readers, Stream};
use crate::error::{Result, check_count};
use crate::rays::RayOptions;
use crate::rays::gpu::{GpuScene, OrderedRays, RayTask};
use cuda_std::mem::{Slice, SliceMut};
use kauri_kernels::bvh::leaf::LeafTriangle;
use kauri_kernels::bvh::trace::{BvhRays, bvh_any, bvh_closest, bvh_count_hits, bvh_write_hits};
use kauri_kernels::rays::extent::Extent;

/// The most rays of a launch: warps take numbers beyond the last one, which have 32 bits too.
const MAX_RAYS: u64 = 1 << 31;

impl GpuScene for GpuTree<LeafTriangle> {
    fn gpu(&self) -> &Gpu {
        &self.gpu
    }

    fn extent(&self) -> Slice<'_, Extent> {
        self.extent.view()
    }

    fn readers(&self) -> &Readers {
        &self.readers
    }

    fn scratch_words(&self, num_rays: usize) -> usize {
        1 + self.num_deep(num_rays)
    }

    unsafe fn launch(
        &self,
        stream: &Stream,
        rays: OrderedRays<'_>,
        _: &RayOptions,
        task: RayTask<'_>,
    ) -> Result<()> {
        let OrderedRays { rays, order, scratch } = rays;
        if rays.is_empty() {
            return Ok(());
        }
        check_count("rays", rays.len() as u64, MAX_RAYS)?;
        let num_blocks = self.num_blocks(rays.len()) as u64;
        // SAFETY: the first word holds the counter, and the stacks have the others.
        let (taken, deep) = unsafe {
            let counter = SliceMut::<u32>::from_raw_parts(scratch.as_ptr().cast(), 1);
            (counter, scratch.part(1, scratch.len() - 1))
        };
        // SAFETY: passed on to the caller.
        unsafe {
            stream.fill_bytes(taken, 0)?;
            let rays = BvhRays { bvh: self.view(), rays, order, taken, deep };
            match task {
                RayTask::Closest(hits) => stream.launch::<bvh_closest>(num_blocks, (rays, hits)),
                RayTask::Any(hits) => stream.launch::<bvh_any>(num_blocks, (rays, hits)),
                RayTask::Count(counts) => stream.launch::<bvh_count_hits>(num_blocks, (rays, counts)),
                RayTask::Write(offsets, hits) => {
                    stream.launch::<bvh_write_hits>(num_blocks, (rays, offsets, hits))
                }
            }
        }
    }
}

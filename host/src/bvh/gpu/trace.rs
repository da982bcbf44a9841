//! Ray queries on a GPU.

use super::tree::GpuTree;
use crate::device::{Gpu, Readers, Stream};
use crate::error::Result;
use crate::rays::RayOptions;
use crate::rays::gpu::{GpuScene, RayTask};
use cuda_std::mem::{Slice, SliceMut};
use kauri_kernels::bvh::leaf::LeafTriangle;
use kauri_kernels::bvh::trace::{BvhRays, bvh_any, bvh_closest, bvh_count_hits, bvh_write_hits};
use kauri_kernels::rays::extent::Extent;
use kauri_kernels::rays::tracing::RayQueue;

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
        self.num_deep(num_rays)
    }

    unsafe fn launch(
        &self,
        stream: &Stream,
        queue: RayQueue<'_>,
        deep: SliceMut<'_, u64>,
        _: &RayOptions,
        task: RayTask<'_>,
    ) -> Result<()> {
        let num_blocks = self.num_blocks(queue.rays.len()) as u64;
        let rays = BvhRays { bvh: self.view(), queue, deep };
        // SAFETY: passed on to the caller.
        unsafe {
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

//! Ray queries on a GPU.

use super::tree::GpuTree;
use crate::device::{Gpu, Readers, Stream};
use crate::error::Result;
use crate::rays::RayOptions;
use crate::rays::gpu::{GpuScene, RayTask};
use crate::rays::options::RayTraversal;
use cuda_std::kernel::Kernel;
use cuda_std::mem::{Slice, SliceMut};
use kauri_kernels::policy::{RAY_STACK, RAY_THREADS, SAH_RAY_MIN_BLOCKS};
use kauri_kernels::rays::extent::Extent;
use kauri_kernels::rays::tracing::RayQueue;
use kauri_kernels::sah::trace::{
    TreeRays, sah_any, sah_any_restart, sah_closest, sah_closest_restart, sah_count_hits,
    sah_count_hits_restart, sah_write_hits, sah_write_hits_restart,
};
use kauri_kernels::sah::traversal::STACK_LEN;

/// Launches a kernel: `Stack` or `Restart`, as the options say.
///
/// # Safety
/// The kernels' conditions.
unsafe fn launch_rays<'a, Stack, Restart>(
    stream: &Stream,
    options: &RayOptions,
    num_blocks: u64,
    args: Stack::Args<'a>,
) -> Result<()>
where
    Stack: Kernel,
    Restart: Kernel<Args<'a> = Stack::Args<'a>>,
{
    // SAFETY: passed on to the caller.
    unsafe {
        match options.traversal {
            RayTraversal::Stack => stream.launch::<Stack>(num_blocks, args),
            #[cfg(feature = "research")]
            RayTraversal::Restart => stream.launch::<Restart>(num_blocks, args),
        }
    }
}

impl GpuTree {
    /// Returns the number of blocks of a launch. All are on the GPU at the same time, and take rays until none are left.
    fn num_blocks(&self, num_rays: usize) -> usize {
        let resident = self.gpu.info().num_sms as usize * SAH_RAY_MIN_BLOCKS as usize;
        num_rays.div_ceil(RAY_THREADS).min(resident)
    }
}

impl GpuScene for GpuTree {
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
        (STACK_LEN - RAY_STACK) * self.num_blocks(num_rays) * RAY_THREADS
    }

    unsafe fn launch(
        &self,
        stream: &Stream,
        queue: RayQueue<'_>,
        deep: SliceMut<'_, u64>,
        options: &RayOptions,
        task: RayTask<'_>,
    ) -> Result<()> {
        let num = self.num_blocks(queue.rays.len()) as u64;
        let rays = TreeRays { tree: self.view(), queue, deep };
        // SAFETY: passed on to the caller.
        unsafe {
            match task {
                RayTask::Closest(hits) => {
                    launch_rays::<sah_closest, sah_closest_restart>(stream, options, num, (rays, hits))
                }
                RayTask::Any(hits) => {
                    launch_rays::<sah_any, sah_any_restart>(stream, options, num, (rays, hits))
                }
                RayTask::Count(counts) => launch_rays::<sah_count_hits, sah_count_hits_restart>(
                    stream,
                    options,
                    num,
                    (rays, counts),
                ),
                RayTask::Write(offsets, hits) => {
                    let args = (rays, offsets, hits);
                    launch_rays::<sah_write_hits, sah_write_hits_restart>(stream, options, num, args)
                }
            }
        }
    }
}

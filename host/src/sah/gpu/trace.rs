//! Ray queries on a GPU.

use super::ray_order::sorted_order;
use super::tree::GpuTree;
use crate::device::{Buffer, Stream, Workspace};
use crate::error::Result;
use crate::primitives::pairs::empty_view;
use crate::sah::hits::{DeviceHits, Hits};
use crate::sah::options::RayOptions;
use cuda_std::kernel::Kernel;
use cuda_std::mem::Slice;
use kauri_kernels::sah::ray::Ray;
use kauri_kernels::sah::trace::{sah_any, sah_closest};

/// Returns the order in which rays are traced; empty for the input order.
pub(super) fn trace_order<'a>(
    tree: &GpuTree,
    stream: &Stream,
    workspace: &'a mut Workspace,
    rays: &Buffer<Ray>,
    options: &RayOptions,
) -> Result<Slice<'a, u32>> {
    if options.sorted && !rays.is_empty() {
        sorted_order(tree, stream, workspace, rays.slice())
    } else {
        Ok(empty_view().read_only())
    }
}

/// Launches a kernel with a thread per ray. The options choose the variant: without a stack, or with a short stack.
///
/// # Safety
/// The kernels' conditions.
pub(super) unsafe fn launch_rays<'a, WithoutStack, ShortStack>(
    stream: &Stream,
    options: &RayOptions,
    num_rays: usize,
    args: WithoutStack::Args<'a>,
) -> Result<()>
where
    WithoutStack: Kernel,
    ShortStack: Kernel<Args<'a> = WithoutStack::Args<'a>>,
{
    // SAFETY: passed on to the caller.
    unsafe {
        match options.stack {
            0 => stream.launch_items::<WithoutStack>(num_rays as u64, args),
            _ => stream.launch_items::<ShortStack>(num_rays as u64, args),
        }
    }
}

impl GpuTree {
    pub(in super::super) fn closest_hits(&self, rays: &[Ray], options: &RayOptions) -> Result<Hits> {
        let (stream, mut workspace) = (Stream::new(self.gpu())?, Workspace::new(self.gpu()));
        let rays = Buffer::from_slice(&stream, rays, "rays")?;
        let mut hits = DeviceHits::uninitialized(stream.gpu(), rays.len())?;
        self.closest_hits_on(&stream, &mut workspace, &rays, options, &mut hits)?;
        hits.to_host(&stream)
    }

    pub(in super::super) fn closest_hits_on(
        &self,
        stream: &Stream,
        workspace: &mut Workspace,
        rays: &Buffer<Ray>,
        options: &RayOptions,
        hits: &mut DeviceHits,
    ) -> Result<()> {
        let order = trace_order(self, stream, workspace, rays, options)?;
        let (nodes, references, corners, extent) = self.views();
        let DeviceHits { triangles, t, u, v } = hits;
        let hits = (triangles.slice_mut(), t.slice_mut(), u.slice_mut(), v.slice_mut());
        let args = (nodes, references, corners, extent, rays.slice(), order, hits.0, hits.1, hits.2, hits.3);
        // SAFETY: the buffers have the lengths that the kernel takes, and wait for the device before they are freed.
        unsafe { launch_rays::<sah_closest<0>, sah_closest<4>>(stream, options, rays.len(), args) }
    }

    pub(in super::super) fn any_hits(&self, rays: &[Ray], options: &RayOptions) -> Result<Vec<bool>> {
        let (stream, mut workspace) = (Stream::new(self.gpu())?, Workspace::new(self.gpu()));
        let rays = Buffer::from_slice(&stream, rays, "rays")?;
        let mut hits = Buffer::<u8>::uninitialized(stream.gpu(), rays.len(), "hits of rays")?;
        self.any_hits_on(&stream, &mut workspace, &rays, options, &mut hits)?;
        Ok(hits.to_vec(&stream)?.into_iter().map(|hit| hit != 0).collect())
    }

    pub(in super::super) fn any_hits_on(
        &self,
        stream: &Stream,
        workspace: &mut Workspace,
        rays: &Buffer<Ray>,
        options: &RayOptions,
        hits: &mut Buffer<u8>,
    ) -> Result<()> {
        let order = trace_order(self, stream, workspace, rays, options)?;
        let (nodes, references, corners, extent) = self.views();
        let args = (nodes, references, corners, extent, rays.slice(), order, hits.slice_mut());
        // SAFETY: as in `closest_hits_on`.
        unsafe { launch_rays::<sah_any<0>, sah_any<4>>(stream, options, rays.len(), args) }
    }
}

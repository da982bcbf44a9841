//! Ray queries on a GPU.

use super::ray_order::sorted_order;
use super::tree::GpuTree;
use crate::device::{Buffer, Stream, Workspace};
use crate::error::Result;
use crate::primitives::pairs::empty_view;
use crate::sah::hits::{DeviceHits, Hits};
use crate::sah::options::{RayOptions, RayTraversal};
use cuda_std::kernel::Kernel;
use kauri_kernels::sah::ray::Ray;
use kauri_kernels::sah::trace::{TreeRays, sah_any, sah_any_restart, sah_closest, sah_closest_restart};

/// Launches a kernel with a thread per ray: `ShortStack` or `Restart`, as the options say.
///
/// # Safety
/// The kernels' conditions.
pub(super) unsafe fn launch_rays<'a, ShortStack, Restart>(
    stream: &Stream,
    options: &RayOptions,
    num_rays: usize,
    args: ShortStack::Args<'a>,
) -> Result<()>
where
    ShortStack: Kernel,
    Restart: Kernel<Args<'a> = ShortStack::Args<'a>>,
{
    // SAFETY: passed on to the caller.
    unsafe {
        match options.traversal {
            RayTraversal::ShortStack => stream.launch_items::<ShortStack>(num_rays as u64, args),
            #[cfg(feature = "research")]
            RayTraversal::Restart => stream.launch_items::<Restart>(num_rays as u64, args),
        }
    }
}

impl GpuTree {
    /// Returns the rays with the tree and the order in which they are traced, which is in the workspace.
    pub(super) fn rays<'a>(
        &'a self,
        stream: &Stream,
        workspace: &'a mut Workspace,
        rays: &'a Buffer<Ray>,
        options: &RayOptions,
    ) -> Result<TreeRays<'a>> {
        let rays = rays.slice();
        let order = if options.sorted && !rays.is_empty() {
            sorted_order(self, stream, workspace, rays)?
        } else {
            empty_view().read_only()
        };
        Ok(TreeRays { tree: self.view(), rays, order })
    }

    pub(in super::super) fn closest_hits(&self, rays: &[Ray], options: &RayOptions) -> Result<Hits> {
        let (stream, mut workspace) = (Stream::new(&self.gpu)?, Workspace::new(&self.gpu));
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
        let args = (self.rays(stream, workspace, rays, options)?, hits.view_mut());
        // SAFETY: the buffers have the lengths that the kernel takes, and wait for the device before they are freed.
        unsafe { launch_rays::<sah_closest, sah_closest_restart>(stream, options, rays.len(), args) }
    }

    pub(in super::super) fn any_hits(&self, rays: &[Ray], options: &RayOptions) -> Result<Vec<bool>> {
        let (stream, mut workspace) = (Stream::new(&self.gpu)?, Workspace::new(&self.gpu));
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
        let args = (self.rays(stream, workspace, rays, options)?, hits.slice_mut());
        // SAFETY: as in `closest_hits_on`.
        unsafe { launch_rays::<sah_any, sah_any_restart>(stream, options, rays.len(), args) }
    }
}

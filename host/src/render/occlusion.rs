//! Ambient occlusion of a frame.

use crate::device::{Buffer, Stream, Workspace};
use crate::error::Result;
use crate::rays::{Ray, RayIndex, RayOptions};
use cuda_std::mem::Slice;
use kauri_kernels::render::frame::CameraHits;
use kauri_kernels::render::occlusion::{render_add_skylight, render_occlusion_rays};
use kauri_kernels::render::shading::FrameParams;

/// The memory of one occlusion ray per pixel, and the light of the sky.
pub(super) struct Occlusion<'a> {
    pub(super) rays: &'a mut Buffer<Ray>,
    pub(super) are_occluded: &'a mut Buffer<u8>,
    pub(super) skylight: &'a mut Buffer<[f32; 3]>,
}

impl Occlusion<'_> {
    /// Computes the light of the sky at each surface point, by `num` rays each, one after another.
    ///
    /// # Safety
    /// There is a hit for each ray, and the buffers wait for the device before they are freed.
    pub(super) unsafe fn run(
        self,
        stream: &Stream,
        workspace: &mut Workspace,
        index: &dyn RayIndex,
        params: Slice<'_, FrameParams>,
        hits: CameraHits<'_>,
        num: u32,
    ) -> Result<()> {
        let Self { rays, are_occluded, skylight } = self;
        let num_pixels = rays.len() as u64;
        for number in 0..num {
            // SAFETY: passed on to the caller.
            unsafe {
                stream.launch_items::<render_occlusion_rays>(
                    num_pixels,
                    (params, hits, number, rays.slice_mut()),
                )?;
                index.any_hits_on(stream, workspace, rays, &RayOptions::default(), are_occluded)?;
                let args = (params, rays.slice(), are_occluded.slice(), number, skylight.slice_mut());
                stream.launch_items::<render_add_skylight>(num_pixels, args)?;
            }
        }
        Ok(())
    }
}

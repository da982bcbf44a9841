//! Frames in device memory.

use super::camera::{Camera, View};
use super::light::{ALBEDO, GROUND, SUN, ZENITH, byte};
use super::occlusion::Occlusion;
use super::options::RenderOptions;
use super::picture::Image;
use super::surface::ray_offset;
use super::vector::{V3, dot, minus, unit};
use crate::device::{Buffer, Gpu, Stream, Workspace};
use crate::error::{Result, check_len};
use crate::mesh::DeviceMesh;
use crate::primitives::pairs::empty_view;
use crate::rays::{DeviceHits, Ray, RayIndex, RayOptions};
use kauri_kernels::render::frame::{CameraHits, render_rays, render_shade, render_shadow_rays};
use kauri_kernels::render::shading::{BYTE_ENTRIES, FrameParams};

/// Renders frames of meshes that are on a GPU with a [`RayIndex`], and leaves the pixels in device memory. Compared with
/// [`image`](super::image), frames have one ray per pixel, are computed in single precision, and have no dithering.
///
/// Memory: 51 bytes per pixel, 33 more for shadows or ambient occlusion, and 12 more for the latter. Each frame may use another stream of the
/// device.
///
/// ```no_run
/// use kauri::device::{Buffer, Device, Stream};
/// use kauri::mesh::shapes;
/// use kauri::render::{Camera, Frames, RenderOptions};
/// use kauri::mesh::DeviceMesh;
/// use kauri::rays::RayIndex;
/// use kauri::sah::{SahOptions, SahTree};
/// let device = Device::from_name("cuda")?;
/// let gpu = device.gpu().expect("it is one");
/// let stream = Stream::new(gpu)?;
/// let knot = shapes::torus_knot([2, 3], 1000, 100)?;
/// let vertices = Buffer::from_slice(&stream, knot.vertices().as_flattened(), "vertices")?;
/// let triangles = Buffer::from_slice(&stream, knot.triangles().as_flattened(), "triangles")?;
/// let mesh = DeviceMesh { vertices: &vertices, triangles: &triangles };
/// let mut tree = SahTree::build_on(&stream, mesh, &SahOptions::default())?;
/// let options = RenderOptions::default().size(1920, 1080).occlusion_rays(4);
/// let camera = Camera::around(knot.bounds().unwrap(), [1.0, -2.0, 1.0], 16.0 / 9.0);
/// let mut frames = Frames::new(gpu, &options)?;
/// for _ in 0..120 {
///     // Move the vertices here, with a kernel of your own.
///     tree.rebuild_on(&stream, mesh)?;
///     let pixels: &Buffer<u8> = frames.draw(&stream, &tree, mesh, &camera)?;
/// }
/// # Ok::<(), kauri::Error>(())
/// ```
pub struct Frames {
    options: RenderOptions,
    rays: Buffer<Ray>,
    hits: DeviceHits,
    /// From surface points: occlusion rays, then those to the sun.
    secondary_rays: Buffer<Ray>,
    are_occluded: Buffer<u8>,
    skylight: Buffer<[f32; 3]>,
    params: Buffer<FrameParams>,
    bytes: Option<Buffer<u8>>,
    pixels: Buffer<u8>,
    workspace: Workspace,
    /// The stream of the last frame.
    last: Option<Stream>,
}

impl Frames {
    /// Allocates the memory of frames. The options count, but for the samples: a pixel has one.
    ///
    /// # Errors
    /// The errors of [`image`](super::image) for options; [`Error::OutOfMemory`](crate::Error::OutOfMemory); errors of the
    /// driver.
    pub fn new(gpu: &Gpu, options: &RenderOptions) -> Result<Self> {
        options.check()?;
        let num = options.width as usize * options.height as usize;
        let num_secondary = if options.shadows || options.occlusion_rays > 0 { num } else { 0 };
        let num_skylight = if options.occlusion_rays > 0 { num } else { 0 };
        Ok(Self {
            options: options.clone(),
            rays: Buffer::uninitialized(gpu, num, "rays of a frame")?,
            hits: DeviceHits::uninitialized(gpu, num)?,
            secondary_rays: Buffer::uninitialized(gpu, num_secondary, "rays of a frame")?,
            are_occluded: Buffer::uninitialized(gpu, num_secondary, "shadows of a frame")?,
            skylight: Buffer::uninitialized(gpu, num_skylight, "light of a frame")?,
            params: Buffer::uninitialized(gpu, 1, "parameters of a frame")?,
            bytes: None,
            pixels: Buffer::uninitialized(gpu, 3 * num, "pixels of a frame")?,
            workspace: Workspace::new(gpu),
            last: None,
        })
    }

    /// Renders a frame of the mesh that the index was built over or fitted to: red, green and blue of each pixel in sRGB, row by row from the
    /// upper left corner. The pixels are ready when the stream has done the work. Waits for earlier work of the stream.
    ///
    /// # Errors
    /// The errors of [`image`](super::image) for the camera and the number of triangles; [`Error::OutOfMemory`](crate::Error::OutOfMemory);
    /// [`Error::NotOnGpu`](crate::Error::NotOnGpu); [`Error::WrongDevice`](crate::Error::WrongDevice); the driver's.
    pub fn draw(
        &mut self,
        stream: &Stream,
        index: &dyn RayIndex,
        mesh: DeviceMesh<'_>,
        camera: &Camera,
    ) -> Result<&Buffer<u8>> {
        self.params.check_device(stream)?;
        mesh.check(stream)?;
        check_len("triangles of a mesh and of its index", index.len(), mesh.len())?;
        let params = self.params(index, camera)?;
        let ray_options = RayOptions::default();
        if let Some(last) = &self.last {
            stream.wait_for(last)?;
        }
        self.last = Some(stream.clone());
        self.params.copy_from_slice(stream, &[params])?;
        if self.bytes.is_none() {
            let byte_of = |entry: usize| byte(entry as f64 / (BYTE_ENTRIES - 1) as f64, 0.5);
            let table: Vec<u8> = (0..BYTE_ENTRIES).map(byte_of).collect();
            self.bytes = Some(Buffer::from_slice(stream, &table, "bytes of light")?);
        }
        let Self { rays, hits, secondary_rays, are_occluded, skylight, params, bytes, .. } = self;
        let (pixels, workspace) = (&mut self.pixels, &mut self.workspace);
        let bytes = bytes.as_ref().expect("the table was uploaded").slice();
        let (params, num) = (params.slice(), rays.len() as u64);
        // SAFETY: the buffers have the lengths that the kernels take, and wait for the device before they are freed.
        unsafe {
            stream.launch_items::<render_rays>(num, (params, rays.slice_mut()))?;
            index.closest_hits_on(stream, workspace, rays, &ray_options, hits)?;
            let hits = CameraHits {
                rays: rays.slice(),
                mesh: mesh.view(),
                triangles: hits.triangles.slice(),
                u: hits.u.slice(),
                v: hits.v.slice(),
            };
            let occlusion =
                Occlusion { rays: &mut *secondary_rays, are_occluded: &mut *are_occluded, skylight };
            occlusion.run(stream, workspace, index, params, hits, self.options.occlusion_rays)?;
            let mut occluded = empty_view().read_only();
            if self.options.shadows {
                stream.launch_items::<render_shadow_rays>(num, (params, hits, secondary_rays.slice_mut()))?;
                index.any_hits_on(stream, workspace, secondary_rays, &ray_options, are_occluded)?;
                occluded = are_occluded.slice();
            }
            let args = (params, bytes, hits, occluded, self.skylight.slice(), pixels.slice_mut());
            stream.launch_items::<render_shade>(num, args)?;
        }
        Ok(&self.pixels)
    }

    /// Copies the last frame to host memory. The image's ray count includes a ray to the sun and all occlusion rays for every pixel.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`](crate::Error::OutOfMemory); [`Error::WrongDevice`](crate::Error::WrongDevice); the driver's.
    pub fn to_image(&self, stream: &Stream) -> Result<Image> {
        let RenderOptions { width, height, shadows, occlusion_rays, .. } = self.options;
        let num_rays = self.rays.len() as u64 * (1 + u64::from(shadows) + u64::from(occlusion_rays));
        self.pixels.check_device(stream)?;
        if let Some(last) = &self.last {
            stream.wait_for(last)?;
        }
        Ok(Image { width, height, pixels: self.pixels.to_vec(stream)?, num_rays })
    }

    fn params(&self, index: &dyn RayIndex, camera: &Camera) -> Result<FrameParams> {
        let size = [self.options.width, self.options.height];
        let view = View::of(camera, size)?;
        let [first, right, down] = view.pixel_steps();
        let bounds = index.bounds();
        let diagonal = minus(bounds.high.map(f64::from), bounds.low.map(f64::from));
        let reach = f64::from(self.options.occlusion_reach) * dot(diagonal, diagonal).sqrt();
        let seed = self.options.seed;
        let single = |v: V3| v.map(|x| x as f32);
        Ok(FrameParams {
            eye: camera.position,
            first: single(first),
            right: single(right),
            down: single(down),
            up: single(view.up()),
            light: single(unit(self.options.light.map(f64::from))),
            // Twice the CPU's offset, since single precision rounds more often.
            ray_offset: (2.0 * ray_offset([bounds.low, bounds.high])) as f32,
            width: size[0],
            sun: single(SUN),
            zenith: single(ZENITH),
            ground: single(GROUND),
            albedo: ALBEDO,
            occlusion_rays: self.options.occlusion_rays,
            reach: reach as f32,
            seed: [seed as u32, (seed >> 32) as u32],
        })
    }
}

impl std::fmt::Debug for Frames {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Frames").field("options", &self.options).finish_non_exhaustive()
    }
}

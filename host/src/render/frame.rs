//! Frames that stay on the device.

use super::camera::{Camera, View};
use super::light::{GROUND, SUN, ZENITH, byte};
use super::options::RenderOptions;
use super::surface::off;
use super::vector::{V3, unit};
use super::{COLOR, Image};
use crate::device::{Buffer, Gpu, Stream, Workspace};
use crate::error::Result;
use crate::primitives::pairs::empty_view;
use crate::sah::{DeviceHits, Ray, RayOptions, SahTree};
use kauri_kernels::render::frame::{render_rays, render_shade, render_shadow_rays};
use kauri_kernels::render::look::{BYTES, Look};

/// Makes frames of meshes whose trees are on a GPU, and leaves them there: pictures as [`image`](super::image) makes them, with one ray a pixel and one to the sun,
/// in single precision, without occlusion by what is near by, and without noise between two bytes.
///
/// Memory: 84 bytes a pixel, 51 without shadows. Frames may be drawn on any streams of the device, one after the other.
///
/// ```no_run
/// use kauri::device::{Buffer, Device, Stream};
/// use kauri::mesh::shapes;
/// use kauri::render::{Camera, Frames, RenderOptions};
/// use kauri::sah::{DeviceMesh, SahOptions, SahTree};
/// let device = Device::from_name("cuda")?;
/// let gpu = device.gpu().expect("it is one");
/// let stream = Stream::new(gpu)?;
/// let knot = shapes::torus_knot([2, 3], 1000, 100)?;
/// let vertices = Buffer::from_slice(&stream, knot.vertices().as_flattened(), "vertices")?;
/// let triangles = Buffer::from_slice(&stream, knot.triangles().as_flattened(), "triangles")?;
/// let mesh = DeviceMesh { vertices: &vertices, triangles: &triangles };
/// let mut tree = SahTree::build_on(&stream, mesh, &SahOptions::default())?;
/// let options = RenderOptions::default().size(1920, 1080);
/// let camera = Camera::around(knot.bounds().unwrap(), [1.0, -2.0, 1.0], 16.0 / 9.0);
/// let mut frames = Frames::new(gpu, &options)?;
/// for _ in 0..120 {
///     // Here the vertices move, by a kernel of yours.
///     tree.rebuild_on(&stream, mesh)?;
///     let pixels: &Buffer<u8> = frames.draw(&stream, &tree, &camera)?;
/// }
/// # Ok::<(), kauri::Error>(())
/// ```
pub struct Frames {
    options: RenderOptions,
    rays: Buffer<Ray>,
    hits: DeviceHits,
    shadow_rays: Buffer<Ray>,
    are_hidden: Buffer<u8>,
    look: Buffer<Look>,
    bytes: Option<Buffer<u8>>,
    pixels: Buffer<u8>,
    workspace: Workspace,
    /// The stream of the last frame.
    last: Option<Stream>,
}

impl Frames {
    /// For frames of that size, in that light, with shadows or without; the other options are not looked at.
    ///
    /// # Errors
    /// Those of [`image`](super::image) for options; [`Error::OutOfMemory`](crate::Error::OutOfMemory); the driver's.
    pub fn new(gpu: &Gpu, options: &RenderOptions) -> Result<Self> {
        options.check()?;
        let num = options.width as usize * options.height as usize;
        let num_shadows = if options.shadows { num } else { 0 };
        Ok(Self {
            options: options.clone(),
            rays: Buffer::uninitialized(gpu, num, "rays of a frame")?,
            hits: DeviceHits::uninitialized(gpu, num)?,
            shadow_rays: Buffer::uninitialized(gpu, num_shadows, "rays of a frame")?,
            are_hidden: Buffer::uninitialized(gpu, num_shadows, "shadows of a frame")?,
            look: Buffer::uninitialized(gpu, 1, "look of a frame")?,
            bytes: None,
            pixels: Buffer::uninitialized(gpu, 3 * num, "pixels of a frame")?,
            workspace: Workspace::new(gpu),
            last: None,
        })
    }

    /// The frame that a camera takes: red, green and blue of each pixel in sRGB, row by row from the left upper corner. They are there when the
    /// stream has done the work. Waits for work of the stream before this.
    ///
    /// # Errors
    /// Those of [`image`](super::image) for the camera; [`Error::OutOfMemory`](crate::Error::OutOfMemory); [`Error::NotOnGpu`](crate::Error::NotOnGpu); [`Error::WrongDevice`](crate::Error::WrongDevice); the driver's.
    pub fn draw(&mut self, stream: &Stream, tree: &SahTree, camera: &Camera) -> Result<&Buffer<u8>> {
        self.look.check_device(stream)?;
        let look = self.look(tree, camera)?;
        let by = RayOptions::default();
        if let Some(last) = &self.last {
            stream.wait_for(last)?;
        }
        self.last = Some(stream.clone());
        self.look.copy_from_slice(stream, &[look])?;
        if self.bytes.is_none() {
            let of = |entry: usize| byte(entry as f64 / (BYTES - 1) as f64, 0.5);
            let table: Vec<u8> = (0..BYTES).map(of).collect();
            self.bytes = Some(Buffer::from_slice(stream, &table, "bytes of light")?);
        }
        let Self { rays, hits, shadow_rays, are_hidden, look, bytes, pixels, workspace, .. } = self;
        let bytes = bytes.as_ref().expect("it has been made").slice();
        let (look, num) = (look.slice(), rays.len() as u64);
        // SAFETY: of the lengths that the kernels take, and they wait for the device before they are freed.
        unsafe {
            stream.launch_items::<render_rays>(num, (look, rays.slice_mut()))?;
            tree.closest_hits_on(stream, workspace, rays, &by, hits)?;
            tree.read_corners(stream, |corners| {
                let (triangles, u, v) = (hits.triangles.slice(), hits.u.slice(), hits.v.slice());
                let mut hidden = empty_view().read_only();
                if self.options.shadows {
                    let args = (look, rays.slice(), corners, triangles, u, v, shadow_rays.slice_mut());
                    stream.launch_items::<render_shadow_rays>(num, args)?;
                    tree.any_hits_on(stream, workspace, shadow_rays, &by, are_hidden)?;
                    hidden = are_hidden.slice();
                }
                let args = (look, bytes, rays.slice(), corners, triangles, u, v, hidden, pixels.slice_mut());
                stream.launch_items::<render_shade>(num, args)
            })?;
        }
        Ok(&self.pixels)
    }

    /// The last frame, in host memory. Of rays to the sun as many are counted as there are pixels.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`](crate::Error::OutOfMemory); [`Error::WrongDevice`](crate::Error::WrongDevice); the driver's.
    pub fn to_image(&self, stream: &Stream) -> Result<Image> {
        let RenderOptions { width, height, shadows, .. } = self.options;
        let num_rays = self.rays.len() as u64 * if shadows { 2 } else { 1 };
        self.pixels.check_device(stream)?;
        if let Some(last) = &self.last {
            stream.wait_for(last)?;
        }
        Ok(Image { width, height, pixels: self.pixels.to_vec(stream)?, num_rays })
    }

    fn look(&self, tree: &SahTree, camera: &Camera) -> Result<Look> {
        let size = [self.options.width, self.options.height];
        let view = View::of(camera, size)?;
        let [first, right, down] = view.ways();
        let bounds = tree.bounds();
        let small = |v: V3| v.map(|x| x as f32);
        Ok(Look {
            eye: camera.position,
            first: small(first),
            right: small(right),
            down: small(down),
            up: small(view.up()),
            light: small(unit(self.options.light.map(f64::from))),
            // What is rounded here is rounded more often than there.
            off: (2.0 * off([bounds.low, bounds.high])) as f32,
            width: size[0],
            sun: small(SUN),
            zenith: small(ZENITH),
            ground: small(GROUND),
            color: COLOR,
        })
    }
}

impl std::fmt::Debug for Frames {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Frames").field("options", &self.options).finish_non_exhaustive()
    }
}

//! Pictures in host memory.

use super::camera::{Camera, View};
use super::light::{ALBEDO, byte};
use super::options::{RenderOptions, check_size};
use super::scene::{MAX_RAYS, Scene};
use super::vector::sum;
use crate::error::{Result, check_len};
use crate::memory;
use crate::mesh::Mesh;
use crate::parallel::{self, Ranges, TASK_ITEMS};
use crate::random::Random;
use crate::rays::RayIndex;

/// A picture in host memory, the result of [`image`] and of [`Frames::to_image`](super::Frames::to_image).
///
/// ```
/// use kauri::mesh::Mesh;
/// use kauri::render::{self, Camera, RenderOptions};
/// use kauri::{Device, SahOptions, SahTree};
/// let nothing = Mesh::default();
/// let tree = SahTree::build(&Device::cpu(), &nothing, &SahOptions::default())?;
/// let camera = Camera::new([0.0, -1.0, 0.0], [0.0; 3]);
/// let sky = render::image(&tree, &nothing, &camera, &RenderOptions::default().size(4, 3))?;
/// assert_eq!((sky.width, sky.height, sky.pixels.len(), sky.num_rays), (4, 3, 36, 12));
/// # Ok::<(), kauri::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Image {
    /// Width in pixels.
    pub width: u32,
    /// Height in pixels.
    pub height: u32,
    /// Red, green and blue of each pixel in sRGB, row by row from the upper left corner: `3 * width * height` bytes.
    pub pixels: Vec<u8>,
    /// Number of rays, including those to sun and sky.
    pub num_rays: u64,
}

/// Renders a picture of a mesh. `tree` is the tree over the mesh.
///
/// - Cost: at most `width * height * samples * (2 + occlusion_rays)` rays.
/// - Memory: 3 bytes per pixel, and the memory of a batch of 2^20 rays.
/// - Degenerate input: a mesh without triangles gives a picture of the sky; triangles without area are invisible.
///
/// # Errors
/// [`Error::OutOfRange`](crate::Error::OutOfRange) for a size without pixels or with sides above 32768, for more than 4096 rays of a kind,
/// for 0 samples, and for a field of view outside 1 to 179 degrees; [`Error::InvalidLength`](crate::Error::InvalidLength) for a negative or
/// non-finite reach; [`Error::NonFinite`](crate::Error::NonFinite) or [`Error::CoordinateTooLarge`](crate::Error::CoordinateTooLarge) for
/// the light's direction, or the camera's position, target or up; [`Error::Shape`](crate::Error::Shape) if tree and mesh have different
/// numbers of triangles; [`Error::OutOfMemory`](crate::Error::OutOfMemory); errors of the device.
pub fn image(index: &dyn RayIndex, mesh: &Mesh, camera: &Camera, options: &RenderOptions) -> Result<Image> {
    image_with(index, mesh, camera, options, |_| ALBEDO)
}

/// Renders a picture with an albedo per triangle: the reflected fraction of red, green and blue light, from 0 to 1.
///
/// # Errors
/// As [`image`].
pub fn image_with(
    index: &dyn RayIndex,
    mesh: &Mesh,
    camera: &Camera,
    options: &RenderOptions,
    color: impl Fn(u32) -> [f32; 3] + Sync,
) -> Result<Image> {
    options.check()?;
    check_len("triangles of a mesh and of its tree", mesh.len(), index.len())?;
    let (width, height, samples) = (options.width, options.height, options.samples as usize);
    let view = View::of(camera, [width, height])?;
    let num_pixels = width as usize * height as usize;
    let _span = tracing::debug_span!("render", pixels = num_pixels).entered();

    let mut scene = Scene::new(index, mesh, options, view, color);
    let mut pixels = memory::vec_with_capacity(num_pixels, "pixels of a picture")?;
    for batch in Ranges::new(num_pixels, MAX_RAYS / samples).iter() {
        let light = scene.sample_light(batch.start * samples..batch.end * samples)?;
        let mean = |samples_light: &[[f64; 3]]| {
            samples_light.iter().fold([0.0; 3], |all, &one| sum([(1.0, all), (1.0 / samples as f64, one)]))
        };
        let bytes = |i: usize| {
            let dither = Random::of(!options.seed, (batch.start + i) as u64).unit();
            mean(&light[i * samples..(i + 1) * samples]).map(|light| byte(light, dither))
        };
        parallel::extend(&mut pixels, batch.len(), TASK_ITEMS, bytes);
    }
    Ok(Image { width, height, pixels: pixels.into_flattened(), num_rays: scene.num_rays })
}

/// Returns the triangle at the center of each pixel, row by row from the upper left corner;
/// [`Hit::NO_TRIANGLE`](crate::rays::Hit::NO_TRIANGLE) for pixels without one.
///
/// # Errors
/// The errors of [`image`] for `size`, which is width and height, for the camera and the device.
pub fn triangle_ids(index: &dyn RayIndex, camera: &Camera, size: [u32; 2]) -> Result<Vec<u32>> {
    check_size(size)?;
    let view = View::of(camera, size)?;
    let num_pixels = size[0] as usize * size[1] as usize;
    let mut ids = memory::vec_with_capacity(num_pixels, "triangles of a picture")?;
    for batch in Ranges::new(num_pixels, MAX_RAYS).iter() {
        let rays = parallel::map(batch.len(), TASK_ITEMS, |i| view.center(batch.start + i));
        ids.extend(index.closest_hits(&rays)?.triangles);
    }
    Ok(ids)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Device;
    use crate::error::Error;
    use crate::mesh::shapes;
    use crate::rays::Hit;
    use crate::sah::{SahOptions, SahTree};

    const SIZE: [u32; 2] = [48, 32];

    fn tree(mesh: &Mesh) -> SahTree {
        SahTree::build(&Device::cpu(), mesh, &SahOptions::default()).unwrap()
    }

    fn camera(mesh: &Mesh) -> Camera {
        Camera::new([0.6, -1.0, 0.5], [0.0; 3]).framing(mesh.vertices(), 1.5)
    }

    fn options() -> RenderOptions {
        RenderOptions::default().size(SIZE[0], SIZE[1])
    }

    fn picture(mesh: &Mesh, options: &RenderOptions) -> Image {
        image(&tree(mesh), mesh, &camera(mesh), options).unwrap()
    }

    /// Returns the triangle of each pixel by brute force.
    fn by_brute_force(mesh: &Mesh, camera: &Camera) -> Vec<u32> {
        let view = View::of(camera, SIZE).unwrap();
        let id = |pixel: u32| {
            let [x, y] = [pixel % SIZE[0], pixel / SIZE[0]].map(|at| f64::from(at) + 0.5);
            let ray = view.ray([x, y]);
            let hits = (0..mesh.len() as u32).filter_map(|i| ray.hit(i, mesh.corners(i as usize)));
            hits.fold(Hit::NONE, |first, hit| if hit.is_before(&first) { hit } else { first }).triangle
        };
        (0..SIZE[0] * SIZE[1]).map(id).collect()
    }

    #[test]
    fn pictures_show_the_first_triangles() {
        let shapes = [
            shapes::torus_knot([2, 3], 60, 8),
            shapes::terrain(16, 2),
            shapes::soup(500, 0.1, 3),
            shapes::grid(2, [5, 4]),
        ];
        for mesh in shapes.map(Result::unwrap) {
            let ids = triangle_ids(&tree(&mesh), &camera(&mesh), SIZE).unwrap();
            assert_eq!(ids, by_brute_force(&mesh, &camera(&mesh)));
            let seen = ids.iter().filter(|&&id| id != Hit::NO_TRIANGLE).count();
            assert!((100..1400).contains(&seen), "{seen}");
        }
    }

    /// Hashes that hold on every machine.
    #[test]
    fn pictures_are_the_same_everywhere() {
        // FNV-1a by words.
        let hash = |words: &mut dyn Iterator<Item = u32>| {
            let first = 0xCBF2_9CE4_8422_2325_u64;
            words.fold(first, |hash, word| (hash ^ u64::from(word)).wrapping_mul(0x0100_0000_01B3))
        };
        let hashes = [shapes::torus_knot([2, 3], 120, 10), shapes::terrain(40, 1)].map(|mesh| {
            let mesh = mesh.unwrap();
            let ids = triangle_ids(&tree(&mesh), &camera(&mesh), SIZE).unwrap();
            let pixels = picture(&mesh, &options().samples(2)).pixels;
            [hash(&mut ids.into_iter()), hash(&mut pixels.into_iter().map(u32::from))]
        });
        let known =
            [[0xFE22_9228_1713_CFB4, 0x681B_16F3_7CC0_1494], [0xE0ED_FBC2_C368_E821, 0x7D07_E549_1A2A_9675]];
        assert_eq!(hashes, known, "{hashes:#X?}");
    }

    #[test]
    fn rays_are_counted() {
        let mesh = shapes::grid(2, [1, 1]).unwrap();
        let seen = triangle_ids(&tree(&mesh), &camera(&mesh), SIZE).unwrap();
        let seen = seen.iter().filter(|&&id| id != Hit::NO_TRIANGLE).count() as u64;
        let pixels = u64::from(SIZE[0] * SIZE[1]);
        assert_eq!(picture(&mesh, &options()).num_rays, pixels + 9 * seen);
        assert_eq!(picture(&mesh, &options().shadows(false).occlusion_rays(0)).num_rays, pixels);
    }

    /// A square above a larger one, with the sun straight above.
    fn table() -> Mesh {
        let square =
            |half: f32, z: f32| [[-half, -half, z], [half, -half, z], [half, half, z], [-half, half, z]];
        let vertices = [square(4.0, 0.0), square(1.0, 1.0)].concat();
        Mesh::new(vertices, vec![[0, 1, 2], [0, 2, 3], [4, 5, 6], [4, 6, 7]]).unwrap()
    }

    #[test]
    fn shadows_and_corners_are_dark() {
        let mesh = table();
        // From the side: the center of the picture shows the floor below the upper square.
        let camera = Camera::new([0.0, -6.0, 0.8], [0.0; 3]);
        let options = options().light([0.0, 0.0, 1.0]);
        let middle = |options: &RenderOptions| {
            let image = image(&tree(&mesh), &mesh, &camera, options).unwrap();
            let pixel = (SIZE[1] / 2 * SIZE[0] + SIZE[0] / 2) as usize;
            image.pixels[3 * pixel]
        };
        let [lit, open, shaded, dark] = [(false, 0), (false, 64), (true, 0), (true, 64)]
            .map(|(shadows, rays)| middle(&options.clone().shadows(shadows).occlusion_rays(rays)));
        assert!(lit > open && open > shaded && shaded > dark, "{lit} {open} {shaded} {dark}");
        // No nearby triangle occludes the sky.
        let near = options.clone().shadows(false).occlusion_rays(64).occlusion_reach(0.05);
        assert!(middle(&near).abs_diff(lit) <= 2);
    }

    #[test]
    fn convex_meshes_have_no_shadows() {
        // The mesh is convex: a dark pixel would be a ray that hits the surface that it leaves.
        let mesh = shapes::sphere(40, 20).unwrap();
        let shadows = |shadows| picture(&mesh, &options().shadows(shadows)).pixels;
        assert_eq!(shadows(true), shadows(false));
    }

    #[test]
    fn a_mesh_without_triangles_is_sky() {
        let mesh = Mesh::default();
        let camera = Camera::new([0.0, -1.0, 0.0], [0.0; 3]);
        let image = image(&tree(&mesh), &mesh, &camera, &options()).unwrap();
        assert_eq!((image.pixels.len(), image.num_rays), (3 * 48 * 32, 48 * 32));
        let brightness =
            |row: usize| image.pixels[row * 48 * 3..][..48 * 3].iter().map(|&x| u32::from(x)).sum::<u32>();
        assert!(brightness(0) > brightness(31));
        assert!(triangle_ids(&tree(&mesh), &camera, SIZE).unwrap().iter().all(|&id| id == Hit::NO_TRIANGLE));
    }

    #[test]
    fn mismatched_meshes_and_invalid_options_are_errors() {
        let (mesh, other) = (table(), shapes::grid(0, [3, 3]).unwrap());
        let (tree, camera) = (tree(&mesh), camera(&mesh));
        let error = image(&tree, &other, &camera, &options()).unwrap_err();
        assert!(matches!(error, Error::Shape { expected: 18, got: 4, .. }));
        assert!(matches!(triangle_ids(&tree, &camera, [0, 1]), Err(Error::OutOfRange { value: 0, .. })));
        let error = image(&tree, &mesh, &camera, &options().samples(0)).unwrap_err();
        assert_eq!(error.to_string(), "samples of a pixel 0: expected 1 to 4096");
        let error = image(&tree, &mesh, &camera.field_of_view(180.0), &options()).unwrap_err();
        assert_eq!(error.to_string(), "field of view in degrees 180: expected 1 to 179");
    }
}

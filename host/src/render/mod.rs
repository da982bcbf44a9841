//! Pictures of meshes by ray tracing.
//!
//! A ray goes from the [`Camera`] through every pixel. The surface point that it hits is lit by a sun, unless a triangle is
//! in between, and by the sky, as far as nearby triangles do not occlude it: ambient occlusion with cosine-weighted rays
//! (Zhukov, Iones, Kronin 1998: An Ambient Light Illumination Model). Triangles are flat, diffuse, and look the same from
//! both sides.
//!
//! | picture | rays of a pixel that hits the mesh | light |
//! |---|--:|---|
//! | [`image`], [`image_with`] | `samples` times 1, a ray to the sun, and `occlusion_rays` | sun, shadows, ambient occlusion, in double precision; bytes equal on all devices |
//! | [`Frames`] | 1, a ray to the sun, and `occlusion_rays` | sun, shadows, ambient occlusion, in single precision, on a GPU: with shadows 0.77 ms for 1920 x 1080 pixels of 871,414 triangles in a `Bvh` on an H200 (suite `sah`, `benches/results/sah-h200.md`) |
//! | [`triangle_ids`] | 1 | none: the triangle of each pixel |
//!
//! A seed determines the directions of rays, and rays have the same hits on every device. A picture therefore has the same
//! bytes everywhere.
//!
//! ```
//! use kauri::mesh::shapes;
//! use kauri::render::{self, Camera, RenderOptions};
//! use kauri::{Device, SahOptions, SahTree};
//! let knot = shapes::torus_knot([2, 3], 200, 16)?;
//! let tree = SahTree::build(&Device::cpu(), &knot, &SahOptions::default())?;
//! let options = RenderOptions::default().size(64, 48);
//! let camera = Camera::around(knot.bounds().unwrap(), [1.0, -2.0, 1.0], 64.0 / 48.0);
//! let image = render::image(&tree, &knot, &camera, &options)?;
//! assert_eq!(image.pixels.len(), 3 * 64 * 48);
//!
//! // The triangle of each pixel.
//! let ids = render::triangle_ids(&tree, &camera, [64, 48])?;
//! assert!(ids.iter().any(|&id| id < knot.len() as u32));
//! # Ok::<(), kauri::Error>(())
//! ```

mod camera;
mod frame;
mod light;
mod occlusion;
mod options;
mod picture;
mod r2_sequence;
mod scene;
mod surface;
mod vector;

pub use camera::Camera;
pub use frame::Frames;
pub use options::RenderOptions;
pub use picture::{Image, image, image_with, triangle_ids};

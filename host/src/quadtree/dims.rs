//! The number of dimensions: 2 for quadtrees, 3 for octrees.

use crate::point::{Cartesian, Scalar};

/// A point with `D` Cartesian coordinates: a [`Quadtree`](super::Quadtree) takes points with 2, an [`Octree`](super::Octree) points with 3.
///
/// Other types of points implement it beside [`Cartesian`]; their [`DIMS`](crate::Point::DIMS) must be `D`.
///
/// ```
/// use kauri::quadtree::CartesianPoint;
/// use kauri::{Cartesian, Device, Point, Quadtree, QuadtreeOptions, Result};
/// use std::borrow::Cow;
///
/// #[derive(Clone, Copy)]
/// struct Pixel(u16, u16);
///
/// impl Point for Pixel {
///     type Coord = f32;
///     const DIMS: usize = 2;
///     const CONVERTED: bool = true;
///     const KEEPS_AXES: bool = true;
///
///     fn coordinates<'a>(pixels: &'a [Self], _: &'static str) -> Result<Cow<'a, [f32]>> {
///         Ok(pixels.iter().flat_map(|pixel| [pixel.0.into(), pixel.1.into()]).collect())
///     }
/// }
/// impl Cartesian for Pixel {}
/// impl CartesianPoint<2> for Pixel {}
///
/// let pixels = [Pixel(3, 4), Pixel(0, 900)];
/// let tree = Quadtree::build(&Device::cpu(), &pixels, &QuadtreeOptions::default().leaf_points(1))?;
/// assert_eq!(tree.leaf_of(&pixels)?, [1, 2]);
/// # Ok::<(), kauri::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a point with {D} coordinates",
    label = "not a point with {D} coordinates",
    note = "`Quadtree` takes points with 2 coordinates, such as `[f32; 2]`; `Octree` takes points with 3, such as `[f32; 3]`"
)]
pub trait CartesianPoint<const D: usize>: Cartesian {}

impl<S: Scalar> CartesianPoint<2> for [S; 2] {}

impl<S: Scalar> CartesianPoint<3> for [S; 3] {}

/// Evaluates `$body` with the constant `$D` = `$dims`, which is 2 or 3.
macro_rules! with_2_or_3 {
    ($dims:expr, $D:ident => $body:expr) => {
        $crate::point::with_dims!(@ $dims, $D, $body, 2 3)
    };
}
pub(crate) use with_2_or_3;

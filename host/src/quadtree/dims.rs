//! The number of dimensions: 2 for quadtrees, 3 for octrees.

use crate::point::{Cartesian, Scalar};

/// A point with `D` Cartesian coordinates: a [`Quadtree`](super::Quadtree) takes points with 2, an [`Octree`](super::Octree) points with 3.
///
/// Other types of points implement it beside [`Cartesian`]; their [`DIMS`](crate::Point::DIMS) must be `D`.
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
        match $dims {
            2 => {
                const $D: usize = 2;
                $body
            }
            3 => {
                const $D: usize = 3;
                $body
            }
            dims => unreachable!("{dims} dimensions"),
        }
    };
}
pub(crate) use with_2_or_3;

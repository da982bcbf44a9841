//! The conversion from points to coordinates. Every index, query and join uses it, so that an implementation of
//! [`Point`] outside of kauri cannot break their invariants.

use kauri_kernels::thread::coord::{Coord, Float};
use std::borrow::Cow;

use super::scalar::first_unusable;
use super::{Dispatch, DistanceOf, MAX_DIMS, Point};
use crate::error::{Error, Result, check_len};

/// Tells whether an implementation of [`Point`] checks every coordinate itself. Only kauri's own types can claim this,
/// because other crates cannot name this type.
#[derive(Clone, Copy, Debug)]
pub struct Trust(pub(super) bool);

/// A documentation example with points of `D` coordinates, the type `Own<D>`.
macro_rules! with_own_points {
    ($kind:literal, $call:literal) => {
        concat!(
            "```",
            $kind,
            "\n# use kauri::{Device, KdTree, Point, Result};",
            "\n# use std::borrow::Cow;",
            "\n# #[derive(Clone, Copy)]",
            "\n# struct Own<const D: usize>;",
            "\n# impl<const D: usize> Point for Own<D> {",
            "\n#     type Coord = f32;",
            "\n#     const DIMS: usize = D;",
            "\n#     const CONVERTED: bool = true;",
            "\n#     const KEEPS_AXES: bool = true;",
            "\n#     fn coordinates<'a>(points: &'a [Self], _: &'static str) -> Result<Cow<'a, [f32]>> {",
            "\n#         Ok(vec![0.0; points.len() * D].into())",
            "\n#     }",
            "\n# }\n",
            $call,
            "\n# Ok::<(), kauri::Error>(())\n```"
        )
    };
}

/// Returns the number of coordinates of a point. A type with 0 or more than [`MAX_DIMS`] does not compile:
///
#[doc = with_own_points!("", "assert_eq!(KdTree::build(&Device::cpu(), &[Own::<8>], &Default::default())?.len(), 1);")]
#[doc = with_own_points!("compile_fail,E0080", "KdTree::build(&Device::cpu(), &[Own::<9>], &Default::default())?;")]
#[doc = with_own_points!("compile_fail,E0080", "KdTree::<Own<0>>::plan(&Device::cpu(), 1, &Default::default());")]
#[doc = with_own_points!("compile_fail,E0080", "kauri::balanced::BalancedKdTree::build(&Device::cpu(), &[Own::<0>], &Default::default())?;")]
#[doc = with_own_points!("compile_fail,E0080", "kauri::DistanceJoin::new(1.0).count(&Device::cpu(), &[Own::<0>], &[])?;")]
#[doc = with_own_points!("compile_fail,E0080", "kauri::DistanceJoin::new(1.0).count(&Device::cpu(), &[Own::<7>], &[])?;")]
#[doc = with_own_points!("compile_fail,E0080", "kauri::join::KnnJoin::new(1).run(&Device::cpu(), &[Own::<9>], &[])?;")]
pub(crate) const fn dims<P: Point>() -> usize {
    const { assert!(P::DIMS >= 1 && P::DIMS <= MAX_DIMS, "points have 1 to 8 coordinates") };
    P::DIMS
}

/// Returns the coordinates of points, point by point: [`Point::DIMS`] per point, finite, and at most [`Float::LIMIT`].
/// `what` names the points in errors.
///
/// Types of other crates need one more pass over the coordinates than kauri's own, which have checked each coordinate
/// already.
pub(crate) fn checked_coordinates<'a, P: Point>(
    points: &'a [P],
    what: &'static str,
) -> Result<Cow<'a, [P::Coord]>> {
    let dims = dims::<P>();
    let coords = P::coordinates(points, what)?;
    check_len(what, points.len().saturating_mul(dims), coords.len())?;
    if !P::TRUST.0 {
        check_each_coordinate(&coords, dims, what, |point| point as u64)?;
    }
    Ok(coords)
}

/// Returns the coordinates of points as [`checked_coordinates`] does, in the type of distances: for joins and balanced trees, which are not
/// compiled for integers.
pub(crate) fn checked_floats<'a, P: Point>(
    points: &'a [P],
    what: &'static str,
) -> Result<Cow<'a, [DistanceOf<P>]>> {
    P::Coord::widened(checked_coordinates(points, what)?)
}

/// True if [`checked_floats`] makes a copy of the coordinates, which then counts as temporary memory.
pub(crate) const fn are_floats_copied<P: Point>() -> bool {
    P::CONVERTED || size_of::<P::Coord>() != size_of::<DistanceOf<P>>()
}

/// Returns true for a coordinate that an index accepts; false for NaN.
pub(crate) fn is_usable<C: Coord>(x: C) -> bool {
    x.widen().abs() <= C::Distance::LIMIT
}

/// Returns the error of the first coordinate that an index does not accept. `index` maps the position of a point here
/// to its index in the input.
pub(crate) fn check_each_coordinate<C: Coord>(
    coords: &[C],
    dims: usize,
    what: &'static str,
    index: impl Fn(usize) -> u64,
) -> Result<()> {
    let Some(position) = first_unusable(coords, is_usable) else { return Ok(()) };
    let (value, limit) = (coords[position].to_f64(), C::Distance::LIMIT.to_f64());
    Err(Error::invalid_coordinate(what, index(position / dims), position % dims, value, limit))
}

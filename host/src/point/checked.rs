//! The one way from points to coordinates: every index, query and join comes through here, so that an implementation of [`Point`]
//! outside of kauri cannot break what they rely on.

use kauri_kernels::thread::coord::Coord;
use std::borrow::Cow;

use super::scalar::first_unusable;
use super::{MAX_DIMS, Point};
use crate::error::{Error, Result};

/// Whether an implementation of [`Point`] checks every coordinate itself. Only kauri's own types say so, because nobody else can
/// name this type.
#[derive(Clone, Copy, Debug)]
pub struct Trust(pub(super) bool);

/// An example with points of `D` coordinates, the type `Own<D>`.
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

/// The number of coordinates of a point. A type with none, or with more than [`MAX_DIMS`], does not compile:
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

/// The coordinates of points, point after point: as many as [`Point::DIMS`] says, finite, and at most [`Coord::LIMIT`]. `what` names
/// the points in errors.
///
/// Types of other crates cost one more pass over the coordinates than kauri's own, which have checked each already.
pub(crate) fn checked_coordinates<'a, P: Point>(
    points: &'a [P],
    what: &'static str,
) -> Result<Cow<'a, [P::Coord]>> {
    let dims = dims::<P>();
    let coords = P::coordinates(points, what)?;
    let (expected, got) = ((points.len() as u64).saturating_mul(dims as u64), coords.len() as u64);
    if got != expected {
        return Err(Error::Shape { what, expected, got });
    }
    if !P::TRUST.0 {
        check_each_coordinate(&coords, dims, what, |point| point as u64)?;
    }
    Ok(coords)
}

/// True for a coordinate that an index may have; false for NaN.
pub(crate) fn is_usable<C: Coord>(x: C) -> bool {
    x.abs() <= C::LIMIT
}

/// The error of the first coordinate, point after point, that an index may not have. `index` gives the index of a point in the input
/// from its position here.
pub(crate) fn check_each_coordinate<C: Coord>(
    coords: &[C],
    dims: usize,
    what: &'static str,
    index: impl Fn(usize) -> u64,
) -> Result<()> {
    let Some(position) = first_unusable(coords, is_usable) else { return Ok(()) };
    let (value, limit) = (coords[position].to_f64(), C::LIMIT.to_f64());
    Err(Error::of_coordinate(what, index(position / dims), position % dims, value, limit))
}

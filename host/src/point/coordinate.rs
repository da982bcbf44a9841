//! The type of the coordinates inside an index, and the dispatch from generic calls to code that is compiled once.
//!
//! Indexes are generic over their points, so their methods are compiled in every crate that uses them. Each such method
//! is thin: it [`wrap`](Dispatch::wrap)s its input, calls a function that is not generic, and
//! [`unwrap`](Dispatch::unwrap)s the result.

use kauri_kernels::thread::coord::Coord;
use std::borrow::Cow;

use super::CHECK_CHUNK;
use crate::error::Result;

/// The type of the coordinates inside an index: `f32`, `f64` or `i32`. Distances, radii and periods have its type
/// [`Distance`](Coord::Distance): `f64` for `i32`, otherwise the type itself. Only kauri implements it:
///
/// ```compile_fail,E0277
/// impl kauri::Coordinate for u32 {}
/// ```
pub trait Coordinate: Coord<Distance: Dispatch> + Dispatch {}

impl Coordinate for f32 {}
impl Coordinate for f64 {}
impl Coordinate for i32 {}

/// A family of types, one per coordinate type, for example a tree over such coordinates.
pub trait PerCoordinate {
    /// The type for coordinates of type `C`.
    type Of<C: Coord>;
}

/// A value for one of the coordinate types.
pub enum Typed<F: PerCoordinate> {
    /// The value for `f32`.
    F32(F::Of<f32>),
    /// The value for `f64`.
    F64(F::Of<f64>),
    /// The value for `i32`.
    I32(F::Of<i32>),
}

/// Conversion between values of a known coordinate type and [`Typed`] values.
pub trait Dispatch: Sized {
    /// The coordinate type as a value.
    const TYPE: Typed<NoValue>;

    /// Erases the coordinate type.
    fn wrap<F: PerCoordinate>(value: F::Of<Self>) -> Typed<F>
    where
        Self: Coord;

    /// Recovers the coordinate type, which must be the wrapped one.
    fn unwrap<F: PerCoordinate>(value: Typed<F>) -> F::Of<Self>
    where
        Self: Coord;

    /// Converts coordinates to the type of distances, for indexes and joins that compute with floats only.
    fn widened(coords: Cow<'_, [Self]>) -> Result<Cow<'_, [<Self as Coord>::Distance]>>
    where
        Self: Coord;
}

/// No value: a `Typed<NoValue>` tells only the coordinate type, for calls without coordinates in their input.
pub struct NoValue;

impl PerCoordinate for NoValue {
    type Of<C: Coord> = ();
}

macro_rules! dispatch {
    ($($Coord:ident as $Variant:ident, $coords:ident widened by $widened:expr;)*) => {$(
        impl Dispatch for $Coord {
            const TYPE: Typed<NoValue> = Typed::$Variant(());

            fn wrap<F: PerCoordinate>(value: F::Of<Self>) -> Typed<F> {
                Typed::$Variant(value)
            }

            fn unwrap<F: PerCoordinate>(value: Typed<F>) -> F::Of<Self> {
                match value {
                    Typed::$Variant(value) => value,
                    _ => unreachable!("coordinates are {}", stringify!($Coord)),
                }
            }

            fn widened($coords: Cow<'_, [Self]>) -> Result<Cow<'_, [<Self as Coord>::Distance]>> {
                $widened
            }
        }
    )*};
}

dispatch! {
    f32 as F32, coords widened by Ok(coords);
    f64 as F64, coords widened by Ok(coords);
    i32 as I32, coords widened by super::converted(&coords, CHECK_CHUNK, "coordinates", |&x| x.widen()).map(Cow::Owned);
}

/// Evaluates `$body` with the value inside a [`Typed`], and wraps the result with the same coordinate type, which `$C`
/// names.
macro_rules! with_coordinate {
    ($typed:expr, $C:ident, $value:pat => $body:expr) => {
        match $typed {
            $crate::point::Typed::F32($value) => {
                #[allow(dead_code, reason = "not every body names the type")]
                type $C = f32;
                $crate::point::Typed::F32($body)
            }
            $crate::point::Typed::F64($value) => {
                #[allow(dead_code, reason = "not every body names the type")]
                type $C = f64;
                $crate::point::Typed::F64($body)
            }
            $crate::point::Typed::I32($value) => {
                #[allow(dead_code, reason = "not every body names the type")]
                type $C = i32;
                $crate::point::Typed::I32($body)
            }
        }
    };
}
pub(crate) use with_coordinate;

/// [`with_coordinate`] for a type of distances: the value is for a float. The body is not compiled for other types.
macro_rules! with_float {
    ($typed:expr, $C:ident, $value:pat => $body:expr) => {
        match $typed {
            $crate::point::Typed::F32($value) => {
                #[allow(dead_code, reason = "not every body names the type")]
                type $C = f32;
                $crate::point::Typed::F32($body)
            }
            $crate::point::Typed::F64($value) => {
                #[allow(dead_code, reason = "not every body names the type")]
                type $C = f64;
                $crate::point::Typed::F64($body)
            }
            $crate::point::Typed::I32(_) => unreachable!("distances are floats"),
        }
    };
}
pub(crate) use with_float;

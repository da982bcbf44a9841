//! The type of the coordinates inside an index, and the dispatch from generic calls to code that is compiled once.
//!
//! Indexes are generic over their points, so their methods are compiled in every crate that uses them. Each such method
//! is thin: it [`wrap`](Dispatch::wrap)s its input, calls a function that is not generic, and
//! [`unwrap`](Dispatch::unwrap)s the result.

use kauri_kernels::thread::coord::Coord;
use std::marker::PhantomData;

/// The type of the coordinates inside an index, of distances and of radii: `f32` or `f64`. Only kauri implements it:
///
/// ```compile_fail,E0277
/// impl kauri::Coordinate for u32 {}
/// ```
pub trait Coordinate: Coord + Dispatch {}

impl Coordinate for f32 {}
impl Coordinate for f64 {}

/// A family of types, one per coordinate type, for example a tree over such coordinates.
pub trait PerCoordinate {
    /// The type for coordinates of type `C`.
    type Of<C: Coord>;
}

/// A value for one of the two coordinate types.
pub enum Typed<F: PerCoordinate> {
    /// The value for `f32`.
    F32(F::Of<f32>),
    /// The value for `f64`.
    F64(F::Of<f64>),
}

/// A slice of coordinates, point by point.
pub(crate) struct Slice<'a>(PhantomData<&'a ()>);

impl<'a> PerCoordinate for Slice<'a> {
    type Of<C: Coord> = &'a [C];
}

/// A slice of coordinates of either type, point by point.
pub(crate) type Coords<'a> = Typed<Slice<'a>>;

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
}

/// No value: a `Typed<NoValue>` tells only the coordinate type, for calls without coordinates in their input.
pub struct NoValue;

impl PerCoordinate for NoValue {
    type Of<C: Coord> = ();
}

macro_rules! dispatch {
    ($($Float:ident as $Variant:ident)*) => {$(
        impl Dispatch for $Float {
            const TYPE: Typed<NoValue> = Typed::$Variant(());

            fn wrap<F: PerCoordinate>(value: F::Of<Self>) -> Typed<F> {
                Typed::$Variant(value)
            }

            fn unwrap<F: PerCoordinate>(value: Typed<F>) -> F::Of<Self> {
                match value {
                    Typed::$Variant(value) => value,
                    _ => unreachable!("coordinates are {}", stringify!($Float)),
                }
            }
        }
    )*};
}

dispatch! { f32 as F32 f64 as F64 }

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
        }
    };
}
pub(crate) use with_coordinate;

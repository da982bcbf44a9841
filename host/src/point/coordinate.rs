//! The type of the coordinates inside an index, and the way from generic calls to code that is compiled once.
//!
//! Indexes are generic over their points, so their methods are compiled in every crate that uses them. Each such method is thin: it
//! [`wrap`](Dispatch::wrap)s its input, calls a function that is not generic, and [`unwrap`](Dispatch::unwrap)s the result.

use kauri_kernels::thread::coord::Coord;
use std::marker::PhantomData;

/// The type of the coordinates inside an index: `f32` or `f64`. Only kauri implements it:
///
/// ```compile_fail,E0277
/// impl kauri::Coordinate for u32 {}
/// ```
pub trait Coordinate: Coord + Dispatch {}

impl Coordinate for f32 {}
impl Coordinate for f64 {}

/// A type for each type of coordinates, for example a tree over them.
pub trait PerCoordinate {
    /// The type for coordinates of type `C`.
    type Of<C: Coord>;
}

/// A value for one of the two types of coordinates.
pub enum Typed<F: PerCoordinate> {
    /// The value for `f32`.
    F32(F::Of<f32>),
    /// The value for `f64`.
    F64(F::Of<f64>),
}

/// Coordinates, point after point.
pub(crate) struct Slice<'a>(PhantomData<&'a ()>);

impl<'a> PerCoordinate for Slice<'a> {
    type Of<C: Coord> = &'a [C];
}

/// Coordinates, point after point, of either type.
pub(crate) type Coords<'a> = Typed<Slice<'a>>;

/// Conversion between values of a known type of coordinates and [`Typed`] values.
pub trait Dispatch: Sized {
    /// The type of coordinates as a value.
    const TYPE: Typed<Name>;

    /// Forgets the type of coordinates.
    fn wrap<F: PerCoordinate>(value: F::Of<Self>) -> Typed<F>
    where
        Self: Coord;

    /// Recovers the type of coordinates, which is the one that was wrapped.
    fn unwrap<F: PerCoordinate>(value: Typed<F>) -> F::Of<Self>
    where
        Self: Coord;
}

/// No value, for calls that have no coordinates in their input.
pub struct Name;

impl PerCoordinate for Name {
    type Of<C: Coord> = ();
}

macro_rules! dispatch {
    ($($Float:ident as $Variant:ident)*) => {$(
        impl Dispatch for $Float {
            const TYPE: Typed<Name> = Typed::$Variant(());

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

/// Evaluates `$body` with the value inside a [`Typed`] one, and wraps the result for the same type of coordinates. `$C` names that type.
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

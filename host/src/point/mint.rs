//! Points and vectors of the crate `mint`, which stands between crates of linear algebra. They are indexed like arrays.

use std::borrow::Cow;
use std::slice;

use super::{Cartesian, Point, Scalar, checked};
use crate::error::Result;

/// A type with the layout of the array `A`.
///
/// # Safety
/// It has this layout.
unsafe trait Fields<A> {}

fn arrays<T: Fields<A>, A>(points: &[T]) -> &[A] {
    const { assert!(size_of::<T>() == size_of::<A>() && align_of::<T>() == align_of::<A>()) };
    // SAFETY: as `Fields` promises.
    unsafe { slice::from_raw_parts(points.as_ptr().cast(), points.len()) }
}

/// Implements [`Point`] for types that are `D` fields of one type.
macro_rules! points_of_mint {
    ($($Type:ident: $D:literal),*) => {$(
        /// Indexed like the array of its coordinates, and saved under the same name.
        impl<S: Scalar> Point for ::mint::$Type<S> {
            type Coord = S::Coord;
            const DIMS: usize = $D;
            const CONVERTED: bool = S::CONVERTED;
            const KEEPS_AXES: bool = true;
            const NAME: &'static str = <[S; $D] as Point>::NAME;
            const TRUST: checked::Trust = checked::Trust(true);

            fn coordinates<'a>(points: &'a [Self], what: &'static str) -> Result<Cow<'a, [S::Coord]>> {
                Point::coordinates(arrays::<Self, [S; $D]>(points), what)
            }

            fn unchecked(points: &[Self]) -> Option<&[S::Coord]> {
                Point::unchecked(arrays::<Self, [S; $D]>(points))
            }
        }

        // SAFETY: the type is `repr(C)` with `D` fields of type `S`, which is the layout of the array.
        unsafe impl<S: Scalar> Fields<[S; $D]> for ::mint::$Type<S> {}

        impl<S: Scalar> Cartesian for ::mint::$Type<S> {}
    )*};
}

points_of_mint!(Point2: 2, Point3: 3, Vector2: 2, Vector3: 3);

//! Points and vectors of the crate `mint`, which stands between crates of linear algebra. They are indexed like arrays.

use std::borrow::Cow;
use std::slice;

use super::{Cartesian, Point, Scalar, checked};
use crate::error::Result;

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
                const { assert!(size_of::<Self>() == size_of::<[S; $D]>() && align_of::<Self>() == align_of::<[S; $D]>()) };
                // SAFETY: the type is `repr(C)` with `D` fields of type `S`, which is the layout of the array.
                let arrays = unsafe { slice::from_raw_parts(points.as_ptr().cast::<[S; $D]>(), points.len()) };
                Point::coordinates(arrays, what)
            }
        }

        impl<S: Scalar> Cartesian for ::mint::$Type<S> {}
    )*};
}

points_of_mint!(Point2: 2, Point3: 3, Vector2: 2, Vector3: 3);

//! The number types of points.

use kauri_kernels::thread::coord::Float;
use std::borrow::Cow;

use super::{CHECK_CHUNK, converted};
use crate::error::Result;
use crate::parallel::{self, Ranges};
use crate::point::Coordinate;

/// 2^53: `f64` represents all integers up to it exactly, but not the next one.
const MAX_EXACT: i64 = 1 << f64::MANTISSA_DIGITS;

/// A number type of points: `f32`, `f64`, `i32` or `i64`. Only kauri implements it.
///
/// ```
/// use kauri::{Cartesian, Device, KdTree, KdTreeOptions, Scalar};
/// fn tree_of_pairs<S: Scalar>(points: &[[S; 2]]) -> kauri::Result<KdTree<[S; 2]>>
/// where
///     [S; 2]: Cartesian,
/// {
///     KdTree::build(&Device::cpu(), points, &KdTreeOptions::default())
/// }
/// assert_eq!(tree_of_pairs(&[[1i64, 2], [3, 4]])?.len(), 2);
/// # Ok::<(), kauri::Error>(())
/// ```
///
/// An index stores floats and `i32` as they are, and `i64` as `f64`. It computes distances between integers in `f64`, which represents them
/// exactly: their order on an axis is exact. Squared distances are exact up to 2^53; above, they are rounded to the same bits on every
/// backend, as are differences of `i64` above 2^53. Points whose distances round to the same number are ordered by id.
///
/// Only k-d trees, R-trees, quadtrees and octrees store `i32`; balanced trees and joins convert the coordinates to `f64`, twice the memory.
pub trait Scalar: private::Sealed + Copy + Send + Sync + 'static {
    /// The type of the coordinates inside an index: the type itself, or `f64` for `i64`.
    type Coord: Coordinate;
    /// The largest magnitude accepted: [`Float::LIMIT`] for floats, 2^53 for integers.
    const LARGEST: f64;
    /// True if [`coordinates`](Scalar::coordinates) makes a copy.
    const CONVERTED: bool;
    /// The name of the type in Rust.
    const TYPE_NAME: &'static str;

    /// Returns true for a magnitude up to [`LARGEST`](Scalar::LARGEST).
    fn is_usable(self) -> bool;
    /// Returns the number inside an index; unusable numbers may be rounded.
    fn to_coord(self) -> Self::Coord;

    /// Converts usable numbers to their form inside an index.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`](crate::Error::OutOfMemory) for a copy.
    fn coordinates(numbers: &[Self]) -> Result<Cow<'_, [Self::Coord]>> {
        converted(numbers, CHECK_CHUNK, "coordinates", |number| number.to_coord()).map(Cow::Owned)
    }
}

mod private {
    pub trait Sealed {}
}

macro_rules! floats {
    ($($Float:ident)*) => {$(
        impl private::Sealed for $Float {}

        impl Scalar for $Float {
            type Coord = $Float;
            const LARGEST: f64 = <$Float as Float>::LIMIT as f64;
            const CONVERTED: bool = false;
            const TYPE_NAME: &'static str = stringify!($Float);

            #[inline(always)]
            fn is_usable(self) -> bool {
                // False for NaN.
                self.abs() <= Self::LIMIT
            }

            fn to_coord(self) -> $Float {
                self
            }

            fn coordinates(numbers: &[$Float]) -> Result<Cow<'_, [$Float]>> {
                Ok(Cow::Borrowed(numbers))
            }
        }
    )*};
}

floats!(f32 f64);

impl private::Sealed for i32 {}

impl Scalar for i32 {
    type Coord = i32;
    const LARGEST: f64 = MAX_EXACT as f64;
    const CONVERTED: bool = false;
    const TYPE_NAME: &'static str = "i32";

    #[inline(always)]
    fn is_usable(self) -> bool {
        true
    }

    fn to_coord(self) -> i32 {
        self
    }

    fn coordinates(numbers: &[i32]) -> Result<Cow<'_, [i32]>> {
        Ok(Cow::Borrowed(numbers))
    }
}

impl private::Sealed for i64 {}

impl Scalar for i64 {
    type Coord = f64;
    const LARGEST: f64 = MAX_EXACT as f64;
    const CONVERTED: bool = true;
    const TYPE_NAME: &'static str = "i64";

    #[inline(always)]
    fn is_usable(self) -> bool {
        self.unsigned_abs() <= MAX_EXACT.unsigned_abs()
    }

    #[inline(always)]
    fn to_coord(self) -> f64 {
        self as f64
    }
}

/// Returns the index of the first number that is not usable.
pub(crate) fn first_unusable<S: Copy + Sync>(
    numbers: &[S],
    is_usable: impl Fn(S) -> bool + Sync,
) -> Option<usize> {
    let chunks = Ranges::new(numbers.len(), CHECK_CHUNK);
    let first_in = |task: usize| {
        let mut chunk = chunks.get(task);
        // Usually all numbers are usable, and without an early exit this loop is vectorized.
        let all_usable = numbers[chunk.clone()].iter().fold(true, |all, &x| all & is_usable(x));
        if all_usable { None } else { chunk.find(|&i| !is_usable(numbers[i])) }
    };
    parallel::find_first(chunks.num(), &first_in)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_up_to_2_to_the_53_are_taken() {
        for usable in [0, 1, -1, MAX_EXACT, -MAX_EXACT] {
            assert!(usable.is_usable() && usable.to_coord() as i64 == usable, "{usable}");
        }
        for beyond in [MAX_EXACT + 1, -MAX_EXACT - 1, i64::MAX, i64::MIN] {
            assert!(!beyond.is_usable(), "{beyond}");
        }
        for usable in [i32::MIN, -1, 0, i32::MAX] {
            assert!(usable.is_usable() && usable.to_coord() == usable, "{usable}");
        }
    }

    #[test]
    fn copies_are_in_order() {
        for n in [0, 1, CHECK_CHUNK, 3 * CHECK_CHUNK + 1] {
            let numbers: Vec<i64> = (0..n as i64).map(|i| i * i - 7).collect();
            let coords = Scalar::coordinates(&numbers).unwrap();
            assert!(coords.len() == n && numbers.iter().zip(&*coords).all(|(&i, &x)| i as f64 == x));
        }
    }

    #[test]
    fn the_first_unusable_number() {
        let mut numbers = vec![5i64; 5 * CHECK_CHUNK];
        assert_eq!(first_unusable(&numbers, i64::is_usable), None);
        for position in [4 * CHECK_CHUNK + 9, 2 * CHECK_CHUNK, 11] {
            numbers[position] = i64::MIN;
            assert_eq!(first_unusable(&numbers, i64::is_usable), Some(position));
        }
        assert_eq!(first_unusable(&[0.0, f32::NAN], f32::is_usable), Some(1));
        assert_eq!(first_unusable(&[0.0, f64::NEG_INFINITY], f64::is_usable), Some(1));
    }
}

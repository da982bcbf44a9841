//! The coordinate types of an index, and the arithmetic that every backend shares.

use super::operator::{self, Operator};
use super::ranked::{RankBits, Ranked};
use super::words::{Bits128, Words};
use core::ops::{Add, Mul, Sub};
use cuda_std::float::{f32_from_key, f32_to_key, f64_from_key, f64_to_key};

/// The type of the coordinates that an index stores: `f32`, `f64` or `i32`.
///
/// All backends compute distances with exactly the operations of [`Distance`](Coord::Distance) in exactly the same order, so that they
/// agree bit for bit.
pub trait Coord:
    Words + PartialOrd + Send + Sync + cust_core::DeviceCopy + core::fmt::Debug + 'static
{
    /// The float that distances are computed in, also the type of radii and periods. It represents every coordinate exactly.
    type Distance: Float;
    /// The unsigned integer whose order is the order of the coordinates.
    type Key: RankBits<Ranked = Self::Ranked>;
    /// A key with an id. Its order is the order of points along an axis.
    type Ranked: Ranked<Rank = Self::Key>;
    /// The minimum operator, by IEEE 754 totalOrder for floats.
    type Min: Operator<Self>;
    /// The maximum operator, likewise.
    type Max: Operator<Self>;
    /// 0.
    const ZERO: Self;
    /// The bounds of no coordinates: no coordinate is above the first, and none is below the second.
    const EMPTY: [Self; 2];
    /// The name used in kernel names and error messages.
    const NAME: &'static str;

    /// Converts to the type of distances exactly.
    fn widen(self) -> Self::Distance;
    /// Returns 0.0 for -0.0, otherwise the coordinate.
    fn without_negative_zero(self) -> Self;
    /// Returns the integer of the same order. -0.0 and 0.0 have the same key. The coordinate must not be NaN.
    fn key(self) -> Self::Key;
    /// Returns the coordinate of a key.
    fn from_key(key: Self::Key) -> Self;
    /// Returns the smaller of two numbers.
    fn min(self, other: Self) -> Self;
    /// Returns the larger of two numbers.
    fn max(self, other: Self) -> Self;
    /// Returns true for every NaN.
    fn is_nan(self) -> bool;
    /// Converts to `f64` exactly.
    fn to_f64(self) -> f64;
}

/// A float, `f32` or `f64`: a coordinate that distances are computed in.
pub trait Float:
    Coord<Distance = Self> + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self>
{
    /// Positive infinity: greater than every distance.
    const INFINITY: Self;
    /// NaN: no distance bound accepts it.
    const NAN: Self;
    /// The largest magnitude that a coordinate may have, so that no squared distance in up to 8 dimensions overflows:
    /// 2^61 for `f32`, 2^509 for `f64`. (Two such `f32` coordinates are 2^62 apart, the square is 2^124, eight of them
    /// 2^127.)
    const LIMIT: Self;

    /// Returns false for NaN and infinities.
    fn is_finite(self) -> bool;
    /// Returns the magnitude.
    fn abs(self) -> Self;
    /// Converts from `f64`, rounding to nearest.
    fn from_f64(x: f64) -> Self;
}

macro_rules! floats {
    ($($t:ident: $key:ty, $ranked:ty, $limit:expr, $to_key:ident, $from_key:ident;)*) => { $(
        impl Coord for $t {
            type Distance = $t;
            type Key = $key;
            type Ranked = $ranked;
            type Min = operator::Min;
            type Max = operator::Max;
            const ZERO: Self = 0.0;
            const EMPTY: [Self; 2] = [$t::INFINITY, $t::NEG_INFINITY];
            const NAME: &'static str = stringify!($t);

            #[inline(always)]
            fn widen(self) -> $t {
                self
            }
            #[inline(always)]
            fn without_negative_zero(self) -> $t {
                // -0.0 + 0.0 is 0.0.
                self + 0.0
            }
            #[inline(always)]
            fn key(self) -> $key {
                $to_key(self.without_negative_zero())
            }
            #[inline(always)]
            fn from_key(key: $key) -> Self {
                $from_key(key)
            }
            #[inline(always)]
            fn min(self, other: Self) -> Self {
                $t::min(self, other)
            }
            #[inline(always)]
            fn max(self, other: Self) -> Self {
                $t::max(self, other)
            }
            #[inline(always)]
            fn is_nan(self) -> bool {
                $t::is_nan(self)
            }
            #[inline(always)]
            fn to_f64(self) -> f64 {
                self.into()
            }
        }

        impl Float for $t {
            const INFINITY: Self = $t::INFINITY;
            const NAN: Self = $t::NAN;
            const LIMIT: Self = $limit;

            #[inline(always)]
            fn is_finite(self) -> bool {
                $t::is_finite(self)
            }
            #[inline(always)]
            fn abs(self) -> Self {
                $t::abs(self)
            }
            #[inline(always)]
            fn from_f64(x: f64) -> Self {
                x as $t
            }
        }
    )* };
}
floats! {
    f32: u32, u64, (1u64 << 61) as f32, f32_to_key, f32_from_key;
    // 2^509, exactly.
    f64: u64, Bits128, f64::from_bits((509 + 1023) << 52), f64_to_key, f64_from_key;
}

impl Coord for i32 {
    type Distance = f64;
    type Key = u32;
    type Ranked = u64;
    type Min = operator::Min;
    type Max = operator::Max;
    const ZERO: Self = 0;
    const EMPTY: [Self; 2] = [i32::MAX, i32::MIN];
    const NAME: &'static str = "i32";

    #[inline(always)]
    fn widen(self) -> f64 {
        self.into()
    }
    #[inline(always)]
    fn without_negative_zero(self) -> i32 {
        self
    }
    #[inline(always)]
    fn key(self) -> u32 {
        self as u32 ^ 1 << 31
    }
    #[inline(always)]
    fn from_key(key: u32) -> Self {
        (key ^ 1 << 31) as i32
    }
    #[inline(always)]
    fn min(self, other: Self) -> Self {
        Ord::min(self, other)
    }
    #[inline(always)]
    fn max(self, other: Self) -> Self {
        Ord::max(self, other)
    }
    #[inline(always)]
    fn is_nan(self) -> bool {
        false
    }
    #[inline(always)]
    fn to_f64(self) -> f64 {
        self.into()
    }
}

/// Returns the squared Euclidean distance, (dx*dx + dy*dy) + …, in axis order and without contraction.
#[inline(always)]
pub fn dist2<C: Float>(dims: usize, a: impl Fn(usize) -> C, b: impl Fn(usize) -> C) -> C {
    let mut sum = C::ZERO;
    for axis in 0..dims {
        let d = a(axis) - b(axis);
        // 0.0 + d*d is d*d exactly, so starting from zero does not change the result.
        sum = sum + d * d;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_integers_have_their_order() {
        let numbers = [i32::MIN, i32::MIN + 1, -1, 0, 1, i32::MAX];
        assert!(numbers.is_sorted_by_key(|number| number.key()));
        assert!(numbers.into_iter().all(|number| i32::from_key(number.key()) == number));
    }
}

//! The coordinate types of an index, and the arithmetic that every backend shares.

use super::operator::{self, Operator};
use super::ranked::{RankBits, Ranked};
use super::words::{Bits128, Words};
use core::ops::{Add, Mul, Sub};
use cuda_std::float::{f32_from_key, f32_to_key, f64_from_key, f64_to_key};

/// A coordinate type: `f32` or `f64`.
///
/// All backends compute distances with exactly these operations in exactly this order, so that they agree bit for bit.
pub trait Coord:
    Words
    + PartialOrd
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Send
    + Sync
    + cust_core::DeviceCopy
    + core::fmt::Debug
    + 'static
{
    /// The unsigned integer whose order is the order of the coordinates.
    type Key: RankBits<Ranked = Self::Ranked>;
    /// A key with an id. Its order is the order of points along an axis.
    type Ranked: Ranked<Rank = Self::Key>;
    /// The minimum operator; it ignores NaN.
    type Min: Operator<Self>;
    /// The maximum operator; it ignores NaN.
    type Max: Operator<Self>;
    /// 0.
    const ZERO: Self;
    /// Positive infinity: greater than every distance.
    const INFINITY: Self;
    /// NaN: no distance bound accepts it.
    const NAN: Self;
    /// The largest magnitude that a coordinate may have, so that no squared distance in up to 8 dimensions overflows:
    /// 2^61 for `f32`, 2^509 for `f64`. (Two such `f32` coordinates are 2^62 apart, the square is 2^124, eight of them
    /// 2^127.)
    const LIMIT: Self;
    /// The name used in kernel names and error messages.
    const NAME: &'static str;

    /// Returns the integer of the same order. -0.0 and 0.0 have the same key. The coordinate must not be NaN.
    fn key(self) -> Self::Key;
    /// Returns the coordinate of a key.
    fn from_key(key: Self::Key) -> Self;
    /// Returns the smaller of two numbers.
    fn min(self, other: Self) -> Self;
    /// Returns the larger of two numbers.
    fn max(self, other: Self) -> Self;
    /// Returns false for NaN and infinities.
    fn is_finite(self) -> bool;
    /// Returns true for every NaN.
    fn is_nan(self) -> bool;
    /// Returns the magnitude.
    fn abs(self) -> Self;
    /// Converts to `f64` exactly.
    fn to_f64(self) -> f64;
    /// Converts from `f64`, rounding to nearest.
    fn from_f64(x: f64) -> Self;
}

macro_rules! coords {
    ($($t:ident: $key:ty, $ranked:ty, $limit:expr, $to_key:ident, $from_key:ident;)*) => { $(
        impl Coord for $t {
            type Key = $key;
            type Ranked = $ranked;
            type Min = operator::Min;
            type Max = operator::Max;
            const ZERO: Self = 0.0;
            const INFINITY: Self = $t::INFINITY;
            const NAN: Self = $t::NAN;
            const LIMIT: Self = $limit;
            const NAME: &'static str = stringify!($t);

            #[inline(always)]
            fn key(self) -> $key {
                // -0.0 + 0.0 is 0.0, so that equal coordinates have equal keys.
                $to_key(self + 0.0)
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
            fn is_finite(self) -> bool {
                $t::is_finite(self)
            }
            #[inline(always)]
            fn is_nan(self) -> bool {
                $t::is_nan(self)
            }
            #[inline(always)]
            fn abs(self) -> Self {
                $t::abs(self)
            }
            #[inline(always)]
            fn to_f64(self) -> f64 {
                self.into()
            }
            #[inline(always)]
            fn from_f64(x: f64) -> Self {
                x as $t
            }
        }
    )* };
}
coords! {
    f32: u32, u64, (1u64 << 61) as f32, f32_to_key, f32_from_key;
    // 2^509, exactly.
    f64: u64, Bits128, f64::from_bits((509 + 1023) << 52), f64_to_key, f64_from_key;
}

/// Returns the squared Euclidean distance, (dx*dx + dy*dy) + …, in axis order and without contraction.
#[inline(always)]
pub fn dist2<C: Coord>(dims: usize, a: impl Fn(usize) -> C, b: impl Fn(usize) -> C) -> C {
    let mut sum = C::ZERO;
    for axis in 0..dims {
        let d = a(axis) - b(axis);
        // 0.0 + d*d is d*d exactly, so starting from zero does not change the result.
        sum = sum + d * d;
    }
    sum
}

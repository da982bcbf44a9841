//! Floats: order-preserving integer keys, and roots.

/// The square root, rounded to the nearest as IEEE 754 says: the same bits on every target.
#[inline(always)]
pub fn sqrt(x: f32) -> f32 {
    crate::sys::sqrt(x)
}

/// The square root of an `f64`, rounded as [`sqrt`] rounds.
#[inline(always)]
pub fn sqrt_f64(x: f64) -> f64 {
    crate::sys::sqrt_f64(x)
}

/// `a * b + c`, rounded once on a GPU and twice on a CPU: for results whose last bit does not matter.
#[inline(always)]
pub fn multiply_add(a: f32, b: f32, c: f32) -> f32 {
    crate::sys::multiply_add(a, b, c)
}

/// The inverse, to within one unit in the last place of a normal number on a GPU, rounded to the nearest on a CPU. A GPU takes subnormal numbers,
/// and results that are subnormal, for 0.
#[inline(always)]
pub fn approximate_inverse(x: f32) -> f32 {
    crate::sys::approximate_inverse(x)
}

/// Maps an `f32` to a `u32` of the same order (IEEE 754 totalOrder: -NaN < -inf < … < -0.0 < 0.0 < … < inf < NaN).
#[inline(always)]
pub const fn f32_to_key(x: f32) -> u32 {
    let bits = x.to_bits();
    // Negative: flip all bits. Positive: flip the sign. The arithmetic shift makes the mask without a branch.
    bits ^ (((bits as i32 >> 31) as u32) | 0x8000_0000)
}

/// The inverse of [`f32_to_key`].
#[inline(always)]
pub const fn f32_from_key(key: u32) -> f32 {
    f32::from_bits(key ^ (((!key as i32 >> 31) as u32) | 0x8000_0000))
}

/// Maps an `f64` to a `u64` of the same order, see [`f32_to_key`].
#[inline(always)]
pub const fn f64_to_key(x: f64) -> u64 {
    let bits = x.to_bits();
    bits ^ (((bits as i64 >> 63) as u64) | 0x8000_0000_0000_0000)
}

/// The inverse of [`f64_to_key`].
#[inline(always)]
pub const fn f64_from_key(key: u64) -> f64 {
    f64::from_bits(key ^ (((!key as i64 >> 63) as u64) | 0x8000_0000_0000_0000))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots() {
        assert_eq!([0.0, 1.0, 3.0, 1e-40].map(sqrt), [0.0, 1.0, 1.732_050_8, 9.999_973e-21]);
        assert!(sqrt(-1.0).is_nan());
        assert_eq!(
            [0.0, 2.0, 1e-320].map(sqrt_f64),
            [0.0, std::f64::consts::SQRT_2, 9.999_944_335_758_49e-161]
        );
        assert!(sqrt_f64(-1.0).is_nan());
    }

    #[test]
    fn keys_keep_order_and_come_back() {
        let xs = [f32::NEG_INFINITY, f32::MIN, -1.5, -1e-45, -0.0, 0.0, 1e-45, 1.0, f32::MAX, f32::INFINITY];
        for pair in xs.windows(2) {
            assert!(f32_to_key(pair[0]) < f32_to_key(pair[1]));
            assert!(f64_to_key(pair[0].into()) < f64_to_key(pair[1].into()));
        }
        for x in xs {
            assert_eq!(f32_from_key(f32_to_key(x)).to_bits(), x.to_bits());
            assert_eq!(f64_from_key(f64_to_key(x.into())).to_bits(), f64::from(x).to_bits());
        }
    }
}

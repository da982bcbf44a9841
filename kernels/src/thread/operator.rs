//! Binary operators of reductions and scans, as types.

use super::words::{MAX_WORDS, Words, join, split};
use crate::plain::plain;
use cuda_std::float::{f32_to_key, f64_to_key};
use cuda_std::shared::SharedElement;

/// An associative operator on `T`. Operands keep their order, so it need not be commutative.
pub trait Operator<T: Words>: 'static {
    /// The identity element, on either side.
    const IDENTITY: T;
    /// True if the order of operands does not matter. Reductions then keep one running sum per lane.
    const COMMUTATIVE: bool;
    /// True if the operator is associative to the bit. Sums of floats are not: their results depend on the association.
    const EXACT: bool;

    /// Combines `a` and `b`, in this order.
    fn combine(a: T, b: T) -> T;
}

/// The sum. Integers wrap modulo 2^32 or 2^64. Sums of floats are not exact.
#[derive(Clone, Copy, Debug)]
pub struct Sum;

/// The minimum. Floats compare by IEEE 754 totalOrder: -0.0 is less than 0.0, a positive NaN greater than everything
/// else.
#[derive(Clone, Copy, Debug)]
pub struct Min;

/// The maximum. Floats compare as in [`Min`].
#[derive(Clone, Copy, Debug)]
pub struct Max;

/// Composition of [`Affine`] maps, the left one first; not commutative. Its scan solves linear recurrences.
#[derive(Clone, Copy, Debug)]
pub struct Compose;

/// The map x -> scale x + offset, modulo 2^64.
#[repr(C, align(16))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Affine {
    /// The factor.
    pub scale: u64,
    /// The summand.
    pub offset: u64,
}

impl Affine {
    /// Applies the map to `x`.
    pub fn apply(self, x: u64) -> u64 {
        self.scale.wrapping_mul(x).wrapping_add(self.offset)
    }
}

plain! { Affine { u64, u64 } }
impl SharedElement for Affine {}
// SAFETY: four words.
unsafe impl Words for Affine {
    const WORDS: usize = 4;
    const ZEROS: Self = Self { scale: 0, offset: 0 };

    #[inline(always)]
    fn to_words(self) -> [u32; MAX_WORDS] {
        let (scale, offset) = (split(self.scale), split(self.offset));
        [scale[0], scale[1], offset[0], offset[1]]
    }
    #[inline(always)]
    fn from_words([a, b, c, d]: [u32; MAX_WORDS]) -> Self {
        Self { scale: join([a, b, 0, 0]), offset: join([c, d, 0, 0]) }
    }
}

/// A count of items below 2^62. Look-back publishes it in one word.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count(pub u64);

plain! { Count { u64 } }
impl SharedElement for Count {}
// SAFETY: two words; 62 bits are published in one 64-bit word.
unsafe impl Words for Count {
    const WORDS: usize = 2;
    const ZEROS: Self = Self(0);
    const PUBLISHED_WORDS: usize = 1;

    #[inline(always)]
    fn to_words(self) -> [u32; MAX_WORDS] {
        split(self.0)
    }
    #[inline(always)]
    fn from_words(words: [u32; MAX_WORDS]) -> Self {
        Self(join(words))
    }
    #[inline(always)]
    fn to_published(self, _: usize) -> u64 {
        self.0 << 2
    }
    #[inline(always)]
    fn from_published(words: [u64; MAX_WORDS]) -> Self {
        Self(words[0] >> 2)
    }
}

impl Operator<Count> for Sum {
    const IDENTITY: Count = Count(0);
    const COMMUTATIVE: bool = true;
    const EXACT: bool = true;

    #[inline(always)]
    fn combine(a: Count, b: Count) -> Count {
        Count(a.0.wrapping_add(b.0))
    }
}

/// A pair of counts, each below 2^62, that are summed side by side.
#[repr(C, align(16))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts(pub u64, pub u64);

plain! { Counts { u64, u64 } }
impl SharedElement for Counts {}
// SAFETY: four words; 62 bits of each count are published in one 64-bit word.
unsafe impl Words for Counts {
    const WORDS: usize = 4;
    const ZEROS: Self = Self(0, 0);
    const PUBLISHED_WORDS: usize = 2;

    #[inline(always)]
    fn to_words(self) -> [u32; MAX_WORDS] {
        let (first, second) = (split(self.0), split(self.1));
        [first[0], first[1], second[0], second[1]]
    }
    #[inline(always)]
    fn from_words([a, b, c, d]: [u32; MAX_WORDS]) -> Self {
        Self(join([a, b, 0, 0]), join([c, d, 0, 0]))
    }
    #[inline(always)]
    fn to_published(self, i: usize) -> u64 {
        (if i == 0 { self.0 } else { self.1 }) << 2
    }
    #[inline(always)]
    fn from_published(words: [u64; MAX_WORDS]) -> Self {
        Self(words[0] >> 2, words[1] >> 2)
    }
}

impl Operator<Counts> for Sum {
    const IDENTITY: Counts = Counts(0, 0);
    const COMMUTATIVE: bool = true;
    const EXACT: bool = true;

    #[inline(always)]
    fn combine(a: Counts, b: Counts) -> Counts {
        Counts(a.0.wrapping_add(b.0), a.1.wrapping_add(b.1))
    }
}

impl Operator<Affine> for Compose {
    const IDENTITY: Affine = Affine { scale: 1, offset: 0 };
    const COMMUTATIVE: bool = false;
    const EXACT: bool = true;

    #[inline(always)]
    fn combine(a: Affine, b: Affine) -> Affine {
        Affine { scale: b.scale.wrapping_mul(a.scale), offset: b.apply(a.offset) }
    }
}

macro_rules! operators {
    ($($t:ty: $zero:expr, $add:expr, $exact:expr, $least:expr, $greatest:expr, $key:expr;)*) => { $(
        impl Operator<$t> for Sum {
            const IDENTITY: $t = $zero;
            const COMMUTATIVE: bool = true;
            const EXACT: bool = $exact;

            #[inline(always)]
            fn combine(a: $t, b: $t) -> $t {
                $add(a, b)
            }
        }
        impl Operator<$t> for Min {
            const IDENTITY: $t = $greatest;
            const COMMUTATIVE: bool = true;
            const EXACT: bool = true;

            #[inline(always)]
            fn combine(a: $t, b: $t) -> $t {
                if $key(b) < $key(a) { b } else { a }
            }
        }
        impl Operator<$t> for Max {
            const IDENTITY: $t = $least;
            const COMMUTATIVE: bool = true;
            const EXACT: bool = true;

            #[inline(always)]
            fn combine(a: $t, b: $t) -> $t {
                if $key(a) < $key(b) { b } else { a }
            }
        }
    )* };
}
// The identities of `Min` and `Max` for floats are NaNs, the extremes of the total order.
operators! {
    u32: 0, u32::wrapping_add, true, u32::MIN, u32::MAX, |x| x;
    i32: 0, i32::wrapping_add, true, i32::MIN, i32::MAX, |x| x;
    u64: 0, u64::wrapping_add, true, u64::MIN, u64::MAX, |x| x;
    i64: 0, i64::wrapping_add, true, i64::MIN, i64::MAX, |x| x;
    f32: 0.0, |a, b| a + b, false, f32::from_bits(u32::MAX), f32::from_bits(u32::MAX >> 1), f32_to_key;
    f64: 0.0, |a, b| a + b, false, f64::from_bits(u64::MAX), f64::from_bits(u64::MAX >> 1), f64_to_key;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn composing_is_applying_one_after_the_other() {
        let (a, b) = (Affine { scale: 3, offset: u64::MAX }, Affine { scale: u64::MAX / 3, offset: 8 });
        assert_eq!(Compose::combine(a, b).apply(11), b.apply(a.apply(11)));
        assert_eq!(Affine::from_words(a.to_words()), a);
    }

    #[test]
    fn floats_are_ordered_totally() {
        let nan = f32::NAN;
        assert_eq!(<Min as Operator<f32>>::combine(0.0, -0.0).to_bits(), (-0.0f32).to_bits());
        assert_eq!(<Min as Operator<f32>>::combine(nan, 1.0), 1.0);
        assert!(<Max as Operator<f32>>::combine(1.0, nan).is_nan());
        assert_eq!(<Max as Operator<f32>>::combine(f32::NEG_INFINITY, Max::IDENTITY), f32::NEG_INFINITY);
    }
}

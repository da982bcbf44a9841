//! Keys as ranks, unsigned numbers of which the smallest is the best key, and ranks with ids, of which no two are equal.

use super::operator::Operator;
use super::words::{Bits128, Words};
use core::ops::{BitAnd, BitXor};

/// Bits of a digit of [`Ranked`].
const DIGIT_BITS: u32 = 8;

/// A key that has ranks: `u32`, `i32`, `f32`, `u64`, `i64`, `f64`.
pub trait RankKey: Words {
    /// The integer of the same size.
    type Bits: RankBits;
    /// How keys are read, without [`RankOrder::LARGEST`].
    const ORDER: RankOrder;
}

macro_rules! rank_keys {
    ($($t:ty: $bits:ty, $order:expr;)*) => { $(
        impl RankKey for $t {
            type Bits = $bits;
            const ORDER: RankOrder = $order;
        }
    )* };
}
rank_keys! {
    u32: u32, RankOrder(0);
    i32: u32, RankOrder::SIGNED;
    f32: u32, RankOrder::FLOAT;
    u64: u64, RankOrder(0);
    i64: u64, RankOrder::SIGNED;
    f64: u64, RankOrder::FLOAT;
}

/// How keys are read, and which of them are best: a set of rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RankOrder(u32);

impl RankOrder {
    /// Keys are signed integers.
    pub const SIGNED: Self = Self(1);
    /// Keys are floats, in IEEE 754's total order; but NaNs are never better than numbers.
    pub const FLOAT: Self = Self(2);
    /// The largest keys are the best.
    pub const LARGEST: Self = Self(4);

    /// The rules of both.
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// As a kernel's argument.
    pub const fn to_bits(self) -> u32 {
        self.0
    }

    /// From a kernel's argument.
    #[inline(always)]
    pub const fn from_bits(bits: u32) -> Self {
        Self(bits)
    }

    #[inline(always)]
    const fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

/// An unsigned integer: a key's bits, or its rank.
pub trait RankBits: Words + Ord + BitXor<Output = Self> + BitAnd<Output = Self> {
    /// The rank with an id.
    type Ranked: Ranked<Rank = Self>;
    /// No bit.
    const ZERO: Self;
    /// All bits.
    const MAX: Self;
    /// The highest bit.
    const SIGN: Self;
    /// The bits of positive infinity.
    const INFINITY: Self;

    /// All bits if the highest is set, else none.
    fn sign_mask(self) -> Self;
    /// The sum, modulo the number of values.
    fn plus(self, other: Self) -> Self;
    /// The difference, modulo the number of values.
    fn minus(self, other: Self) -> Self;
    /// The bits at the upper end of 64.
    fn to_high_bits(self) -> u64;
    /// From the bits at the upper end of 64.
    fn from_high_bits(bits: u64) -> Self;
}

macro_rules! rank_bits {
    ($($t:ty: $signed:ty, $ranked:ty, $infinity:expr;)*) => { $(
        impl RankBits for $t {
            type Ranked = $ranked;
            const ZERO: Self = 0;
            const MAX: Self = <$t>::MAX;
            const SIGN: Self = 1 << (<$t>::BITS - 1);
            const INFINITY: Self = $infinity.to_bits();

            #[inline(always)]
            fn sign_mask(self) -> Self {
                (self as $signed >> (<$t>::BITS - 1)) as $t
            }
            #[inline(always)]
            fn plus(self, other: Self) -> Self {
                self.wrapping_add(other)
            }
            #[inline(always)]
            fn minus(self, other: Self) -> Self {
                self.wrapping_sub(other)
            }
            #[inline(always)]
            fn to_high_bits(self) -> u64 {
                u64::from(self) << (64 - <$t>::BITS)
            }
            #[inline(always)]
            fn from_high_bits(bits: u64) -> Self {
                (bits >> (64 - <$t>::BITS)) as $t
            }
        }
    )* };
}
rank_bits! {
    u32: i32, u64, f32::INFINITY;
    u64: i64, Bits128, f64::INFINITY;
}

/// Maps a key's bits to its rank and back, one to one.
#[derive(Clone, Copy, Debug)]
pub struct KeyRanks<B> {
    /// What is flipped in keys with the sign bit set.
    negative: B,
    /// What is flipped in every key.
    flip: B,
    /// What the best number becomes by that. Ranks start there and wrap around, so that the NaNs beyond it come last.
    first: B,
}

impl<B: RankBits> KeyRanks<B> {
    /// The ranks of an order.
    #[inline(always)]
    pub fn new(order: RankOrder) -> Self {
        let largest = order.has(RankOrder::LARGEST);
        let is_float = order.has(RankOrder::FLOAT);
        let sign = if is_float || order.has(RankOrder::SIGNED) { B::SIGN } else { B::ZERO };
        let mut ranks = Self {
            negative: if is_float { B::MAX ^ B::SIGN } else { B::ZERO },
            flip: sign ^ if largest { B::MAX } else { B::ZERO },
            first: B::ZERO,
        };
        if is_float {
            ranks.first = ranks.rank(if largest { B::INFINITY } else { B::INFINITY ^ B::SIGN });
        }
        ranks
    }

    /// The rank of a key.
    #[inline(always)]
    pub fn rank(&self, bits: B) -> B {
        (bits ^ (bits.sign_mask() & self.negative) ^ self.flip).minus(self.first)
    }

    /// The key of a rank.
    #[inline(always)]
    pub fn bits(&self, rank: B) -> B {
        // Nothing of `negative` is the sign bit, which therefore says here too what was flipped.
        let bits = rank.plus(self.first) ^ self.flip;
        bits ^ (bits.sign_mask() & self.negative)
    }
}

/// A rank and an id, ordered by both: `u64` with a rank of 32 bits above the id, [`Bits128`] with one of 64 before it.
pub trait Ranked: Words {
    /// Type of the rank.
    type Rank: RankBits;
    /// Number of digits of 8 bits.
    const DIGITS: u32;
    /// Nothing comes after it.
    const LAST: Self;

    /// From its parts.
    fn new(rank: Self::Rank, id: u32) -> Self;
    /// The rank.
    fn rank(self) -> Self::Rank;
    /// The id.
    fn id(self) -> u32;
    /// True if it comes before another one.
    fn is_before(self, other: Self) -> bool;
    /// Digit `i`, of which 0 is the most significant.
    fn digit(self, i: u32) -> u32;
    /// The same with digit `i`, which was 0, set.
    fn with_digit(self, i: u32, digit: u32) -> Self;
    /// True if the digits before digit `i` are those of the other.
    fn has_digits_of(self, other: Self, i: u32) -> bool;
}

/// Digit `i` of 8 in a word, the most significant first.
#[inline(always)]
const fn shift(i: u32) -> u32 {
    (7 - i % 8) * DIGIT_BITS
}

/// True if two words are the same in their first `i` digits, of up to 8.
#[inline(always)]
const fn agree(a: u64, b: u64, i: u32) -> bool {
    // In two steps, since no shift may be by 64.
    let half = (8 - i) * DIGIT_BITS / 2;
    (a ^ b) >> half >> half == 0
}

impl Ranked for u64 {
    type Rank = u32;
    const DIGITS: u32 = 8;
    const LAST: Self = u64::MAX;

    #[inline(always)]
    fn new(rank: u32, id: u32) -> Self {
        u64::from(rank) << 32 | u64::from(id)
    }
    #[inline(always)]
    fn rank(self) -> u32 {
        (self >> 32) as u32
    }
    #[inline(always)]
    fn id(self) -> u32 {
        self as u32
    }
    #[inline(always)]
    fn is_before(self, other: Self) -> bool {
        self < other
    }
    #[inline(always)]
    fn digit(self, i: u32) -> u32 {
        (self >> shift(i)) as u32 & 0xFF
    }
    #[inline(always)]
    fn with_digit(self, i: u32, digit: u32) -> Self {
        self | u64::from(digit) << shift(i)
    }
    #[inline(always)]
    fn has_digits_of(self, other: Self, i: u32) -> bool {
        agree(self, other, i)
    }
}

/// The second word has the id in its upper half, so that digits are counted as in one number.
impl Ranked for Bits128 {
    type Rank = u64;
    const DIGITS: u32 = 12;
    const LAST: Self = Bits128(u64::MAX, u64::MAX);

    #[inline(always)]
    fn new(rank: u64, id: u32) -> Self {
        Bits128(rank, u64::from(id) << 32)
    }
    #[inline(always)]
    fn rank(self) -> u64 {
        self.0
    }
    #[inline(always)]
    fn id(self) -> u32 {
        (self.1 >> 32) as u32
    }
    #[inline(always)]
    fn is_before(self, other: Self) -> bool {
        (self.0 < other.0) | ((self.0 == other.0) & (self.1 < other.1))
    }
    #[inline(always)]
    fn digit(self, i: u32) -> u32 {
        (if i < 8 { self.0 } else { self.1 } >> shift(i)) as u32 & 0xFF
    }
    #[inline(always)]
    fn with_digit(self, i: u32, digit: u32) -> Self {
        let digit = u64::from(digit) << shift(i);
        if i < 8 { Bits128(self.0 | digit, self.1) } else { Bits128(self.0, self.1 | digit) }
    }
    #[inline(always)]
    fn has_digits_of(self, other: Self, i: u32) -> bool {
        let first = if i < 8 { i } else { 8 };
        agree(self.0, other.0, first) & agree(self.1, other.1, i - first)
    }
}

/// The one that comes first.
#[derive(Clone, Copy, Debug)]
pub struct First;

impl<R: Ranked> Operator<R> for First {
    const IDENTITY: R = R::LAST;
    const COMMUTATIVE: bool = true;
    const EXACT: bool = true;

    #[inline(always)]
    fn combine(a: R, b: R) -> R {
        if b.is_before(a) { b } else { a }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_of_floats_begin_with_the_best_number_and_end_with_nans() {
        let keys =
            [f32::NEG_INFINITY, f32::MIN, -1.0, -1e-45, -0.0, 0.0, 1e-45, 1.0, f32::MAX, f32::INFINITY];
        let nans = [f32::NAN, -f32::NAN, f32::from_bits(0x7F80_0001), f32::from_bits(0xFF80_0001)];
        let smallest = KeyRanks::<u32>::new(RankOrder::FLOAT);
        let largest = KeyRanks::<u32>::new(RankOrder::FLOAT.with(RankOrder::LARGEST));
        assert_eq!(smallest.rank(f32::NEG_INFINITY.to_bits()), 0);
        assert_eq!(largest.rank(f32::INFINITY.to_bits()), 0);
        for pair in keys.windows(2) {
            let [a, b] = [pair[0].to_bits(), pair[1].to_bits()];
            assert!(smallest.rank(a) < smallest.rank(b) && largest.rank(a) > largest.rank(b), "{pair:?}");
        }
        for ranks in [smallest, largest] {
            let last = keys.iter().map(|x| ranks.rank(x.to_bits())).max().unwrap();
            assert!(nans.iter().all(|x| ranks.rank(x.to_bits()) > last));
            assert!(keys.iter().chain(&nans).all(|x| ranks.bits(ranks.rank(x.to_bits())) == x.to_bits()));
            assert!(f32::from_bits(ranks.bits(u32::MAX)).is_nan());
        }
    }

    #[test]
    fn ranks_of_integers() {
        let signed = KeyRanks::<u64>::new(RankOrder::SIGNED);
        assert_eq!(signed.rank(i64::MIN as u64), 0);
        assert_eq!(signed.rank(-1i64 as u64) + 1, signed.rank(0));
        let largest = KeyRanks::<u32>::new(RankOrder::LARGEST);
        assert_eq!([largest.rank(u32::MAX), largest.rank(0)], [0, u32::MAX]);
        assert_eq!(largest.bits(largest.rank(77)), 77);
    }

    #[test]
    fn digits_put_together_again() {
        fn check<R: Ranked + PartialEq + core::fmt::Debug>(ranked: R, zero: R) {
            let mut copy = zero;
            for i in 0..R::DIGITS {
                assert!(copy.has_digits_of(ranked, i));
                copy = copy.with_digit(i, ranked.digit(i));
            }
            assert!(copy.has_digits_of(ranked, R::DIGITS));
            assert_eq!(copy, ranked);
        }
        check(u64::new(0x1234_5678, 0x9ABC_DEF0), 0);
        check(Bits128::new(0x1234_5678_9ABC_DEF0, 0x0102_0304), Bits128(0, 0));
        assert!(
            Bits128::new(5, 1).is_before(Bits128::new(5, 2))
                && Bits128::new(5, 2).is_before(Bits128::new(6, 0))
        );
    }
}

//! Ranks of keys (unsigned numbers, the smallest for the best key), and pairs of a rank and an id, which are all
//! distinct.

use super::operator::Operator;
pub use super::radix_key::KeyOrder;
use super::radix_key::{Fold, RadixKey, SortKey};
use super::words::{Bits128, Words};
use cuda_std::atomic::AtomicValue;

/// Bits of a digit of [`Ranked`].
const DIGIT_BITS: u32 = 8;

/// A key that top-k accepts: `u32`, `i32`, `f32`, `u64`, `i64`, `f64`.
pub trait RankKey: SortKey<Bits: RankBits> {}
impl<K: SortKey<Bits: RankBits>> RankKey for K {}

/// An unsigned integer: a key's bits, or its rank.
pub trait RankBits: RadixKey + AtomicValue {
    /// A pair of this rank and an id.
    type Ranked: Ranked<Rank = Self>;
    /// The bits of positive infinity.
    const INFINITY: Self;

    /// Wrapping addition.
    fn plus(self, other: Self) -> Self;
    /// Wrapping subtraction.
    fn minus(self, other: Self) -> Self;
    /// Returns the bits, left-aligned in 64.
    fn to_high_bits(self) -> u64;
    /// The inverse of [`to_high_bits`](Self::to_high_bits).
    fn from_high_bits(bits: u64) -> Self;
}

macro_rules! rank_bits {
    ($($t:ty: $ranked:ty, $infinity:expr;)*) => { $(
        impl RankBits for $t {
            type Ranked = $ranked;
            const INFINITY: Self = $infinity.to_bits();

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
    u32: u64, f32::INFINITY;
    u64: Bits128, f64::INFINITY;
}

/// Maps a key's bits to its rank and back, one to one. NaNs rank behind all numbers.
#[derive(Clone, Copy, Debug)]
pub struct KeyRanks<B> {
    fold: Fold,
    /// The folded bits of the best number. Ranks start there and wrap around, so that the NaNs before it come last.
    first: B,
}

impl<B: RankBits> KeyRanks<B> {
    /// Creates the mapping of an order; the first key of the order is the best.
    #[inline(always)]
    pub fn new(order: KeyOrder) -> Self {
        let mut ranks = Self { fold: Fold::of(order, B::BITS), first: B::ZERO };
        if order.has(KeyOrder::FLOAT) {
            let sign = if order.has(KeyOrder::DESCENDING) { B::ZERO } else { B::SIGN };
            ranks.first = ranks.rank(B::INFINITY ^ sign);
        }
        ranks
    }

    /// Returns the rank of a key.
    #[inline(always)]
    pub fn rank(&self, bits: B) -> B {
        self.fold.fold(bits).minus(self.first)
    }

    /// Returns the key of a rank.
    #[inline(always)]
    pub fn bits(&self, rank: B) -> B {
        self.fold.unfold(rank.plus(self.first))
    }
}

/// A rank and an id, ordered by both: `u64` holds a 32-bit rank above the id, [`Bits128`] a 64-bit rank before it.
pub trait Ranked: Words {
    /// The type of the rank.
    type Rank: RankBits;
    /// The number of 8-bit digits.
    const DIGITS: u32;
    /// The last value of the order.
    const LAST: Self;

    /// Packs a rank and an id.
    fn new(rank: Self::Rank, id: u32) -> Self;
    /// Returns the rank.
    fn rank(self) -> Self::Rank;
    /// Returns the id.
    fn id(self) -> u32;
    /// Returns true if `self` comes before `other`.
    fn is_before(self, other: Self) -> bool;
    /// Returns digit `i`; digit 0 is the most significant.
    fn digit(self, i: u32) -> u32;
    /// Returns `self` with digit `i`, which was 0, set.
    fn with_digit(self, i: u32, digit: u32) -> Self;
    /// Returns true if both have the same digits before digit `i`.
    fn has_prefix_of(self, other: Self, i: u32) -> bool;
}

/// Returns the shift of digit `i` of 8 in a word, the most significant first.
#[inline(always)]
const fn shift(i: u32) -> u32 {
    (7 - i % 8) * DIGIT_BITS
}

/// Returns true if two words have the same first `i` digits; `i` is at most 8.
#[inline(always)]
const fn same_leading_digits(a: u64, b: u64, i: u32) -> bool {
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
    fn has_prefix_of(self, other: Self, i: u32) -> bool {
        same_leading_digits(self, other, i)
    }
}

/// The id is in the upper half of the second word, so that its digits follow those of the rank.
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
    fn has_prefix_of(self, other: Self, i: u32) -> bool {
        let first = if i < 8 { i } else { 8 };
        same_leading_digits(self.0, other.0, first) & same_leading_digits(self.1, other.1, i - first)
    }
}

/// The operator that keeps the first of two items.
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
        let smallest = KeyRanks::<u32>::new(KeyOrder::FLOAT);
        let largest = KeyRanks::<u32>::new(KeyOrder::FLOAT.with(KeyOrder::DESCENDING));
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
        let signed = KeyRanks::<u64>::new(KeyOrder::SIGNED);
        assert_eq!(signed.rank(i64::MIN as u64), 0);
        assert_eq!(signed.rank(-1i64 as u64) + 1, signed.rank(0));
        let largest = KeyRanks::<u32>::new(KeyOrder::DESCENDING);
        assert_eq!([largest.rank(u32::MAX), largest.rank(0)], [0, u32::MAX]);
        assert_eq!(largest.bits(largest.rank(77)), 77);
    }

    #[test]
    fn digits_reassemble_the_item() {
        fn check<R: Ranked + PartialEq + core::fmt::Debug>(ranked: R, zero: R) {
            let mut copy = zero;
            for i in 0..R::DIGITS {
                assert!(copy.has_prefix_of(ranked, i));
                copy = copy.with_digit(i, ranked.digit(i));
            }
            assert!(copy.has_prefix_of(ranked, R::DIGITS));
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

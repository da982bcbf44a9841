//! Keys of the radix sort: how they become unsigned integers of the same order, and the digits of those.

use super::words::{Words, computed};
use crate::policy::HISTOGRAM_COPIES;
use core::ops::{BitAnd, BitXor};
use cuda_std::shared::{SharedArray, SharedElement};
use cuda_std::warp::WarpShuffleValue;

/// Bits of a digit of the radix sort.
pub const RADIX_BITS: u32 = 8;

/// Number of values of a digit.
pub const RADIX: usize = 1 << RADIX_BITS;

/// An unsigned integer that the radix sort takes apart: `u32` or `u64`.
pub trait RadixKey:
    Words
    + Ord
    + Send
    + Sync
    + BitAnd<Output = Self>
    + BitXor<Output = Self>
    + Into<u64>
    + SharedElement
    + WarpShuffleValue
    + cust_core::DeviceCopy
    + 'static
{
    /// Number of bits.
    const BITS: u32;
    /// 0.
    const ZERO: Self;
    /// The largest key.
    const MAX: Self;
    /// The highest bit.
    const SIGN: Self;
    /// Shared memory for counters: of each digit a row a value, with [`HISTOGRAM_COPIES`] counters.
    type Counters: SharedArray<Element = u32>;

    /// The lowest 32 bits behind bit `shift`.
    fn low_bits(self, shift: u32) -> u32;
    /// The bits from `begin` up to `end`, at least one.
    fn bits(self, begin: u32, end: u32) -> Self;
    /// All bits set if the highest one is, none if not.
    fn sign_mask(self) -> Self;
}

macro_rules! radix_keys {
    ($($key:ty, $signed:ty;)*) => { $(
        impl RadixKey for $key {
            const BITS: u32 = <$key>::BITS;
            const ZERO: Self = 0;
            const MAX: Self = <$key>::MAX;
            const SIGN: Self = 1 << (<$key>::BITS - 1);
            type Counters = [[[u32; HISTOGRAM_COPIES]; RADIX]; size_of::<$key>()];

            #[inline(always)]
            fn low_bits(self, shift: u32) -> u32 {
                (self >> shift) as u32
            }
            #[inline(always)]
            fn bits(self, begin: u32, end: u32) -> Self {
                self << (Self::BITS - end) >> (Self::BITS - end + begin)
            }
            #[inline(always)]
            fn sign_mask(self) -> Self {
                (self as $signed >> (<$key>::BITS - 1)) as $key
            }
        }
    )* };
}
radix_keys! {
    u32, i32;
    u64, i64;
}

/// A type that the radix sort orders: `u32`, `u64`, `i32`, `i64`, `f32` and `f64`. Floats go by IEEE 754's total order:
/// -NaN, -infinity, …, -0.0, 0.0, …, infinity, NaN.
pub trait SortKey: Copy + Send + Sync + cust_core::DeviceCopy + 'static {
    /// The unsigned integer of the same size.
    type Bits: RadixKey;
    /// How the bits are ordered.
    const ORDER: KeyOrder;
    /// The bits of the key.
    fn to_bits(self) -> Self::Bits;
}

macro_rules! sort_keys {
    ($($key:ty, $bits:ty, $order:ident, $to_bits:expr;)*) => { $(
        impl SortKey for $key {
            type Bits = $bits;
            const ORDER: KeyOrder = KeyOrder::$order;

            #[inline(always)]
            fn to_bits(self) -> $bits {
                $to_bits(self)
            }
        }
    )* };
}
sort_keys! {
    u32, u32, UNSIGNED, |x| x;
    u64, u64, UNSIGNED, |x| x;
    i32, u32, SIGNED, |x| x as u32;
    i64, u64, SIGNED, |x| x as u64;
    f32, u32, FLOAT, f32::to_bits;
    f64, u64, FLOAT, f64::to_bits;
}

/// Values that the radix sort carries along, as it moves them: nothing, or 4, 8 or 16 bytes.
pub trait ValueBits: Copy + Default + Send + Sync + SharedElement + cust_core::DeviceCopy + 'static {}

/// No value at all: keys are sorted alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NoValue;

// SAFETY: there is nothing to copy.
unsafe impl cust_core::DeviceCopy for NoValue {}
impl SharedElement for NoValue {}
impl ValueBits for NoValue {}
impl ValueBits for u32 {}
impl ValueBits for u64 {}
impl ValueBits for u128 {}

/// A type that the radix sort carries along with a key: plain types of 4, 8 or 16 bytes.
pub trait SortValue: Copy + Send + Sync + cust_core::DeviceCopy + 'static {
    /// The integer of the same size.
    type Bits: ValueBits;
}

macro_rules! sort_values {
    ($($bits:ty: $($value:ty),*;)*) => { $( $(
        impl SortValue for $value {
            type Bits = $bits;
        }
    )* )* };
}
sort_values! {
    u32: u32, i32, f32, [u8; 4], [u16; 2];
    u64: u64, i64, f64, [u32; 2], [i32; 2], [f32; 2];
    u128: u128, [u32; 4], [i32; 4], [f32; 4], [u64; 2], [i64; 2], [f64; 2];
}

/// How the bits of keys are ordered: a set of rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyOrder(u32);

impl KeyOrder {
    /// As an unsigned number.
    pub const UNSIGNED: Self = Self(0);
    /// As a signed number: the sign bit is upside down.
    pub const SIGNED: Self = Self(1);
    /// As a float: of negative numbers the other bits are upside down too.
    pub const FLOAT: Self = Self(1 | 2);
    /// The other way round. Equal keys stay in the order of the input.
    pub const DESCENDING: Self = Self(4);
    /// With [`FLOAT`](Self::FLOAT): -0.0 and 0.0 are equal.
    pub const EQUAL_ZEROS: Self = Self(8);
    /// Keys are still as the caller gave them, and are folded when they are loaded.
    pub const FOLD: Self = Self(16);
    /// Keys become again what the caller gave when they are stored.
    pub const UNFOLD: Self = Self(32);

    /// The rules of both.
    #[inline(always)]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// `self` without the rules of the other.
    #[inline(always)]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// True if all rules of the other are among these.
    #[inline(always)]
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// As a kernel's argument.
    #[inline(always)]
    pub const fn to_bits(self) -> u32 {
        self.0
    }

    /// From a kernel's argument.
    #[inline(always)]
    pub const fn from_bits(bits: u32) -> Self {
        Self(bits)
    }
}

/// Maps keys to unsigned integers of the same order, and back.
#[derive(Clone, Copy, Debug)]
struct Fold<K> {
    /// What is flipped in keys with the sign bit set.
    negative: K,
    /// What is flipped in every key.
    flip: K,
}

impl<K: RadixKey> Fold<K> {
    const NONE: Self = Self { negative: K::ZERO, flip: K::ZERO };

    #[inline(always)]
    fn of(order: KeyOrder) -> Self {
        let sign = if order.has(KeyOrder::SIGNED) { K::SIGN } else { K::ZERO };
        let all = if order.has(KeyOrder::DESCENDING) { K::MAX } else { K::ZERO };
        Self {
            negative: if order.has(KeyOrder::FLOAT) { K::MAX ^ K::SIGN } else { K::ZERO },
            flip: sign ^ all,
        }
    }

    #[inline(always)]
    fn fold(self, bits: K) -> K {
        bits ^ (bits.sign_mask() & self.negative) ^ self.flip
    }

    #[inline(always)]
    fn unfold(self, key: K) -> K {
        // Nothing of `negative` is the sign bit, which therefore says here too what was flipped.
        let bits = key ^ self.flip;
        bits ^ (bits.sign_mask() & self.negative)
    }
}

/// What a pass of the sort does with keys. Without `FOLDED` keys are unsigned numbers, and it costs nothing.
#[derive(Clone, Copy, Debug)]
pub struct DigitReader<K, const FOLDED: bool> {
    load: Fold<K>,
    store: Fold<K>,
    /// What is flipped in digits of -0.0: all if it counts as 0.0, or nothing.
    zero_flip: u32,
    /// The key of -0.0, of which that of 0.0 is the complement.
    negative_zero: K,
}

impl<K: RadixKey, const FOLDED: bool> DigitReader<K, FOLDED> {
    /// A reader of keys in this order.
    #[inline(always)]
    pub fn new(order: KeyOrder) -> Self {
        let fold = Fold::of(order);
        let zero_flip = if order.has(KeyOrder::EQUAL_ZEROS) { u32::MAX } else { 0 };
        Self {
            load: if order.has(KeyOrder::FOLD) { fold } else { Fold::NONE },
            store: if order.has(KeyOrder::UNFOLD) { fold } else { Fold::NONE },
            // Or the compiler makes two kernels of one, for which there are not registers enough.
            zero_flip: computed(zero_flip),
            negative_zero: fold.fold(K::SIGN),
        }
    }

    /// What becomes of a key that was loaded.
    #[inline(always)]
    pub fn loaded(&self, bits: K) -> K {
        if FOLDED { self.load.fold(bits) } else { bits }
    }

    /// What to load for the largest key.
    #[inline(always)]
    pub fn padding(&self) -> K {
        if FOLDED { self.load.unfold(K::MAX) } else { K::MAX }
    }

    /// What is to be stored of a key.
    #[inline(always)]
    pub fn stored(&self, key: K) -> K {
        if FOLDED { self.store.unfold(key) } else { key }
    }

    /// The digit of the bits of `mask` behind bit `shift`.
    #[inline(always)]
    pub fn digit(&self, key: K, shift: u32, mask: u32) -> u32 {
        let digit = key.low_bits(shift) & mask;
        // Of the key's complement it is the complement.
        if FOLDED && key == self.negative_zero { digit ^ self.zero_flip & mask } else { digit }
    }

    /// Of a key that was loaded, the bits from `begin` up to `end`, by which whole keys compare.
    #[inline(always)]
    pub fn compared(&self, key: K, begin: u32, end: u32) -> K {
        let is_other_zero = FOLDED && self.zero_flip != 0 && key == self.negative_zero;
        let key = if is_other_zero { key ^ K::MAX } else { key };
        key.bits(begin, end)
    }
}

/// The mask of a digit of that many bits, of which only the first [`RADIX_BITS`] count.
#[inline(always)]
pub const fn digit_mask(bits: u32) -> u32 {
    (1 << if bits < RADIX_BITS { bits } else { RADIX_BITS }) - 1
}

/// The key as the sort compares it, whole: for sorts on the host.
pub fn sort_bits<K: SortKey>(key: K, order: KeyOrder, begin_bit: u32, end_bit: u32) -> u64 {
    let reader = DigitReader::<K::Bits, true>::new(order.with(KeyOrder::FOLD));
    if begin_bit == end_bit {
        0
    } else {
        reader.compared(reader.loaded(key.to_bits()), begin_bit, end_bit).into()
    }
}

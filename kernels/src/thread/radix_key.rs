//! Sort keys: the mapping to unsigned integers of the same order, and the digits of the radix sort.

use super::carried::Carried;
use super::words::{Words, computed};
use crate::policy::HISTOGRAM_COPIES;
use core::ops::{BitAnd, BitXor};
use cuda_std::prelude::*;
use cuda_std::shared::SharedArray;
use cuda_std::warp::WarpShuffleValue;

/// Bits of a digit of the radix sort.
pub const RADIX_BITS: u32 = 8;

/// Number of values of a digit.
pub const RADIX: usize = 1 << RADIX_BITS;

/// An unsigned integer that the radix sort splits into digits: `u32` or `u64`.
///
/// # Safety
/// The key is a number of exactly [`BITS`](RadixKey::BITS) bits, and [`Counters`](RadixKey::Counters) has a row per
/// digit.
pub unsafe trait RadixKey:
    Words + Ord + BitAnd<Output = Self> + BitXor<Output = Self> + Into<u64> + WarpShuffleValue
{
    /// Number of bits.
    const BITS: u32;
    /// 0.
    const ZERO: Self;
    /// The largest key.
    const MAX: Self;
    /// The highest bit.
    const SIGN: Self;
    /// Shared memory for the counters of every digit: [`HISTOGRAM_COPIES`] counters per value of the digit.
    type Counters: SharedArray<Element = u32>;

    /// Truncates to the lowest bits.
    fn low(bits: u64) -> Self;
    /// Returns the lowest 32 bits after a shift by `shift`.
    fn low_bits(self, shift: u32) -> u32;
    /// Returns the bits `begin..end`, which must not be empty.
    fn bits(self, begin: u32, end: u32) -> Self;
    /// Returns all ones if the highest bit is set, else 0.
    fn sign_mask(self) -> Self;
}

macro_rules! radix_keys {
    ($($key:ty, $signed:ty;)*) => { $(
        // SAFETY: a number with a row of counters per byte.
        unsafe impl RadixKey for $key {
            const BITS: u32 = <$key>::BITS;
            const ZERO: Self = 0;
            const MAX: Self = <$key>::MAX;
            const SIGN: Self = 1 << (<$key>::BITS - 1);
            type Counters = [[[u32; HISTOGRAM_COPIES]; RADIX]; size_of::<$key>()];

            #[inline(always)]
            fn low(bits: u64) -> Self {
                bits as $key
            }
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

/// A type that the sorts accept as key: `u32`, `u64`, `i32`, `i64`, `f32` and `f64`. Floats have IEEE 754's total
/// order: -NaN, -infinity, …, -0.0, 0.0, …, infinity, NaN.
pub trait SortKey: Words {
    /// The unsigned integer of the same size.
    type Bits: RadixKey + SortKey;
    /// How the bits are ordered.
    const ORDER: KeyOrder;

    /// Returns the bits of the key.
    #[inline(always)]
    fn to_bits(self) -> Self::Bits {
        Self::Bits::from_words(self.to_words())
    }
    /// Returns the key with the given bits.
    #[inline(always)]
    fn from_bits(bits: Self::Bits) -> Self {
        Self::from_words(bits.to_words())
    }
    /// Returns the unsigned integer of the same order.
    #[inline(always)]
    fn folded(self) -> Self::Bits {
        Fold::of(Self::ORDER, Self::Bits::BITS).fold(self.to_bits())
    }
}

macro_rules! sort_keys {
    ($($key:ty: $bits:ty, $order:ident;)*) => { $(
        impl SortKey for $key {
            type Bits = $bits;
            const ORDER: KeyOrder = KeyOrder::$order;
        }
    )* };
}
sort_keys! {
    u32: u32, UNSIGNED;
    u64: u64, UNSIGNED;
    i32: u32, SIGNED;
    i64: u64, SIGNED;
    f32: u32, FLOAT;
    f64: u64, FLOAT;
}

/// A type that the radix sort accepts as value: plain types of 4, 8 or 16 bytes.
pub trait SortValue: bytemuck::Pod + Send + Sync + cust_core::DeviceCopy {
    /// The integer of the same size.
    type Bits: Carried;
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

/// How the bits of keys are ordered: a set of flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq, KernelArgs)]
pub struct KeyOrder {
    /// The flags, one bit each.
    pub bits: u32,
}

impl KeyOrder {
    /// Unsigned numbers.
    pub const UNSIGNED: Self = Self { bits: 0 };
    /// Signed numbers: the sign bit is flipped.
    pub const SIGNED: Self = Self { bits: 1 };
    /// Floats: the other bits of negative numbers are flipped too.
    pub const FLOAT: Self = Self { bits: 1 | 2 };
    /// Descending order. Equal keys keep the order of the input.
    pub const DESCENDING: Self = Self { bits: 4 };
    /// Together with [`FLOAT`](Self::FLOAT): -0.0 and 0.0 are equal.
    pub const EQUAL_ZEROS: Self = Self { bits: 8 };
    /// Keys are in the caller's form, and are folded when they are loaded.
    pub const FOLD: Self = Self { bits: 16 };
    /// Keys are unfolded to the caller's form when they are stored.
    pub const UNFOLD: Self = Self { bits: 32 };

    /// Returns the union of the flags.
    #[inline(always)]
    pub const fn with(self, other: Self) -> Self {
        Self { bits: self.bits | other.bits }
    }

    /// Returns true if `self` has all flags of `other`.
    #[inline(always)]
    pub const fn has(self, other: Self) -> bool {
        self.bits & other.bits == other.bits
    }
}

/// The bits by which items are sorted, and the order of keys.
#[derive(Clone, Copy, Debug, KernelArgs)]
pub struct SortBy {
    /// The lowest bit.
    pub begin_bit: u32,
    /// The bit after the highest one.
    pub end_bit: u32,
    /// The order of keys.
    pub order: crate::thread::radix_key::KeyOrder,
}

impl SortBy {
    /// Sorts unsigned keys by their lowest `bits` bits.
    pub const fn low_bits(bits: u32) -> Self {
        Self { begin_bit: 0, end_bit: bits, order: KeyOrder::UNSIGNED }
    }

    /// Sorts unsigned keys below `end`, which is not 0.
    pub const fn numbers_below(end: usize) -> Self {
        Self::low_bits(usize::BITS - (end - 1).leading_zeros())
    }

    /// Returns the number of passes of a radix sort.
    pub const fn num_passes(&self) -> usize {
        (self.end_bit - self.begin_bit).div_ceil(RADIX_BITS) as usize
    }

    /// Adds flags to the order of keys.
    #[inline(always)]
    pub const fn with(self, flags: KeyOrder) -> Self {
        Self { order: self.order.with(flags), ..self }
    }
}

/// Maps keys to unsigned integers of the same order, and back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, KernelArgs)]
pub struct Fold {
    /// The bits that are flipped in keys whose sign bit is set.
    pub negative: u64,
    /// The bits that are flipped in every key.
    pub flip: u64,
}

impl Fold {
    /// The identity: keys are unsigned integers in ascending order.
    pub const NONE: Self = Self { negative: 0, flip: 0 };

    /// Returns the mapping for keys of `bits` bits.
    #[inline(always)]
    pub const fn of(order: KeyOrder, bits: u32) -> Self {
        let (sign, all) = (1 << (bits - 1), u64::MAX >> (64 - bits));
        let signed = if order.has(KeyOrder::SIGNED) { sign } else { 0 };
        let descending = if order.has(KeyOrder::DESCENDING) { all } else { 0 };
        Self { negative: if order.has(KeyOrder::FLOAT) { all ^ sign } else { 0 }, flip: signed ^ descending }
    }

    /// Maps a key's bits to the unsigned integer of the same order.
    #[inline(always)]
    pub fn fold<K: RadixKey>(self, bits: K) -> K {
        bits ^ (bits.sign_mask() & K::low(self.negative)) ^ K::low(self.flip)
    }

    /// Maps back: the inverse of [`fold`](Self::fold).
    #[inline(always)]
    pub fn unfold<K: RadixKey>(self, key: K) -> K {
        // `negative` does not contain the sign bit, so the sign bit still tells which bits were flipped.
        let bits = key ^ K::low(self.flip);
        bits ^ (bits.sign_mask() & K::low(self.negative))
    }
}

/// How a pass of the radix sort loads keys, takes their digits and stores them. Without `FOLDED` keys are unsigned
/// numbers, and every conversion is free.
#[derive(Clone, Copy, Debug)]
pub struct DigitReader<K, const FOLDED: bool> {
    load: Fold,
    store: Fold,
    /// The bits flipped in digits of -0.0: all of them if -0.0 counts as 0.0, else none.
    zero_flip: u32,
    /// The folded key of -0.0. The folded key of 0.0 is its complement.
    negative_zero: K,
}

impl<K: RadixKey, const FOLDED: bool> DigitReader<K, FOLDED> {
    /// Creates a reader of keys in the given order.
    #[inline(always)]
    pub fn new(order: KeyOrder) -> Self {
        let fold = Fold::of(order, K::BITS);
        let zero_flip = if order.has(KeyOrder::EQUAL_ZEROS) { u32::MAX } else { 0 };
        Self {
            load: if order.has(KeyOrder::FOLD) { fold } else { Fold::NONE },
            store: if order.has(KeyOrder::UNFOLD) { fold } else { Fold::NONE },
            // `computed` keeps the compiler from duplicating the kernel for both values, which needs too many
            // registers.
            zero_flip: computed(zero_flip),
            negative_zero: fold.fold(K::SIGN),
        }
    }

    /// Converts a loaded key.
    #[inline(always)]
    pub fn loaded(&self, bits: K) -> K {
        if FOLDED { self.load.fold(bits) } else { bits }
    }

    /// Returns the padding for tiles: loaded, it becomes the largest key.
    #[inline(always)]
    pub fn padding(&self) -> K {
        if FOLDED { self.load.unfold(K::MAX) } else { K::MAX }
    }

    /// Converts a key for storing.
    #[inline(always)]
    pub fn stored(&self, key: K) -> K {
        if FOLDED { self.store.unfold(key) } else { key }
    }

    /// Returns the digit of a converted key: the bits of `mask` above bit `shift`.
    #[inline(always)]
    pub fn digit(&self, key: K, shift: u32, mask: u32) -> u32 {
        let digit = key.low_bits(shift) & mask;
        // The digit of the complement is the complement of the digit.
        if FOLDED && key == self.negative_zero { digit ^ self.zero_flip & mask } else { digit }
    }

    /// Returns the bits of a converted key by which whole keys compare.
    #[inline(always)]
    pub fn compared(&self, key: K, by: SortBy) -> K {
        let is_other_zero = FOLDED && self.zero_flip != 0 && key == self.negative_zero;
        let key = if is_other_zero { key ^ K::MAX } else { key };
        key.bits(by.begin_bit, by.end_bit)
    }
}

/// Returns the mask of a digit of up to `bits` bits, at most [`RADIX_BITS`].
#[inline(always)]
pub const fn digit_mask(bits: u32) -> u32 {
    (1 << if bits < RADIX_BITS { bits } else { RADIX_BITS }) - 1
}

/// Returns the number by which the sort compares a key. Sorts on the host use it.
pub fn sort_bits<K: SortKey>(key: K, by: SortBy) -> u64 {
    let reader = DigitReader::<K::Bits, true>::new(by.order.with(KeyOrder::FOLD));
    if by.begin_bit == by.end_bit { 0 } else { reader.compared(reader.loaded(key.to_bits()), by).into() }
}

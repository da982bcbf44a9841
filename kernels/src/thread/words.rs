//! Values as 32-bit words: the units of shuffles, of 16-byte loads and stores, and of look-back.

use crate::plain::plain;
use cuda_std::shared::SharedElement;

/// The most words of a value.
pub const MAX_WORDS: usize = 4;

/// A plain value of one, two or four 32-bit words, without padding.
///
/// # Safety
/// [`WORDS`](Words::WORDS) and [`PUBLISHED_WORDS`](Words::PUBLISHED_WORDS) are right: memory is planned by them, and 16
/// bytes are read as [`PER_16`](Words::PER_16) values.
pub unsafe trait Words: SharedElement + cust_core::DeviceCopy + bytemuck::Pod + Send + Sync {
    /// Number of words.
    const WORDS: usize;
    /// The value whose bits are all 0.
    const ZEROS: Self;
    /// The number of values in 16 bytes.
    const PER_16: usize = MAX_WORDS / Self::WORDS;

    /// Returns the words in memory order, then zeros.
    fn to_words(self) -> [u32; MAX_WORDS];
    /// Assembles a value from its words.
    fn from_words(words: [u32; MAX_WORDS]) -> Self;

    /// The number of 64-bit words in which look-back publishes a value; the lowest two bits of each are free for a
    /// state.
    const PUBLISHED_WORDS: usize = Self::WORDS;

    /// Returns published word `i`, without a state.
    #[inline(always)]
    fn to_published(self, i: usize) -> u64 {
        u64::from(self.to_words()[i]) << 32
    }
    /// Assembles a value from its published words; ignores their lowest two bits.
    #[inline(always)]
    fn from_published(words: [u64; MAX_WORDS]) -> Self {
        let [a, b, c, d] = words;
        Self::from_words([(a >> 32) as u32, (b >> 32) as u32, (c >> 32) as u32, (d >> 32) as u32])
    }
}

macro_rules! words {
    ($($t:ty: $count:literal, $to:expr, $from:expr;)*) => { $(
        // SAFETY: a number of `$count` words.
        unsafe impl Words for $t {
            const WORDS: usize = $count;
            const ZEROS: Self = 0 as $t;

            #[inline(always)]
            fn to_words(self) -> [u32; MAX_WORDS] {
                $to(self)
            }
            #[inline(always)]
            fn from_words(words: [u32; MAX_WORDS]) -> Self {
                $from(words)
            }
        }
    )* };
}
words! {
    u32: 1, |x| [x, 0, 0, 0], |w: [u32; 4]| w[0];
    i32: 1, |x| [x as u32, 0, 0, 0], |w: [u32; 4]| w[0] as i32;
    f32: 1, |x: f32| [x.to_bits(), 0, 0, 0], |w: [u32; 4]| f32::from_bits(w[0]);
    u64: 2, split, join;
    i64: 2, |x| split(x as u64), |w| join(w) as i64;
    f64: 2, |x: f64| split(x.to_bits()), |w| f64::from_bits(join(w));
}

/// Sixteen bytes that are only moved and compared. (A pair of `u64`, because the compiler keeps those in registers.)
#[repr(C, align(16))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bits128(pub u64, pub u64);

plain! { Bits128 { u64, u64 } }
impl SharedElement for Bits128 {}
// SAFETY: four words.
unsafe impl Words for Bits128 {
    const WORDS: usize = 4;
    const ZEROS: Self = Self(0, 0);

    #[inline(always)]
    fn to_words(self) -> [u32; MAX_WORDS] {
        let (low, high) = (split(self.0), split(self.1));
        [low[0], low[1], high[0], high[1]]
    }
    #[inline(always)]
    fn from_words([a, b, c, d]: [u32; MAX_WORDS]) -> Self {
        Self(join([a, b, 0, 0]), join([c, d, 0, 0]))
    }
}

/// Forces the value to be computed before the code that follows; see [`computed`](cuda_std::misc::computed).
#[inline(always)]
pub fn computed<T: Words>(value: T) -> T {
    let mut words = value.to_words();
    for word in 0..T::WORDS {
        words[word] = cuda_std::misc::computed(words[word]);
    }
    T::from_words(words)
}

/// Splits a 64-bit number into words, then zeros.
#[inline(always)]
pub fn split(x: u64) -> [u32; MAX_WORDS] {
    [x as u32, (x >> 32) as u32, 0, 0]
}

/// Joins the first two words to a 64-bit number.
#[inline(always)]
pub fn join(words: [u32; MAX_WORDS]) -> u64 {
    u64::from(words[1]) << 32 | u64::from(words[0])
}

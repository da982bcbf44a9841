//! Pseudorandom numbers per item, determined by a seed and the item's index.

use crate::primitives::generate::splitmix64;

/// The generator of an item's random numbers.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn of(seed: u64, i: u64) -> Self {
        Self(splitmix64(seed ^ splitmix64(i)))
    }

    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        splitmix64(self.0)
    }

    /// Returns a number in 0..1.
    pub(crate) fn unit(&mut self) -> f64 {
        unit(self.bits())
    }

    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.bits() % end
    }

    /// Returns an approximately normal number with mean 0 and variance 1: a sum of uniform numbers.
    pub(crate) fn about_normal(&mut self) -> f64 {
        (0..3).map(|_| self.unit() + self.unit() + self.unit() + self.unit()).sum::<f64>() - 6.0
    }
}

/// Converts random bits to a number in 0..1.
pub(crate) fn unit(bits: u64) -> f64 {
    (bits >> 11) as f64 / (1_u64 << 53) as f64
}

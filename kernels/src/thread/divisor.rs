//! Fast division by a number that all threads share: a multiplication by its inverse.

/// A precomputed divisor.
#[derive(Clone, Copy, Debug)]
pub struct Divisor {
    by: u32,
    inverse: u32,
}

impl Divisor {
    /// Prepares a division by `by`, which must not be 0.
    #[inline(always)]
    pub const fn new(by: u32) -> Self {
        // Rounded up, so that the upper half of the product with a small number is the exact quotient.
        Self { by, inverse: (u32::MAX / by).wrapping_add(1) }
    }

    /// Returns `number / divisor`. The product `number * divisor` must be less than 2^32.
    #[inline(always)]
    pub const fn quotient(self, number: u32) -> u32 {
        if self.by == 1 { number } else { ((number as u64 * self.inverse as u64) >> 32) as u32 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotients_are_exact() {
        for by in 1..=16 {
            for number in (0..100_000).chain(u32::MAX / by - 1000..u32::MAX / by) {
                assert_eq!(Divisor::new(by).quotient(number), number / by, "{number} / {by}");
            }
        }
    }
}

//! Division of small numbers by a number that is the same for all threads.

/// A number that others are divided by.
#[derive(Clone, Copy, Debug)]
pub struct Divisor {
    by: u32,
    inverse: u32,
}

impl Divisor {
    /// Divides by `by`, which is not 0.
    #[inline(always)]
    pub const fn new(by: u32) -> Self {
        // Rounded up, so that the upper half of the product with a small number is the exact quotient.
        Self { by, inverse: (u32::MAX / by).wrapping_add(1) }
    }

    /// The quotient of a number of which the product with the divisor is less than 2^32.
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

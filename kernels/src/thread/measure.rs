//! Distance norms, and distances along one axis.

use super::coord::Float;

/// The most dimensions of a point. The general kernels hold this many coordinates.
pub const MAX_DIMS: usize = 8;

/// How the distances along the axes combine into one distance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Norm {
    /// The squared Euclidean distance.
    #[default]
    Euclidean = 0,
    /// The sum of the distances along the axes.
    Manhattan = 1,
    /// The largest distance along an axis.
    Chebyshev = 2,
}

impl Norm {
    /// Decodes a kernel argument: 0 is Euclidean, 1 is Manhattan, any other number Chebyshev.
    #[inline(always)]
    pub const fn of(number: u32) -> Self {
        match number {
            0 => Self::Euclidean,
            1 => Self::Manhattan,
            _ => Self::Chebyshev,
        }
    }

    /// Adds the distance along one more axis to the combined distance `before`.
    #[inline(always)]
    pub fn and<C: Float>(self, before: C, along: C) -> C {
        match self {
            // 0.0 + d*d is d*d exactly.
            Self::Euclidean => before + along * along,
            Self::Manhattan => before + along,
            Self::Chebyshev => before.max(along),
        }
    }

    /// Combines the distances along the first `dims` axes.
    #[inline(always)]
    pub fn put_together<C: Float>(self, dims: usize, along: impl Fn(usize) -> C) -> C {
        let mut sum = C::ZERO;
        let mut axis = 0;
        while axis < dims {
            sum = self.and(sum, along(axis));
            axis += 1;
        }
        sum
    }
}

/// Returns the distance between two coordinates of one axis. A `period` other than 0 makes the axis periodic.
#[inline(always)]
pub fn along<C: Float>(a: C, b: C, period: C) -> C {
    let along = (a - b).abs();
    if period > C::ZERO { along.min(period - along) } else { along }
}

/// Returns the least distance along an axis from `a` to the range from `low` to `high`.
#[inline(always)]
pub fn along_to_range<C: Float>(a: C, low: C, high: C, period: C) -> C {
    let (below, above) = (low - a, a - high);
    let along = below.max(above).max(C::ZERO);
    if period > C::ZERO && along > C::ZERO {
        // Across the period, to the far end of the range.
        let across = if below > C::ZERO { high - a } else { a - low };
        along.min(period - across)
    } else {
        along
    }
}

/// Returns the greatest distance along an axis from `a` to the range from `low` to `high`, ignoring any period.
#[inline(always)]
pub fn farthest_along<C: Float>(a: C, low: C, high: C) -> C {
    (low - a).abs().max((a - high).abs())
}

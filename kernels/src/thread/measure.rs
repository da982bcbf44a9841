//! How distances are measured: along an axis, and of all axes together.

use super::coord::Coord;

/// Most dimensions of a point, and those of the general kernels.
pub const MAX_DIMS: usize = 8;

/// How the distances along the axes make one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Norm {
    /// The square of the Euclidean distance.
    #[default]
    Euclidean = 0,
    /// Their sum.
    Manhattan = 1,
    /// The largest of them.
    Chebyshev = 2,
}

impl Norm {
    /// The norm of a number; of other numbers the last.
    #[inline(always)]
    pub const fn of(number: u32) -> Self {
        match number {
            0 => Self::Euclidean,
            1 => Self::Manhattan,
            _ => Self::Chebyshev,
        }
    }

    /// The distance along one more axis put to those before.
    #[inline(always)]
    pub fn and<C: Coord>(self, before: C, along: C) -> C {
        match self {
            // 0.0 + d*d is d*d exactly.
            Self::Euclidean => before + along * along,
            Self::Manhattan => before + along,
            Self::Chebyshev => before.max(along),
        }
    }

    /// The distances along axes put together.
    #[inline(always)]
    pub fn put_together<C: Coord>(self, dims: usize, along: impl Fn(usize) -> C) -> C {
        let mut sum = C::ZERO;
        let mut axis = 0;
        while axis < dims {
            sum = self.and(sum, along(axis));
            axis += 1;
        }
        sum
    }
}

/// Distance along an axis, which repeats after `period`, if that is not 0.
#[inline(always)]
pub fn along<C: Coord>(a: C, b: C, period: C) -> C {
    let along = (a - b).abs();
    if period > C::ZERO { along.min(period - along) } else { along }
}

/// The least distance along an axis to anything from `low` to `high`.
#[inline(always)]
pub fn along_to_range<C: Coord>(a: C, low: C, high: C, period: C) -> C {
    let (below, above) = (low - a, a - high);
    let along = below.max(above).max(C::ZERO);
    if period > C::ZERO && along > C::ZERO {
        // Round the other way, to the far end.
        let across = if below > C::ZERO { high - a } else { a - low };
        along.min(period - across)
    } else {
        along
    }
}

/// The greatest distance along an axis, without a period, to anything from `low` to `high`.
#[inline(always)]
pub fn farthest_along<C: Coord>(a: C, low: C, high: C) -> C {
    (low - a).abs().max((a - high).abs())
}

//! Reference results by definition: loops over all points, with arithmetic that shares no code with kauri.

use kauri::join::{Norm, PairScore, ScoreFunction};
use std::fmt::Debug;
use std::ops::{Add, Mul, Sub};

/// `f32` and `f64`, with the arithmetic of the standard library.
pub trait Number:
    Copy + Debug + PartialOrd + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + 'static
{
    /// Zero.
    const ZERO: Self;
    /// Infinity: farther than any point.
    const INFINITY: Self;
    /// The smallest positive value.
    const SMALLEST: Self;
    /// The largest magnitude of a coordinate that kauri documents.
    const LIMIT: Self;

    /// Converts to `f64` without rounding.
    fn wide(self) -> f64;
    /// Returns half the value, rounded.
    fn half(self) -> Self;
    /// Returns the square root, rounded.
    fn root(self) -> Self;
    /// Returns the next greater value.
    fn up(self) -> Self;
    /// Returns the next smaller value.
    fn down(self) -> Self;
}

macro_rules! numbers {
    ($($Float:ident: $limit:expr;)*) => { $(
        impl Number for $Float {
            const ZERO: Self = 0.0;
            const INFINITY: Self = $Float::INFINITY;
            const SMALLEST: Self = $Float::from_bits(1);
            const LIMIT: Self = $limit;

            fn wide(self) -> f64 {
                self.into()
            }
            fn half(self) -> Self {
                self / 2.0
            }
            fn root(self) -> Self {
                self.sqrt()
            }
            fn up(self) -> Self {
                self.next_up()
            }
            fn down(self) -> Self {
                self.next_down()
            }
        }
    )* };
}
numbers! {
    f32: 2_305_843_009_213_693_952.0;
    f64: f64::from_bits((1023 + 509) << 52);
}

/// Returns the larger of two numbers.
pub fn larger<C: Number>(a: C, b: C) -> C {
    if a < b { b } else { a }
}

/// The rules for distances: norm and periods.
#[derive(Clone, Debug)]
pub struct Space<C> {
    /// The norm.
    pub norm: Norm,
    /// The period of each axis, 0 for an axis that is not periodic; empty if no axis is.
    pub periods: Vec<C>,
}

impl<C: Number> Space<C> {
    /// Returns the distance of two points; for the Euclidean norm its square, (dx*dx + dy*dy) + … in axis order.
    pub fn distance(&self, a: &[C], b: &[C]) -> C {
        let along = |axis: usize| {
            let difference = if a[axis] < b[axis] { b[axis] - a[axis] } else { a[axis] - b[axis] };
            match self.periods.get(axis) {
                Some(&period) if C::ZERO < period && period - difference < difference => period - difference,
                _ => difference,
            }
        };
        let square = |x: C| x * x;
        (1..a.len()).fold(
            match self.norm {
                Norm::Euclidean => square(along(0)),
                Norm::Manhattan | Norm::Chebyshev => along(0),
            },
            |sum, axis| match self.norm {
                Norm::Euclidean => sum + square(along(axis)),
                Norm::Manhattan => sum + along(axis),
                Norm::Chebyshev => larger(sum, along(axis)),
            },
        )
    }

    /// Returns the limit that [`distance`](Self::distance) is compared with.
    pub fn bound(&self, radius: Option<C>) -> C {
        match (radius, self.norm) {
            (None, _) => C::INFINITY,
            (Some(radius), Norm::Euclidean) => radius * radius,
            (Some(radius), Norm::Manhattan | Norm::Chebyshev) => radius,
        }
    }

    /// Returns the points within `bound` of a query whose ids pass the filter `takes`, sorted by (distance, id).
    pub fn neighbors<const D: usize>(
        &self,
        points: &[[C; D]],
        query: &[C; D],
        bound: C,
        takes: impl Fn(u32) -> bool,
    ) -> Vec<(C, u32)> {
        let distances = points.iter().zip(0..).map(|(point, id)| (self.distance(query, point), id));
        let mut found: Vec<_> = distances.filter(|&(d, id)| d <= bound && takes(id)).collect();
        found.sort_by(|a, b| a.partial_cmp(b).expect("distances are numbers"));
        found
    }

    /// Returns the first query that is more than a period away from a point, and the first such axis.
    pub fn beyond_period<const D: usize>(
        &self,
        points: &[[C; D]],
        queries: &[[C; D]],
    ) -> Option<(u64, usize)> {
        let is_beyond = |query: &[C; D], axis: usize| {
            let Some(&period) = self.periods.get(axis).filter(|&&period| C::ZERO < period) else {
                return false;
            };
            points.iter().any(|p| query[axis] - p[axis] > period || p[axis] - query[axis] > period)
        };
        let mut queries = queries.iter().zip(0..);
        queries.find_map(|(query, i)| (0..D).find(|&axis| is_beyond(query, axis)).map(|axis| (i, axis)))
    }
}

/// Returns true if a point is inside a box or on its border.
pub fn is_inside<C: PartialOrd, const D: usize>(point: &[C; D], [low, high]: &[[C; D]; 2]) -> bool {
    (0..D).all(|axis| low[axis] <= point[axis] && point[axis] <= high[axis])
}

/// The scores of the two points of a pair.
#[derive(Clone, Copy, Debug)]
pub enum Scores {
    /// Integer scores, left and right.
    Integers(i64, i64),
    /// Float scores, left and right.
    Floats(f64, f64),
}

impl Scores {
    /// Returns the score of the pair.
    pub fn of_pair(self, function: ScoreFunction, weights: [f64; 2]) -> PairScore {
        if function == ScoreFunction::Weighted {
            let (left, right) = match self {
                Self::Integers(left, right) => (left as f64, right as f64),
                Self::Floats(left, right) => (left, right),
            };
            return PairScore::Float(weights[0] * left + weights[1] * right);
        }
        match self {
            Self::Integers(left, right) => {
                let (left, right) = (i128::from(left), i128::from(right));
                let score = match function {
                    ScoreFunction::Sum => left + right,
                    ScoreFunction::Product => left * right,
                    ScoreFunction::Min => left.min(right),
                    _ => left.max(right),
                };
                PairScore::Integer(score.clamp(i64::MIN.into(), i64::MAX.into()) as i64)
            }
            Self::Floats(left, right) => PairScore::Float(match function {
                ScoreFunction::Sum => left + right,
                ScoreFunction::Product => left * right,
                ScoreFunction::Min => left.min(right),
                _ => left.max(right),
            }),
        }
    }
}

/// Sorts pairs by score, best first; ties by left id, then by right id.
pub fn sort_by_score(pairs: &mut [(u32, u32, PairScore)]) {
    pairs.sort_by(|a, b| {
        let by_score = b.2.partial_cmp(&a.2).expect("scores are numbers");
        by_score.then(a.0.cmp(&b.0)).then(a.1.cmp(&b.1))
    });
}

/// A position on the sphere: longitude and latitude in degrees.
pub type Place = [f64; 2];

/// Returns the angle between two positions in radians by Vincenty's formula, which is accurate for near positions and for
/// antipodes.
pub fn angle(a: Place, b: Place) -> f64 {
    // The difference is taken in degrees, where full turns are exact.
    let lon = ((b[0] % 360.0 - a[0] % 360.0) % 360.0).to_radians();
    let ((sin_a, cos_a), (sin_b, cos_b)) = (sin_cos_of_latitude(a[1]), sin_cos_of_latitude(b[1]));
    let along = cos_b * lon.sin();
    // cos a sin b - sin a cos b cos(lon), rearranged so that near latitudes do not cancel.
    let (sin_half, half) = ((lon / 2.0).sin(), (b[1] - a[1]).to_radians());
    let across = half.sin() + 2.0 * sin_a * cos_b * sin_half * sin_half;
    along.hypot(across).atan2(sin_a * sin_b + cos_a * cos_b * lon.cos())
}

/// Returns the sine and the cosine of a latitude. The cosine is computed from the distance to the pole, which is accurate
/// near the pole.
fn sin_cos_of_latitude(lat: f64) -> (f64, f64) {
    (lat.to_radians().sin(), (90.0 - lat.abs()).to_radians().sin())
}

//! Numbers that spread evenly, for rays within a pixel and around a place.

use libm::sincos;
use std::f64::consts::TAU;

use super::vector::{V3, across, cross, sum};
use crate::random::Random;

/// The steps of the R2 sequence: the inverse, and its square, of the number whose cube is one more than it (Roberts 2018: The Unreasonable
/// Effectiveness of Quasirandom Sequences).
const STEPS: [f64; 2] = [0.754_877_666_246_692_7, 0.569_840_290_998_053_2];

/// Places in the unit square, of which any first ones are far from each other.
pub(super) struct Spread {
    first: [f64; 2],
}

impl Spread {
    /// Begins in the middle.
    pub(super) const CENTERED: Self = Self { first: [0.5; 2] };

    /// Begins anywhere, as follows from the two numbers: so neighbors make noise, which the eye forgives, and no patterns.
    pub(super) fn of(seed: u64, number: u64) -> Self {
        let mut random = Random::of(seed, number);
        Self { first: [random.unit(), random.unit()] }
    }

    pub(super) fn place(&self, i: u32) -> [f64; 2] {
        [0, 1].map(|axis| (self.first[axis] + f64::from(i) * STEPS[axis]).fract())
    }
}

/// The direction on the side of `normal` that belongs to a place of the unit square; those of all places are as dense as the cosine of their
/// angles to it, as a matt surface takes light. Their feet are even on a disc (Malley's method).
pub(super) fn around(normal: V3, [x, y]: [f64; 2]) -> V3 {
    let tangent = across(normal, [0.0; 3]);
    let (sin, cos) = sincos(TAU * y);
    let radius = x.sqrt();
    sum([(radius * cos, tangent), (radius * sin, cross(normal, tangent)), ((1.0 - x).sqrt(), normal)])
}

#[cfg(test)]
mod tests {
    use super::super::vector::{dot, unit};
    use super::*;

    #[test]
    fn places_are_spread() {
        assert_eq!(Spread::CENTERED.place(0), [0.5; 2]);
        let steps = STEPS.map(|step| step);
        assert!((steps[0] * steps[0] - steps[1]).abs() < 1e-15);
        for spread in [Spread::CENTERED, Spread::of(3, 4)] {
            let mut cells = [0; 16];
            for i in 0..160 {
                let [x, y] = spread.place(i);
                cells[(4.0 * x) as usize + 4 * (4.0 * y) as usize] += 1;
            }
            assert!(cells.iter().all(|&places| (7..=13).contains(&places)), "{cells:?}");
        }
    }

    #[test]
    fn directions_are_dense_as_the_cosine() {
        let normal = unit([1.0, -2.0, 0.5]);
        let spread = Spread::of(1, 2);
        let count = 10_000;
        let directions = || (0..count).map(|i| around(normal, spread.place(i)));
        assert!(directions().all(|one| (dot(one, one) - 1.0).abs() < 1e-12 && dot(one, normal) >= 0.0));
        // The mean of the cosine, cos θ / π dense over half a sphere, is two thirds; all else cancels.
        let mean = directions().fold([0.0; 3], |all, one| sum([(1.0, all), (1.0 / f64::from(count), one)]));
        assert!((0..3).all(|axis| (mean[axis] - normal[axis] * 2.0 / 3.0).abs() < 2e-3), "{mean:?}");
    }
}

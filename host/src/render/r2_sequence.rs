//! Low-discrepancy sequences, for rays within a pixel and around a surface point.

use libm::sincos;
use std::f64::consts::TAU;

use super::vector::{V3, cross, perpendicular, sum};
use crate::random::Random;
use kauri_kernels::render::occlusion::R2_STEPS as STEPS;

/// A sequence of points in the unit square whose prefixes are evenly distributed.
pub(super) struct R2Sequence {
    first: [f64; 2],
}

impl R2Sequence {
    /// Starts at the center.
    pub(super) const CENTERED: Self = Self { first: [0.5; 2] };

    /// Starts at a random point that the two numbers determine. Neighboring pixels differ, which gives noise instead of
    /// patterns.
    pub(super) fn of(seed: u64, number: u64) -> Self {
        let mut random = Random::of(seed, number);
        Self { first: [random.unit(), random.unit()] }
    }

    pub(super) fn point(&self, i: u32) -> [f64; 2] {
        [0, 1].map(|axis| (self.first[axis] + f64::from(i) * STEPS[axis]).fract())
    }
}

/// Maps a point of the unit square to a direction around `normal`. The density is proportional to the cosine of the angle,
/// as for a diffuse surface (Malley's method).
pub(super) fn cosine_direction(normal: V3, [x, y]: [f64; 2]) -> V3 {
    let tangent = perpendicular(normal, [0.0; 3]);
    let (sin, cos) = sincos(TAU * y);
    let radius = x.sqrt();
    sum([(radius * cos, tangent), (radius * sin, cross(normal, tangent)), ((1.0 - x).sqrt(), normal)])
}

#[cfg(test)]
mod tests {
    use super::super::vector::{dot, unit};
    use super::*;

    #[test]
    fn points_are_evenly_distributed() {
        assert_eq!(R2Sequence::CENTERED.point(0), [0.5; 2]);
        assert!((STEPS[0] * STEPS[0] - STEPS[1]).abs() < 1e-15);
        for sequence in [R2Sequence::CENTERED, R2Sequence::of(3, 4)] {
            let mut cells = [0; 16];
            for i in 0..160 {
                let [x, y] = sequence.point(i);
                cells[(4.0 * x) as usize + 4 * (4.0 * y) as usize] += 1;
            }
            assert!(cells.iter().all(|&places| (7..=13).contains(&places)), "{cells:?}");
        }
    }

    #[test]
    fn directions_are_dense_as_the_cosine() {
        let normal = unit([1.0, -2.0, 0.5]);
        let sequence = R2Sequence::of(1, 2);
        let count = 10_000;
        let directions = || (0..count).map(|i| cosine_direction(normal, sequence.point(i)));
        assert!(directions().all(|one| (dot(one, one) - 1.0).abs() < 1e-12 && dot(one, normal) >= 0.0));
        // The mean of the cosine, cos θ / π dense over half a sphere, is two thirds; the other components cancel.
        let mean = directions().fold([0.0; 3], |all, one| sum([(1.0, all), (1.0 / f64::from(count), one)]));
        assert!((0..3).all(|axis| (mean[axis] - normal[axis] * 2.0 / 3.0).abs() < 2e-3), "{mean:?}");
    }
}

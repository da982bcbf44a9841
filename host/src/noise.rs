//! Value noise over a plane (Perlin 1985): random numbers on a lattice with smooth interpolation, and sums of octaves.

use crate::primitives::generate::splitmix64;
use crate::random;

/// Noise determined by a seed, for nonnegative coordinates.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Noise {
    pub(crate) seed: u64,
}

impl Noise {
    /// Returns noise in 0..=1: random numbers on the unit lattice, smoothly interpolated. Each `which` below 256 is
    /// another lattice.
    pub(crate) fn value(self, which: u64, x: f64, y: f64) -> f64 {
        let (i, j) = (x as u64, y as u64);
        let corner =
            |i: u64, j: u64| random::unit(splitmix64(self.seed ^ which << 56 ^ splitmix64(i << 32 | j)));
        let smooth = |t: f64| t * t * (3.0 - 2.0 * t);
        let (s, t) = (smooth(x.fract()), smooth(y.fract()));
        let along = |j| (1.0 - s) * corner(i, j) + s * corner(i + 1, j);
        (1.0 - t) * along(j) + t * along(j + 1)
    }

    /// Returns a relief in 0..`2 * height`: a sum of octaves of [`value`](Self::value), each with twice the frequency
    /// and half the height of the one before.
    pub(crate) fn fractal(self, octaves: u32, height: f64, x: f64, y: f64) -> f64 {
        let octave = |octave: u32| {
            let scale = f64::from(1_u32 << octave);
            self.value(octave.into(), x * scale, y * scale) * height / scale
        };
        (0..octaves).map(octave).sum()
    }
}

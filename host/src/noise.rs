//! Noise over a plane (Perlin 1985): random numbers on a lattice, smoothly between its places, and the sum of finer and finer ones.

use crate::primitives::generate::splitmix64;
use crate::random;

/// Noise that follows from a seed; of places that are not negative.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Noise {
    pub(crate) seed: u64,
}

impl Noise {
    /// Random numbers from 0 to 1 on a lattice of one unit, smoothly between its places; another lattice for each `which`, below 256.
    pub(crate) fn value(self, which: u64, x: f64, y: f64) -> f64 {
        let (i, j) = (x as u64, y as u64);
        let corner =
            |i: u64, j: u64| random::unit(splitmix64(self.seed ^ which << 56 ^ splitmix64(i << 32 | j)));
        let smooth = |t: f64| t * t * (3.0 - 2.0 * t);
        let (s, t) = (smooth(x.fract()), smooth(y.fract()));
        let along = |j| (1.0 - s) * corner(i, j) + s * corner(i + 1, j);
        (1.0 - t) * along(j) + t * along(j + 1)
    }

    /// Relief from 0 to below twice `height`: octaves of [`value`](Self::value), each twice as fine and half as high as the one before.
    pub(crate) fn fractal(self, octaves: u32, height: f64, x: f64, y: f64) -> f64 {
        let octave = |octave: u32| {
            let scale = f64::from(1_u32 << octave);
            self.value(octave.into(), x * scale, y * scale) * height / scale
        };
        (0..octaves).map(octave).sum()
    }
}

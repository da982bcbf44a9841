//! Random input that is equal in every run and on every machine: a point depends only on the seed and its index.

mod boxes;
mod real_like;
mod skewed;

pub use boxes::{clustered_log_normal, clustered_squares, cubes, log_normal};
pub use real_like::{harbors, inland};
pub use skewed::{clustered, duplicated, lidar};

use kauri::Scalar;
use kauri::primitives::generate::splitmix64;
use kauri_kernels::thread::coord::Float;
use rayon::prelude::*;

/// Step of the states of SplitMix64.
const STEP: u64 = 0x9E37_79B9_7F4A_7C15;

/// Returns random bits number `i` of a seed; the rivals generate the same bits.
pub fn noise(seed: u64, i: u64) -> u64 {
    splitmix64(seed.wrapping_add(i.wrapping_mul(STEP)))
}

/// A coordinate type whose arrays are points.
pub trait Number: Float + Scalar<Coord = Self> {}
impl<C: Float + Scalar<Coord = C>> Number for C {}

/// A coordinate type with a uniform distribution on the unit interval.
pub trait Uniform: Number {
    /// Converts random bits to a number in [0, 1).
    fn uniform(bits: u64) -> Self;
}

impl Uniform for f32 {
    fn uniform(bits: u64) -> f32 {
        (bits >> 40) as f32 / (1u64 << 24) as f32
    }
}

impl Uniform for f64 {
    fn uniform(bits: u64) -> f64 {
        (bits >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// Returns uniformly distributed points in the unit cube.
pub fn uniform<C: Uniform, const D: usize>(num_points: usize, seed: u64) -> Vec<[C; D]> {
    scattered(num_points, seed, C::uniform)
}

/// Returns one-dimensional points with uniformly distributed 32-bit integer coordinates.
pub fn integers(num_points: usize, seed: u64) -> Vec<[i32; 1]> {
    scattered(num_points, seed, |bits| (bits >> 32) as i32)
}

fn scattered<C: Send, const D: usize>(
    num_points: usize,
    seed: u64,
    of: impl Fn(u64) -> C + Sync,
) -> Vec<[C; D]> {
    let point = |i| std::array::from_fn(|axis| of(noise(seed, (i * D + axis) as u64)));
    (0..num_points).into_par_iter().map(point).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_depend_on_the_seed_alone() {
        let points = uniform::<f32, 2>(1000, 7);
        assert_eq!(points, uniform::<f32, 2>(1000, 7));
        assert_ne!(points, uniform::<f32, 2>(1000, 8));
        assert!(points.iter().flatten().all(|x| (0.0..1.0).contains(x)));
        let mean = uniform::<f64, 1>(10_000, 1).as_flattened().iter().sum::<f64>() / 1e4;
        assert!((mean - 0.5).abs() < 0.02, "{mean}");
        // Recorded results were measured with these points.
        assert_eq!(uniform::<f32, 2>(2, 1)[1][0], (0xf893_a2ee_fb32_555e_u64 >> 40) as f32 / 16_777_216.0);
    }
}

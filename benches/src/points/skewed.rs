//! Skewed three-dimensional points as in real data: clusters, duplicates, points on a surface.

use super::{Uniform, noise, uniform};
use rayon::prelude::*;

/// Number of clusters, and the seed of their centers, which is equal for all inputs, so that queries are near points.
const CLUSTERS: f64 = 1000.0;
const CENTERS: u64 = 1 << 40;

/// Returns points in 1000 Gaussian clusters in the unit cube, in random order. The spreads of clusters differ by a factor of
/// 32, their numbers of points by 60.
pub fn clustered(num_points: usize, seed: u64) -> Vec<[f32; 3]> {
    let point = |i: usize| {
        let from = 10 * i as u64;
        // The probability of a cluster is proportional to one over the square root of its number.
        let cluster = (CLUSTERS * f64::uniform(noise(seed, from)).powi(2)) as u64;
        let spread = 1.0 / f64::from(64u32 << (noise(CENTERS, 4 * cluster + 3) % 6));
        std::array::from_fn(|axis| {
            let center = f64::uniform(noise(CENTERS, 4 * cluster + axis as u64));
            (center + spread * gaussian(seed, from + 1 + 3 * axis as u64)) as f32
        })
    };
    (0..num_points).into_par_iter().map(point).collect()
}

/// Returns groups of 16 equal points at uniform positions; equal points are far from each other in the input.
pub fn duplicated<const D: usize>(num_points: usize, seed: u64) -> Vec<[f32; D]> {
    let places = uniform::<f32, D>(num_points.div_ceil(16), seed);
    (0..num_points).into_par_iter().map(|i| places[i % places.len()]).collect()
}

/// Number of parallel flights, which overlap by a fifth of their widths.
const FLIGHTS: usize = 8;
const WIDTH: f64 = 1.2 / FLIGHTS as f64;

/// Returns points as an aircraft's laser scanner records them: hilly ground, a quarter of the points in vegetation above it, in
/// the order of flights and of their scan lines.
pub fn lidar(num_points: usize, seed: u64) -> Vec<[f32; 3]> {
    let per_flight = num_points.div_ceil(FLIGHTS).max(1);
    // Equal density across and along the flight.
    let per_line = ((per_flight as f64 * WIDTH).sqrt() as usize).max(1);
    let lines = per_flight.div_ceil(per_line);
    let point = |i: usize| {
        let (flight, line, place) = (i / per_flight, i % per_flight / per_line, i % per_flight % per_line);
        let random = |k| noise(seed, 7 * i as u64 + k);
        let part = |number: usize, of: usize, k| (number as f64 + f64::uniform(random(k))) / of as f64;
        let turned = |is_back: bool, x: f64| if is_back { 1.0 - x } else { x };
        let x = turned(flight % 2 == 1, part(line, lines, 0));
        let across = turned(line % 2 == 1, part(place, per_line, 1));
        let y = flight as f64 / (FLIGHTS - 1) as f64 * (1.0 - WIDTH) + across * WIDTH;
        let above = if random(2) % 4 == 0 { 0.01 * f64::uniform(random(3)) } else { 0.0 };
        let z = terrain(x, y) + above + 0.0003 * gaussian(seed, 7 * i as u64 + 4);
        [x as f32, y as f32, z as f32]
    };
    (0..num_points).into_par_iter().map(point).collect()
}

const TERRAIN: u64 = 1 << 41;

/// Returns the height of the ground: random heights on lattices of 4 to 128 nodes an axis, smoothly interpolated.
fn terrain(x: f64, y: f64) -> f64 {
    let octave = |octave: u32| {
        let places = f64::from(4u32 << octave);
        let (x, y) = (x * places, y * places);
        let (i, j) = (x as u64, y as u64);
        let corner = |i: u64, j: u64| f64::uniform(noise(TERRAIN, u64::from(octave) << 40 | i << 20 | j));
        let (s, t) = (smooth(x.fract()), smooth(y.fract()));
        let along = |j| (1.0 - s) * corner(i, j) + s * corner(i + 1, j);
        (0.1 / f64::from(1u32 << octave)) * ((1.0 - t) * along(j) + t * along(j + 1))
    };
    (0..6).map(octave).sum()
}

fn smooth(t: f64) -> f64 {
    t * t * (3.0 - 2.0 * t)
}

/// Returns an approximately normal number of mean 0 and variance 1: a sum of twelve uniform numbers, which all machines round
/// alike. Uses three numbers of the noise.
pub(super) fn gaussian(seed: u64, i: u64) -> f64 {
    let parts = |bits: u64| (0..4).map(move |k| (bits >> (16 * k) & 0xFFFF) as f64 + 0.5);
    (0..3).flat_map(|k| parts(noise(seed, i + k))).sum::<f64>() / 65536.0 - 6.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    #[test]
    fn numbers_of_points() {
        for points in [clustered, duplicated, lidar] {
            for n in [0, 1, 17, 1000] {
                let made = points(n, 3);
                assert_eq!(made.len(), n);
                assert!(made.iter().flatten().all(|x| (-1.0..2.0).contains(x)));
                assert!(made == points(n, 3) && (n == 0 || made != points(n, 4)));
            }
        }
    }

    #[test]
    fn gaussians_are_normal() {
        let numbers: Vec<f64> = (0..30_000).map(|i| gaussian(1, 3 * i)).collect();
        let moment = |k| numbers.iter().map(|x| x.powi(k)).sum::<f64>() / 30_000.0;
        assert!(moment(1).abs() < 0.03 && (moment(2) - 1.0).abs() < 0.03, "{} {}", moment(1), moment(2));
    }

    #[test]
    fn sixteen_at_a_place() {
        let mut numbers = HashMap::new();
        for point in duplicated::<3>(1600, 1) {
            *numbers.entry(point.map(f32::to_bits)).or_insert(0) += 1;
        }
        assert!(numbers.len() == 100 && numbers.values().all(|&number| number == 16));
    }

    /// Consecutive points are close to each other, and the flights together cover the square.
    #[test]
    fn scan_lines_follow_each_other() {
        let points = lidar(80_000, 1);
        let mut steps: Vec<f32> =
            points.windows(2).map(|w| (w[0][0] - w[1][0]).hypot(w[0][1] - w[1][1])).collect();
        steps.sort_by(f32::total_cmp);
        assert!(steps[40_000] < 0.01, "{}", steps[40_000]);
        let mut cells: Vec<_> = points.iter().map(|p| ((p[0] * 10.0) as u8, (p[1] * 10.0) as u8)).collect();
        cells.sort_unstable();
        cells.dedup();
        assert_eq!(cells.len(), 100);
    }
}

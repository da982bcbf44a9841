//! Generated two-dimensional points that resemble the New York data of Løvik 2020: degrees in a box of half a
//! degree, harbors off a coast, and trees, tanks and addresses along streets behind it.
//!
//! Only sums, products and quotients of `f64` are used, so that the rival generates equal points
//! (`benches/rivals/real_like.cuh`).

use super::{Uniform, noise};
use rayon::prelude::*;

/// South-western corner, and sides: longitude, latitude.
const LOW: [f64; 2] = [-74.25, 40.5];
const SIDES: [f64; 2] = [0.5, 0.4];
/// Minimum distance to the coast, north or south.
const OFF_COAST: f64 = 0.01;
const COAST: u64 = 1 << 42;
/// Number of stations where water is sampled repeatedly, and the seed of their positions.
const STATIONS: f64 = 128.0;
const PLACES: u64 = 1 << 43;
/// Streets across each side.
const STREETS: f64 = 256.0;

/// Returns samples of water at 128 stations off the coast, at some much more often than at others.
pub fn harbors(num_points: usize, seed: u64) -> Vec<[f32; 2]> {
    let point = |i: usize| {
        let station = (STATIONS * f64::uniform(noise(seed, i as u64)).powi(2)) as u64;
        let [x, off] = [0, 1].map(|k| f64::uniform(noise(PLACES, 2 * station + k)));
        [(LOW[0] + SIDES[0] * x) as f32, (coast(x) - OFF_COAST - 0.03 * off * off) as f32]
    };
    (0..num_points).into_par_iter().map(point).collect()
}

/// Returns objects along streets, denser near the coast.
pub fn inland(num_points: usize, seed: u64) -> Vec<[f32; 2]> {
    let point = |i: usize| {
        let random = |k| noise(seed, 4 * i as u64 + k);
        let [mut x, v, aside] = [0, 1, 2].map(|k| f64::uniform(random(k)));
        let (is_south_north, aside) = (random(3) & 1 == 0, (aside - 0.5) / (20.0 * STREETS));
        if is_south_north {
            x = ((x * STREETS) as u64 as f64 + 0.5) / STREETS + aside;
        }
        let shore = coast(x) + OFF_COAST;
        let mut y = (shore - LOW[1] + v * v * (LOW[1] + SIDES[1] - shore)) / SIDES[1];
        if !is_south_north {
            y = ((y * STREETS) as u64 as f64 + 1.5) / STREETS + aside;
        }
        [(LOW[0] + SIDES[0] * x) as f32, (LOW[1] + SIDES[1] * y) as f32]
    };
    (0..num_points).into_par_iter().map(point).collect()
}

/// Returns the latitude of the coast: random bends of three sizes.
fn coast(x: f64) -> f64 {
    let octave = |octave: u32| {
        let x = x * f64::from(4u32 << octave);
        let (place, t) = (x as u64, x - x as u64 as f64);
        let bend = |i: u64| f64::uniform(noise(COAST, u64::from(octave) << 40 | i));
        let smooth = t * t * (3.0 - 2.0 * t);
        (0.04 / f64::from(1u32 << octave)) * ((1.0 - smooth) * bend(place) + smooth * bend(place + 1))
    };
    40.6 + (octave(0) + octave(1) + octave(2))
}

#[cfg(test)]
mod tests {
    use super::*;
    use kauri::{Device, DistanceJoin};
    use std::collections::HashSet;

    /// Harbors and trees have pairs only beyond a hundredth of a degree; inland sets have pairs at any distance.
    #[test]
    fn sets_touch_past_a_hundredth_of_a_degree() {
        let (device, harbors, trees) = (Device::cpu(), harbors(89_545, 1), inland(683_788, 2));
        let count = |epsilon, left, right| DistanceJoin::new(epsilon).count(&device, left, right).unwrap();
        assert_eq!(count(0.01, &harbors, &trees), 0);
        assert!(count(0.03, &harbors, &trees) > 1000);
        assert!(count(0.0001, &inland(25_054, 3), &trees) > 1000);
    }

    #[test]
    fn points_are_in_the_box() {
        for make in [harbors, inland] {
            let points = make(10_000, 1);
            assert!(points == make(10_000, 1) && points != make(10_000, 2));
            let lies_in = |p: &[f32; 2]| (-74.3..-73.7).contains(&p[0]) && (40.5..40.91).contains(&p[1]);
            assert!(points.iter().all(lies_in), "{:?}", points.iter().find(|p| !lies_in(p)));
        }
        let places: HashSet<_> = harbors(10_000, 1).iter().map(|p| p.map(f32::to_bits)).collect();
        assert!((100..=128).contains(&places.len()), "{}", places.len());
        // Recorded results, also the rival's, were measured with these points.
        let sum = |points: Vec<[f32; 2]>| {
            points.as_flattened().iter().fold(0u64, |sum, x| sum.wrapping_mul(31) + u64::from(x.to_bits()))
        };
        assert_eq!(sum(harbors(1000, 1)), 0x89e4_3b74_8d4b_cbcb);
        assert_eq!(sum(inland(1000, 1)), 0xb047_fa3b_cffd_2d3c);
    }
}

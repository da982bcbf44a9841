//! Random boxes in the unit cube, as Løvik 2020 (*Top-k spatial distance join on the GPU*) describes them, and boxes of skewed sizes and
//! positions. The density of boxes is the sum of their volumes.

use super::skewed::gaussian;
use super::{Uniform, clustered, noise};
use rayon::prelude::*;

/// Returns equal cubes whose low corners are uniform where the cube is inside the unit cube; the rivals generate the same boxes.
pub fn cubes<C: Uniform, const D: usize>(num: usize, density: f64, seed: u64) -> Vec<[[C; D]; 2]> {
    let side = C::from_f64((density / num.max(1) as f64).powf(1.0 / D as f64));
    let space = C::from_f64(1.0) - side;
    boxes(num, |i| (std::array::from_fn(|axis| C::uniform(noise(seed, (i * D + axis) as u64)) * space), side))
}

/// Returns cubes whose sides have a log-normal distribution. Low corners are uniform.
pub fn log_normal<C: Uniform, const D: usize>(num: usize, density: f64, seed: u64) -> Vec<[[C; D]; 2]> {
    let side = log_normal_sides::<D>(num, density, seed);
    boxes(num, |i| {
        let low = std::array::from_fn(|axis| C::uniform(noise(seed, (i * D + axis) as u64)));
        (low, C::from_f64(side(i)))
    })
}

/// Returns the sides of [`log_normal`]: 95 of 100 are within three decades.
fn log_normal_sides<const D: usize>(num: usize, density: f64, seed: u64) -> impl Fn(usize) -> f64 + Sync {
    // Four standard deviations are three decades.
    let deviation = 3.0 / 4.0 * std::f64::consts::LN_10;
    let side = move |i: usize| (deviation * gaussian(seed ^ 1 << 42, 3 * i as u64)).exp();
    let volume: f64 = (0..num).map(|i| side(i).powi(D as i32)).sum();
    let scale = (density / volume.max(f64::MIN_POSITIVE)).powf(1.0 / D as f64);
    move |i| side(i) * scale
}

/// Returns equal squares with low corners in clusters, as [`clustered`] places points.
pub fn clustered_squares(num: usize, density: f64, seed: u64) -> Vec<[[f32; 2]; 2]> {
    let side = (density / num.max(1) as f64).sqrt() as f32;
    in_clusters(num, seed, |_| side)
}

/// Returns squares in clusters with the sides of [`log_normal`].
pub fn clustered_log_normal(num: usize, density: f64, seed: u64) -> Vec<[[f32; 2]; 2]> {
    let side = log_normal_sides::<2>(num, density, seed);
    in_clusters(num, seed, |i| side(i) as f32)
}

fn in_clusters(num: usize, seed: u64, side: impl Fn(usize) -> f32 + Sync) -> Vec<[[f32; 2]; 2]> {
    let lows = clustered(num, seed);
    boxes(num, |i| ([lows[i][0], lows[i][1]], side(i)))
}

fn boxes<C: Uniform, const D: usize>(
    num: usize,
    of: impl Fn(usize) -> ([C; D], C) + Sync,
) -> Vec<[[C; D]; 2]> {
    let make = |i| {
        let (low, side) = of(i);
        [low, low.map(|x| x + side)]
    };
    (0..num).into_par_iter().map(make).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn volumes_sum_to_the_density() {
        let volume = |boxes: &[[[f64; 2]; 2]]| -> f64 {
            boxes.iter().map(|[low, high]| (high[0] - low[0]) * (high[1] - low[1])).sum()
        };
        assert!((volume(&cubes(1000, 0.5, 1)) - 0.5).abs() < 1e-9);
        let boxes = log_normal::<f64, 2>(1000, 2.0, 1);
        assert!((volume(&boxes) - 2.0).abs() < 1e-6);
        let mut sides: Vec<f64> = boxes.iter().map(|[low, high]| high[0] - low[0]).collect();
        sides.sort_by(f64::total_cmp);
        let decades = (sides[975] / sides[25]).log10();
        assert!((2.7..3.3).contains(&decades), "{decades}");
    }
}

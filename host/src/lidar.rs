//! Synthetic airborne laser scans, generated from a seed: for tests, benchmarks and demonstrations of any size. This module does not read
//! LAS or LAZ files; [`KdTree::build_by`](crate::KdTree::build_by) takes the points of any reader.
//!
//! A point depends only on the seed and its index. Scans of any size can be generated in any order, in parts, and by any number of threads,
//! and are never stored. A scan contains:
//! - flight strips that overlap by a fifth, with scan lines in alternating directions; the speed of the aircraft varies, and the density
//!   with it by up to a factor of 4;
//! - relief from fractal noise (Perlin 1985; value noise, eight octaves);
//! - lakes, from which few pulses return;
//! - settlements with gabled roofs;
//! - woods, whose crowns let some pulses through to the ground;
//! - classes of the LAS format (ASPRS 2019).

use crate::error::Result;
use crate::noise::Noise;
use crate::parallel::{self, TASK_ITEMS};
use crate::point::Lattice;
use crate::primitives::generate::splitmix64;
use crate::random::Random;
use std::ops::Range;

/// Distance between the center lines of two strips, in meters.
const STRIP_SPACING: f64 = 400.0;
/// Width of a strip, in meters.
const STRIP_WIDTH: f64 = 500.0;
/// Half the angle that a scan line covers, in radians.
const SCAN_ANGLE: f64 = 0.35;
/// Maximum number of points of a scan line.
const LINE_POINTS: u64 = 1000;
/// The low corner of a scan, in meters of a map projection.
const ORIGIN: [f64; 3] = [450_000.0, 4_400_000.0, 0.0];
/// Step of integer coordinates, in meters.
const SCALE: f64 = 0.01;
/// Distance between large hills, in meters.
const HILLS: f64 = 1200.0;
/// Water level above the lowest possible ground, in meters.
const WATER: f64 = 52.0;
/// One in this many pulses on water returns, on average.
const WATER_RETURNS: u64 = 8;

/// The class of a point: the kind of surface that its pulse was returned from. The value is the class code of LAS files (ASPRS 2019).
///
/// ```
/// use kauri::lidar::{Lidar, LidarClass};
/// let scan = Lidar::new(1000, 1);
/// let ground = scan.points(0..1000)?.iter().filter(|point| point.class == LidarClass::Ground).count();
/// assert!(ground > 0 && LidarClass::Ground as u8 == 2);
/// # Ok::<(), kauri::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
#[non_exhaustive]
pub enum LidarClass {
    /// Bare ground.
    Ground = 2,
    /// Vegetation up to 0.5 m above the ground.
    LowVegetation = 3,
    /// Vegetation up to 2 m above the ground.
    MediumVegetation = 4,
    /// High vegetation: trees.
    HighVegetation = 5,
    /// Roofs.
    Building = 6,
    /// Lakes.
    Water = 9,
}

/// A point of a scan: a position, and the attributes of the returned pulse.
///
/// ```
/// use kauri::lidar::{Lidar, LidarPoint};
/// let LidarPoint { position: [x, y, _], strip, .. } = Lidar::new(1000, 1).point(0);
/// assert!(x >= 450_000.0 && y >= 4_400_000.0 && strip == 0);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct LidarPoint {
    /// x, y and height, in meters.
    pub position: [f64; 3],
    /// Intensity of the returned pulse.
    pub intensity: u16,
    /// The class of the surface that it was returned from.
    pub class: LidarClass,
    /// The index of the flight strip.
    pub strip: u16,
}

/// A laser scan of a square area.
///
/// ```
/// use kauri::lidar::Lidar;
/// let scan = Lidar::new(1_000_000, 1);
/// let points = scan.points(0..1000)?;
/// // Any point can be generated alone.
/// assert_eq!(scan.point(999), points[999]);
/// assert!(points.iter().all(|point| (0..2).all(|axis| {
///     let [low, high] = scan.bounds();
///     (low[axis]..=high[axis]).contains(&point.position[axis])
/// })));
/// # Ok::<(), kauri::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Lidar {
    seed: u64,
    num_points: u64,
    /// Side of the square, in meters.
    side: f64,
    num_strips: u64,
}

impl Lidar {
    /// Returns a scan of `num_points` points with an average density of 8 points per square meter.
    pub fn new(num_points: u64, seed: u64) -> Self {
        Self::with_density(num_points, 8.0, seed)
    }

    /// Returns a scan of `num_points` points with this average density in points per square meter, which must be above 0.
    pub fn with_density(num_points: u64, density: f64, seed: u64) -> Self {
        let side = (num_points.max(1) as f64 / density.max(f64::MIN_POSITIVE)).sqrt();
        let num_strips = ((side / STRIP_SPACING).ceil() as u64).clamp(1, 1 << 16);
        Self { seed, num_points, side, num_strips }
    }

    /// Returns the number of points.
    pub fn len(&self) -> u64 {
        self.num_points
    }

    /// Returns true if there are no points.
    pub fn is_empty(&self) -> bool {
        self.num_points == 0
    }

    /// Returns the least and the greatest x and y that points may have, in meters.
    pub fn bounds(&self) -> [[f64; 2]; 2] {
        [[ORIGIN[0], ORIGIN[1]], [ORIGIN[0] + self.side, ORIGIN[1] + self.side]]
    }

    /// Returns the lattice of a LAS file of this scan: centimeters from the low corner of its [`bounds`](Self::bounds).
    pub fn lattice(&self) -> Lattice {
        Lattice { scale: [SCALE; 3], offset: ORIGIN }
    }

    /// Generates a range of points, in the order of acquisition, on all threads.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`](crate::Error::OutOfMemory).
    ///
    /// # Panics
    /// If the range ends beyond the number of points.
    pub fn points(&self, range: Range<u64>) -> Result<Vec<LidarPoint>> {
        assert!(range.end <= self.num_points, "points {range:?} of {}", self.num_points);
        let len = range.end.saturating_sub(range.start) as usize;
        parallel::collect(len, TASK_ITEMS / 8, "points of a scan", |i| self.point(range.start + i as u64))
    }

    /// Generates point `i`.
    pub fn point(&self, i: u64) -> LidarPoint {
        let per_strip = self.num_points.div_ceil(self.num_strips).max(1);
        let (strip, mut pulse) = (i / per_strip, i % per_strip);
        let mut random = Random::of(self.seed, i);
        let [mut x, mut y] = self.pulse_position(strip, pulse, per_strip, &mut random);
        let mut ground = self.ground(x, y);
        for _ in 0..16 {
            if ground >= WATER || random.below(WATER_RETURNS) == 0 {
                break;
            }
            // This pulse does not return: take another one of the strip.
            pulse = random.below(per_strip);
            [x, y] = self.pulse_position(strip, pulse, per_strip, &mut random);
            ground = self.ground(x, y);
        }
        let (above, class) = self.above(x, y, ground, &mut random);
        let height = ground.max(WATER) + above + 0.03 * random.about_normal();
        let reflectance = match class {
            LidarClass::Ground => 900.0,
            LidarClass::LowVegetation => 1100.0,
            LidarClass::MediumVegetation => 1000.0,
            LidarClass::HighVegetation => 700.0,
            LidarClass::Building => 1400.0,
            LidarClass::Water => 120.0,
        };
        let intensity = (reflectance * (1.0 + 0.2 * random.about_normal())).max(0.0) as u16;
        let position = [ORIGIN[0] + x, ORIGIN[1] + y, ORIGIN[2] + height];
        LidarPoint { position, intensity, class, strip: strip as u16 }
    }

    /// Returns x and y of a pulse of a strip, relative to the low corner.
    fn pulse_position(&self, strip: u64, pulse: u64, per_strip: u64, random: &mut Random) -> [f64; 2] {
        // The length of a line makes the spacing along and across the strip about equal.
        let width = STRIP_WIDTH.min(self.side);
        let per_line = ((per_strip as f64 * width / self.side).sqrt() as u64).clamp(1, LINE_POINTS);
        let (line, index_in_line) = (pulse / per_line, pulse % per_line);
        let num_lines = per_strip.div_ceil(per_line);
        // A random position in interval `i` of `num` on 0 to 1.
        let jittered = |i: u64, num: u64, random: &mut Random| (i as f64 + random.unit()) / num as f64;
        let mut along = jittered(line, num_lines, random);
        // The varying speed; each term is 0 at both ends of the strip.
        for (frequency, change) in [(3.0, 0.3), (11.0, 0.2), (37.0, 0.1)] {
            let sign =
                if splitmix64(self.seed ^ strip << 8 ^ frequency as u64) & 1 == 0 { 1.0 } else { -1.0 };
            let turns = std::f64::consts::TAU * frequency;
            along += sign * change * (turns * along).sin() / turns;
        }
        let mut across = jittered(index_in_line, per_line, random);
        across = if line % 2 == 1 { 1.0 - across } else { across };
        // The mirror turns in even steps of its angle.
        let across = ((2.0 * across - 1.0) * SCAN_ANGLE).tan() / SCAN_ANGLE.tan() * 0.5 + 0.5;
        let along = if strip % 2 == 1 { 1.0 - along } else { along };
        let first = match self.num_strips {
            1 => 0.0,
            strips => strip as f64 / (strips - 1) as f64 * (self.side - width),
        };
        [first + across * width, along * self.side].map(|at| at.clamp(0.0, self.side))
    }

    fn noise(&self) -> Noise {
        Noise { seed: self.seed }
    }

    /// Returns the height of the ground at a position.
    fn ground(&self, x: f64, y: f64) -> f64 {
        self.noise().fractal(8, 75.0, x / HILLS, y / HILLS)
    }

    /// Returns the height above the ground of the surface that a pulse hits, and its class.
    fn above(&self, x: f64, y: f64, ground: f64, random: &mut Random) -> (f64, LidarClass) {
        if ground < WATER {
            return (0.0, LidarClass::Water);
        }
        if let Some(roof) = self.roof(x, y) {
            return (roof, LidarClass::Building);
        }
        let (height, penetration) = (self.crown(x, y), random.unit());
        if height > 2.0 && penetration < 0.7 {
            return (height * (0.7 + 0.3 * random.unit()), LidarClass::HighVegetation);
        }
        match random.below(20) {
            0 => (0.5 + 1.5 * random.unit(), LidarClass::MediumVegetation),
            1..=3 => (0.05 + 0.45 * random.unit(), LidarClass::LowVegetation),
            _ => (0.0, LidarClass::Ground),
        }
    }

    /// Returns the height of the roof at a position, if there is one. A settlement has one house per lot of 40 by 40 meters.
    fn roof(&self, x: f64, y: f64) -> Option<f64> {
        let (random_fraction, middle) = self.object(0x5E77, 40.0, [0.4, 0.2], [x, y]);
        if self.patches(21, middle, 900.0) < 0.6 || random_fraction(16) > 0.8 {
            return None;
        }
        let half = [5.0 + 5.0 * random_fraction(24), 6.0 + 8.0 * random_fraction(32)];
        let from_middle = [(x - middle[0]).abs(), (y - middle[1]).abs()];
        let is_inside = from_middle[0] <= half[0] && from_middle[1] <= half[1];
        // The ridge runs along the middle.
        is_inside.then(|| 3.0 + 9.0 * random_fraction(40) + 0.6 * (half[0] - from_middle[0]))
    }

    /// Returns the height of the crown at a position, or 0. Woods have one tree per square of 6 by 6 meters.
    fn crown(&self, x: f64, y: f64) -> f64 {
        let (random_fraction, middle) = self.object(0x7E3E, 6.0, [0.35, 0.3], [x, y]);
        if self.patches(22, middle, 700.0) < 0.5 {
            return 0.0;
        }
        let (radius, height) = (2.0 + 1.8 * random_fraction(16), 8.0 + 20.0 * random_fraction(24));
        let from_middle = ((x - middle[0]).powi(2) + (y - middle[1]).powi(2)) / radius.powi(2);
        height * (1.0 - from_middle).max(0.0)
    }

    /// Returns the random numbers and the middle of the house or tree of a lot, the square of side `lot` that contains a position. A random
    /// number from 0 to 1 is made of 8 bits from the given one on. The middle is `least` to `least + more` lots from the sides of the lot.
    fn object(
        &self,
        kind: u64,
        lot: f64,
        [least, more]: [f64; 2],
        at: [f64; 2],
    ) -> (impl Fn(u32) -> f64, [f64; 2]) {
        let number = at.map(|at| (at / lot) as u64);
        let object = splitmix64(self.seed ^ kind ^ splitmix64(number[0] << 32 | number[1]));
        let random_fraction = move |bits: u32| (object >> bits & 0xFF) as f64 / 256.0;
        let middle =
            [0, 1].map(|axis| (number[axis] as f64 + least + more * random_fraction(8 * axis as u32)) * lot);
        (random_fraction, middle)
    }

    /// Returns noise from 0 to 1: patches of about `meters` meters with ragged borders. `which` selects independent noise.
    fn patches(&self, which: u64, [x, y]: [f64; 2], meters: f64) -> f64 {
        let [broad, fine] = [(0, 1.0), (64, 5.0)]
            .map(|(more, parts)| self.noise().value(which + more, x * parts / meters, y * parts / meters));
        0.75 * broad + 0.25 * fine
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_classes_occur_and_heights_are_plausible() {
        let scan = Lidar::with_density(400_000, 0.05, 3);
        let points = scan.points(0..scan.len()).unwrap();
        let of = |class| points.iter().filter(|point| point.class == class).collect::<Vec<_>>();
        let all = [
            (LidarClass::Ground, 0.2..0.9),
            (LidarClass::LowVegetation, 0.02..0.3),
            (LidarClass::MediumVegetation, 0.005..0.2),
            (LidarClass::HighVegetation, 0.02..0.5),
            (LidarClass::Building, 0.002..0.3),
            (LidarClass::Water, 0.0005..0.3),
        ];
        for (class, share) in all {
            let found = of(class).len() as f64 / points.len() as f64;
            assert!(share.contains(&found), "{class:?}: {found}");
        }
        assert!(of(LidarClass::Water).iter().all(|point| (point.position[2] - WATER).abs() < 1.0));
        assert!(points.iter().all(|point| (0.0..400.0).contains(&point.position[2])));
    }

    #[test]
    fn density_changes_along_and_across() {
        let scan = Lidar::with_density(400_000, 0.4, 5);
        let [low, high] = scan.bounds();
        let mut counts = [[0_u32; 20]; 20];
        for point in scan.points(0..scan.len()).unwrap() {
            let cell = [0, 1].map(|axis| {
                let part = (point.position[axis] - low[axis]) / (high[axis] - low[axis]);
                (part * 20.0).min(19.0) as usize
            });
            counts[cell[0]][cell[1]] += 1;
        }
        let all = counts.as_flattened();
        let (least, most) = (all.iter().min().unwrap(), all.iter().max().unwrap());
        assert!(*most > 2 * least.max(&1), "{least} to {most}");
    }

    #[test]
    fn parts_equal_the_whole() {
        let scan = Lidar::new(10_000, 7);
        let whole = scan.points(0..10_000).unwrap();
        assert_eq!(scan.points(4000..4100).unwrap(), whole[4000..4100]);
        assert_ne!(Lidar::new(10_000, 8).point(5), whole[5]);
        assert!(Lidar::new(0, 1).points(0..0).unwrap().is_empty());
    }

    #[test]
    fn any_part_by_any_number_of_threads() {
        let scan = Lidar::with_density(20_000, 0.02, 11);
        let whole = scan.points(0..scan.len()).unwrap();
        let [low, high] = scan.bounds();
        let is_inside = |at: [f64; 3]| (0..2).all(|axis| low[axis] <= at[axis] && at[axis] <= high[axis]);
        assert!(whole.iter().all(|point| is_inside(point.position)));
        for (threads, part) in [(1, 20_000), (2, 7001), (3, 64), (5, 1)] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let parts = pool.install(|| {
                let begins = (0..scan.len()).step_by(part);
                begins
                    .flat_map(|begin| scan.points(begin..scan.len().min(begin + part as u64)).unwrap())
                    .collect()
            });
            let parts: Vec<LidarPoint> = parts;
            assert!(parts == whole, "{threads} threads, {part} points each");
        }
    }
}

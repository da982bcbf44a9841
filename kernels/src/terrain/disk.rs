//! Statistics of the points around a position.
//!
//! Sums are sums of integers, so the order of the points does not matter.

use super::tree::{Corners, Search, distance2, distance2_to_box};
use cuda_std::float::sqrt_f64;

/// The statistic of a launch.
pub mod statistic {
    /// The least height.
    pub const MIN: u32 = 0;
    /// The greatest height.
    pub const MAX: u32 = 1;
    /// The average height.
    pub const MEAN: u32 = 2;
    /// The number of points.
    pub const COUNT: u32 = 3;
    /// The standard deviation of the population.
    pub const STANDARD_DEVIATION: u32 = 4;
}

/// The number of points in a disk, their least and greatest height, and the sums of heights and of their squares.
#[derive(Clone, Copy, Debug)]
pub struct Disk<H> {
    position: [i32; 2],
    radius2: i64,
    heights: H,
    count: u32,
    least: i32,
    greatest: i32,
    sum: i64,
    sum2: u128,
}

impl<H: Fn(u32) -> i32> Disk<H> {
    /// Creates a disk, borders included, without points; `heights` returns the height of a slot.
    #[inline(always)]
    pub fn new(position: [i32; 2], radius2: i64, heights: H) -> Self {
        let (least, greatest) = (i32::MAX, i32::MIN);
        Self { position, radius2, heights, count: 0, least, greatest, sum: 0, sum2: 0 }
    }

    /// Returns a [`statistic`] in steps; `None` without points.
    #[inline(always)]
    pub fn value(&self, statistic: u32) -> Option<f64> {
        let count = f64::from(self.count);
        if self.count == 0 {
            return None;
        }
        Some(match statistic {
            statistic::MIN => f64::from(self.least),
            statistic::MAX => f64::from(self.greatest),
            statistic::MEAN => self.sum as f64 / count,
            statistic::COUNT => count,
            _ => {
                // n^2 times the variance.
                let squared = self.sum as i128 * self.sum as i128;
                sqrt_f64(to_f64(self.count as i128 * self.sum2 as i128 - squared)) / count
            }
        })
    }
}

impl<H: Fn(u32) -> i32> Search for Disk<H> {
    type Key = i64;

    #[inline(always)]
    fn bound(&self) -> i64 {
        self.radius2
    }

    #[inline(always)]
    fn key(&self, corners: Corners) -> i64 {
        distance2_to_box(self.position, corners)
    }

    #[inline(always)]
    fn visit(&mut self, slot: u32, position: [i32; 2]) {
        if distance2(self.position, position) <= self.radius2 {
            let height = (self.heights)(slot);
            self.count += 1;
            self.least = self.least.min(height);
            self.greatest = self.greatest.max(height);
            self.sum += height as i64;
            self.sum2 += (height as i64 * height as i64) as u128;
        }
    }
}

/// The average of the heights in a disk, weighted by inverse distance. Weights are integers relative to the weight of the nearest point.
#[derive(Clone, Copy, Debug)]
pub struct WeightedDisk<H> {
    position: [i32; 2],
    radius2: i64,
    nearest2: i64,
    power: u32,
    heights: H,
    weights: u128,
    weighted: i128,
}

/// The integer weight of the nearest point. Points whose weight is less than a half are left out.
const WEIGHT: f64 = (1_u64 << 40) as f64;

impl<H: Fn(u32) -> i32> WeightedDisk<H> {
    /// Creates a disk without points. The nearest point has the squared distance `nearest2`.
    #[inline(always)]
    pub fn new(position: [i32; 2], radius2: i64, nearest2: i64, power: u32, heights: H) -> Self {
        Self { position, radius2, nearest2, power, heights, weights: 0, weighted: 0 }
    }

    /// Returns the average in steps. There is at least the nearest point.
    #[inline(always)]
    pub fn value(&self) -> f64 {
        to_f64(self.weighted) / to_f64(self.weights as i128)
    }
}

impl<H: Fn(u32) -> i32> Search for WeightedDisk<H> {
    type Key = i64;

    #[inline(always)]
    fn bound(&self) -> i64 {
        self.radius2
    }

    #[inline(always)]
    fn key(&self, corners: Corners) -> i64 {
        distance2_to_box(self.position, corners)
    }

    #[inline(always)]
    fn visit(&mut self, slot: u32, position: [i32; 2]) {
        let distance2 = distance2(self.position, position);
        if distance2 <= self.radius2 {
            let weight = relative_weight(self.nearest2 as f64, distance2 as f64, self.power);
            let weight = (weight * WEIGHT + 0.5) as u64;
            self.weights += weight as u128;
            self.weighted += weight as i128 * (self.heights)(slot) as i128;
        }
    }
}

/// Returns `(nearest / distance)^power` of two squared distances, 1 if they are equal.
#[inline(always)]
pub fn relative_weight(nearest2: f64, distance2: f64, power: u32) -> f64 {
    if nearest2 == distance2 {
        return 1.0;
    }
    let ratio2 = nearest2 / distance2;
    let mut weight = if power % 2 == 1 { sqrt_f64(ratio2) } else { 1.0 };
    for _ in 0..power / 2 {
        weight *= ratio2;
    }
    weight
}

/// Returns the average of heights weighted by inverse distance, in steps. The rows are those of a search for the nearest points: the
/// nearest first, padded at the end with infinite distances.
///
/// # Safety
/// `row` and `heights` are valid for indexes below `k` and for the slots of the row.
#[inline(always)]
pub unsafe fn weighted_row(
    k: usize,
    power: u32,
    row: impl Fn(usize) -> (f64, u32),
    heights: impl Fn(u32) -> i32,
) -> Option<f64> {
    let (nearest2, first) = row(0);
    if nearest2 == f64::INFINITY {
        return None;
    }
    let reference = f64::from(heights(first));
    let (mut weighted, mut weights) = (0.0, 1.0);
    let mut i = 1;
    while i < k {
        let (distance2, slot) = row(i);
        if distance2 == f64::INFINITY {
            break;
        }
        let weight = relative_weight(nearest2, distance2, power);
        weights += weight;
        weighted += weight * (f64::from(heights(slot)) - reference);
        i += 1;
    }
    Some(reference + weighted / weights)
}

/// Rounds an integer to a float, in two steps.
#[inline(always)]
fn to_f64(value: i128) -> f64 {
    const HIGH: f64 = (1_u128 << 64) as f64;
    (value >> 64) as i64 as f64 * HIGH + value as u64 as f64
}

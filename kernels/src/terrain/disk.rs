//! Statistics of the points around a position.
//!
//! Sums are sums of integers, so the order of the points does not matter.

use super::tree::{
    Corners, Missing, NO_SLOT, NOWHERE2, Nearest, Points, Search, distance2, distance2_to_box,
};
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
struct Disk<'a, P> {
    points: &'a P,
    position: [i32; 2],
    radius2: i64,
    count: u32,
    least: i32,
    greatest: i32,
    sum: i64,
    sum2: u128,
}

/// Returns a [`statistic`](mod@statistic) of the points within a radius of a position, borders included, in steps.
///
/// # Safety
/// As [`Points::search`].
#[inline(always)]
pub unsafe fn statistic<P: Points>(
    points: &P,
    position: Option<[i32; 2]>,
    radius2: i64,
    statistic: u32,
) -> Result<f64, Missing> {
    let radius2 = if position.is_some() { radius2 } else { NOWHERE2 };
    let (position, least, greatest) = (position.unwrap_or_default(), i32::MAX, i32::MIN);
    let mut disk = Disk { points, position, radius2, count: 0, least, greatest, sum: 0, sum2: 0 };
    points.search(None, &mut disk);
    points.check_disk(position.map(f64::from), sqrt_f64(radius2 as f64))?;
    disk.value(statistic)
}

impl<P> Disk<'_, P> {
    #[inline(always)]
    fn value(&self, statistic: u32) -> Result<f64, Missing> {
        let count = f64::from(self.count);
        if self.count == 0 {
            return Err(Missing::NoValue);
        }
        Ok(match statistic {
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

impl<P: Points> Search for Disk<'_, P> {
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
            // SAFETY: the search visits slots of the points.
            let height = unsafe { self.points.height(slot) };
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
struct WeightedDisk<'a, P> {
    points: &'a P,
    position: [i32; 2],
    radius2: i64,
    nearest2: i64,
    power: u32,
    weights: u128,
    weighted: i128,
}

/// The integer weight of the nearest point. Points whose weight is less than a half are left out.
const WEIGHT: f64 = (1_u64 << 40) as f64;

/// Returns the average of the points within a radius of a position, weighted by inverse distance, in steps.
///
/// # Safety
/// As [`Points::search`].
#[inline(always)]
pub unsafe fn weighted_disk<P: Points>(
    points: &P,
    position: Option<[i32; 2]>,
    radius2: i64,
    power: u32,
) -> Result<f64, Missing> {
    let mut nearest = Nearest::new(position, NO_SLOT, radius2);
    points.search(None, &mut nearest);
    let is_found = nearest.slot != NO_SLOT;
    let (position, nearest2) = (position.unwrap_or_default(), nearest.distance2);
    let within2 = if is_found { radius2 } else { NOWHERE2 };
    let mut disk =
        WeightedDisk { points, position, radius2: within2, nearest2, power, weights: 0, weighted: 0 };
    points.search(is_found.then_some(nearest.slot), &mut disk);
    points.check_disk(position.map(f64::from), sqrt_f64(radius2 as f64))?;
    if !is_found {
        return Err(Missing::NoValue);
    }
    Ok(to_f64(disk.weighted) / to_f64(disk.weights as i128))
}

impl<P: Points> Search for WeightedDisk<'_, P> {
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
            // SAFETY: the search visits slots of the points.
            self.weighted += weight as i128 * unsafe { self.points.height(slot) } as i128;
        }
    }
}

/// Returns `(nearest / distance)^power` of two squared distances, 1 if they are equal.
#[inline(always)]
pub(super) fn relative_weight(nearest2: f64, distance2: f64, power: u32) -> f64 {
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

/// Rounds an integer to a float, in two steps.
#[inline(always)]
fn to_f64(value: i128) -> f64 {
    const HIGH: f64 = (1_u128 << 64) as f64;
    (value >> 64) as i64 as f64 * HIGH + value as u64 as f64
}

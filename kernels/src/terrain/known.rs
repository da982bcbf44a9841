//! Where all points of a cloud are known.

use cuda_std::KernelArgs;
use cuda_std::float::sqrt_f64;

/// The part of the plane in which all points of a cloud are known. There are none outside of the bounding box of the cloud, so only the part of a
/// disk that is in this box matters: the circles of thin triangles at the convex hull are large, and most of their area is outside.
#[derive(Clone, Copy, Debug, PartialEq, KernelArgs)]
pub struct Known {
    /// The rectangle in which all points are known.
    pub part: crate::terrain::known::Rectangle,
    /// A rectangle that contains all points of the cloud.
    pub cloud: crate::terrain::known::Rectangle,
}

impl Known {
    /// All points are known.
    pub const ALL: Self = Self { part: Rectangle::PLANE, cloud: Rectangle::PLANE };

    /// True if all points of a rectangle are known.
    #[inline(always)]
    pub fn covers(&self, corners: [[f64; 2]; 2]) -> bool {
        self.part.contains(corners)
    }

    /// True if all points of a disk are known. The errors of its center and its radius are less than the radius exceeds the true one.
    #[inline(always)]
    pub fn covers_disk(&self, center: [f64; 2], radius: f64) -> bool {
        let low = center.map(|middle| middle - radius);
        let high = center.map(|middle| middle + radius);
        self.covers([low, high]) || self.covers(self.cloud.part_of_disk(center, radius))
    }
}

/// A rectangle with its border.
#[derive(Clone, Copy, Debug, PartialEq, KernelArgs)]
pub struct Rectangle {
    /// The least x.
    pub low_x: f64,
    /// The least y.
    pub low_y: f64,
    /// The greatest x.
    pub high_x: f64,
    /// The greatest y.
    pub high_y: f64,
}

impl Rectangle {
    /// The whole plane.
    pub const PLANE: Self = Self {
        low_x: f64::NEG_INFINITY,
        low_y: f64::NEG_INFINITY,
        high_x: f64::INFINITY,
        high_y: f64::INFINITY,
    };

    /// Creates a rectangle between two corners.
    pub fn new([[low_x, low_y], [high_x, high_y]]: [[f64; 2]; 2]) -> Self {
        Self { low_x, low_y, high_x, high_y }
    }

    #[inline(always)]
    fn contains(&self, [low, high]: [[f64; 2]; 2]) -> bool {
        self.low_x <= low[0] && self.low_y <= low[1] && high[0] <= self.high_x && high[1] <= self.high_y
    }

    /// Returns the corners of a rectangle that contains the common part of this one and a disk.
    #[inline(always)]
    fn part_of_disk(&self, [x, y]: [f64; 2], radius: f64) -> [[f64; 2]; 2] {
        // Half of the chord of the disk that is nearest to its center, of those whose place on an axis is within the rectangle.
        let half = |center: f64, low: f64, high: f64| {
            let distance = (low - center).max(center - high).max(0.0);
            sqrt_f64(((radius - distance) * (radius + distance)).max(0.0))
        };
        let (half_x, half_y) = (half(y, self.low_y, self.high_y), half(x, self.low_x, self.high_x));
        let low = [(x - half_x).max(self.low_x), (y - half_y).max(self.low_y)];
        [low, [(x + half_x).min(self.high_x), (y + half_y).min(self.high_y)]]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disks_at_the_border_of_a_cloud() {
        let cloud = Rectangle::new([[0.0; 2], [100.0; 2]]);
        let known = |corners| Known { part: Rectangle::new(corners), cloud };
        // Within, and with a part outside of the cloud.
        assert!(known([[10.0; 2], [20.0; 2]]).covers_disk([15.0; 2], 5.0));
        assert!(!known([[10.0; 2], [20.0; 2]]).covers_disk([15.0; 2], 6.0));
        assert!(known([[0.0; 2], [20.0; 2]]).covers_disk([5.0; 2], 8.0));
        // A large disk left of the cloud has its points at x up to 1 and y from 40 - 14.2 to 40 + 14.2.
        let disk = |known: Known| known.covers_disk([-99.0, 40.0], 100.0);
        assert!(disk(known([[-5.0, 25.0], [1.0, 55.0]])));
        assert!(!disk(known([[-5.0, 27.0], [1.0, 55.0]])));
        assert!(!disk(known([[-5.0, 25.0], [0.5, 55.0]])));
        // Far from the cloud there are no points.
        assert!(known([[-1e9; 2], [1e9; 2]]).covers_disk([1000.0; 2], 5.0));
        assert!(!known([[1.0; 2], [99.0; 2]]).covers_disk([50.0; 2], f64::INFINITY));
        assert!(known([[0.0; 2], [100.0; 2]]).covers_disk([50.0; 2], f64::INFINITY));
        assert!(Known::ALL.covers_disk([50.0; 2], f64::INFINITY));
    }
}

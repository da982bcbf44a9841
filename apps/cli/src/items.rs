//! The items in the rows of a join: places, points of the plane, or boxes.

use kauri::LonLat;
use kauri::io::Geometries;

/// A point of the plane.
pub(super) type Planar = [f64; 2];

/// A box of two dimensions: its low and its high corner.
pub(super) type Bounds = [[f64; 2]; 2];

/// An item of a join: a place, a point of the plane, or a box.
pub(super) trait Item: Copy + Default + Send + Sync {
    /// The name of several items.
    const NAME: &'static str;

    /// Returns the distance in the output: in meters between places, in the units of the coordinates between points and boxes.
    fn distance(&self, other: &Self) -> f64;

    /// Returns the items for [`PairTable`](kauri::io::PairTable).
    fn geometries(items: &[Self]) -> Geometries<'_>;
}

impl Item for LonLat {
    const NAME: &'static str = "places";

    fn distance(&self, other: &Self) -> f64 {
        self.meters_to(other)
    }

    fn geometries(items: &[Self]) -> Geometries<'_> {
        Geometries::Places(items)
    }
}

impl Item for Planar {
    const NAME: &'static str = "points";

    fn distance(&self, other: &Self) -> f64 {
        let [x, y] = [self[0] - other[0], self[1] - other[1]];
        (x * x + y * y).sqrt()
    }

    fn geometries(items: &[Self]) -> Geometries<'_> {
        Geometries::Points(items)
    }
}

impl Item for Bounds {
    const NAME: &'static str = "boxes";

    fn distance(&self, other: &Self) -> f64 {
        let gap = |axis: usize| (self[0][axis] - other[1][axis]).max(other[0][axis] - self[1][axis]).max(0.0);
        (gap(0) * gap(0) + gap(1) * gap(1)).sqrt()
    }

    fn geometries(items: &[Self]) -> Geometries<'_> {
        Geometries::Boxes(items)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_of_boxes() {
        let boxes = [[[0.0, 0.0], [2.0, 1.0]], [[5.0, 5.0], [6.0, 6.0]], [[1.0, 0.5], [9.0, 4.0]]];
        let distance = |a: usize, b: usize| boxes[a].distance(&boxes[b]);
        assert_eq!([distance(0, 1), distance(1, 0), distance(0, 2), distance(1, 2)], [5.0, 5.0, 0.0, 1.0]);
    }

    #[test]
    fn distances_of_points() {
        assert_eq!([1.0, 2.0].distance(&[4.0, -2.0]), 5.0);
    }
}

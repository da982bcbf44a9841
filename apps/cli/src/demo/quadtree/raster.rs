//! A terrain as a raster.

use super::land::{Land, distance2};
use super::scan::Return;
use crate::Result;

/// Direction to the light, in the north-west as on maps.
const LIGHT: [f64; 3] = [-0.5, 0.5, 0.7];
/// Factor by which slopes are exaggerated.
const STEEPER: f64 = 1.5;

/// Squares of a terrain, in rows from the north.
pub(super) struct Raster {
    side: usize,
    /// The sides of a square along x and y, in meters.
    step: [f64; 2],
    /// The centers of the squares.
    places: Vec<[f64; 2]>,
    /// The leaves that contain the squares' centers.
    pub(super) leaves: Vec<u32>,
}

impl Raster {
    /// Divides the terrain into `side` x `side` squares.
    pub(super) fn of(land: &Land<'_>, side: u32) -> Result<Self> {
        let side = side as usize;
        let [low, high] = land.bounds;
        let step = [0, 1].map(|axis| (high[axis] - low[axis]) / side as f64);
        let place = |i: usize| {
            [low[0] + ((i % side) as f64 + 0.5) * step[0], high[1] - ((i / side) as f64 + 0.5) * step[1]]
        };
        let places: Vec<_> = (0..side * side).map(place).collect();
        let leaves = land.leaves_at(&places)?;
        Ok(Self { side, step, places, leaves })
    }

    /// Returns, for each square, the laser return of the nearest point in its leaf, or in adjacent leaves if the leaf is empty.
    pub(super) fn nearest(&self, land: &Land<'_>) -> Result<Vec<Option<Return>>> {
        let is_empty = |&leaf: &u32| land.nodes.get(leaf as usize).is_some_and(|node| node.is_empty());
        let mut empty: Vec<u32> = self.leaves.iter().copied().filter(is_empty).collect();
        empty.sort_unstable();
        empty.dedup();
        let around = land.tree.adjacent_leaves(&empty)?;
        let nearest = |(&place, leaf): (&[f64; 2], &u32)| {
            let leaves = match empty.binary_search(leaf) {
                Ok(row) => around.row(row),
                Err(_) if land.nodes.len() <= *leaf as usize => &[],
                Err(_) => std::slice::from_ref(leaf),
            };
            let points = leaves.iter().flat_map(|&leaf| land.points_of(leaf));
            let near = |point| distance2(point, place);
            points.min_by(|(a, _), (b, _)| near(*a).total_cmp(&near(*b))).map(|(_, back)| back)
        };
        Ok(self.places.iter().zip(&self.leaves).map(nearest).collect())
    }

    /// Returns the brightness of each square, 1 for level ground: a relief of heights, smoothed over three by three squares.
    pub(super) fn lights(&self, returns: &[Option<Return>]) -> Vec<f64> {
        let side = self.side as i32;
        let clamped = |at: i32| at.clamp(0, side - 1);
        let at = |column: i32, row: i32| (clamped(row) * side + clamped(column)) as usize;
        let smooth = |i: i32| {
            let (mut sum, mut count) = (0.0, 0.0);
            for (column, row) in (-1..2).flat_map(|row| (-1..2).map(move |column| (column, row))) {
                if let Some(back) = &returns[at(i % side + column, i / side + row)] {
                    (sum, count) = (sum + f64::from(back.height), count + 1.0);
                }
            }
            sum / f64::max(count, 1.0)
        };
        let heights: Vec<f64> = (0..side * side).map(smooth).collect();
        let light = |i: i32| {
            let height = |column, row| heights[at(i % side + column, i / side + row)];
            let slope = [
                STEEPER * (height(1, 0) - height(-1, 0)) / (2.0 * self.step[0]),
                STEEPER * (height(0, -1) - height(0, 1)) / (2.0 * self.step[1]),
            ];
            let normal = (slope[0].powi(2) + slope[1].powi(2) + 1.0).sqrt();
            let light = (LIGHT[2] - slope[0] * LIGHT[0] - slope[1] * LIGHT[1]) / (LIGHT[2] * normal);
            0.3 + 0.7 * light.max(0.0)
        };
        (0..side * side).map(light).collect()
    }
}

//! A grid of cells at least as long as a distance, so that points within it of each other are in cells that touch.

use super::curve::{Curve, most_bits};
use crate::thread::coord::Coord;

/// By so much a cell is longer than the distance: more than what coordinates, distances and numbers of cells are rounded by.
const MARGIN: f64 = 1.0 + 1.0 / 32768.0;

/// Cells of the same length on all axes, between two corners.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Grid<const D: usize> {
    /// The corners. Points beyond them are in no cell.
    pub low: [f64; D],
    /// The same.
    pub high: [f64; D],
    /// The inverse of a cell's length.
    pub cells_per_unit: f64,
    /// Bits of a cell's number on an axis.
    pub bits: u32,
    /// The order of cells.
    pub curve: Curve,
}

impl<const D: usize> Grid<D> {
    /// The grid with the smallest cells for a distance along an axis, of as many as codes of 64 bits allow.
    ///
    /// `distance` is 0 or more; from the low corner to the high one it is as far or nothing.
    pub fn new(low: [f64; D], high: [f64; D], distance: f64, curve: Curve) -> Self {
        let (mut extent, mut axis) = (0.0, 0);
        while axis < D {
            extent = f64::max(extent, high[axis] - low[axis]);
            axis += 1;
        }
        // One less than there may be, for what is rounded.
        let most_cells = (u32::MAX >> (32 - most_bits(D))) as f64;
        let length = f64::max(distance * MARGIN, extent / most_cells);
        // Points that are all in one place, or so near each other that it makes no difference.
        let cells_per_unit = if length > f64::MIN_POSITIVE { 1.0 / length } else { 0.0 };
        let last = (extent * cells_per_unit) as u32;
        let bits = (32 - last.leading_zeros()).clamp(1, most_bits(D));
        Self { low, high, cells_per_unit, bits, curve }
    }

    /// The cell of a point.
    #[inline(always)]
    pub fn cell<C: Coord>(&self, point: [C; D]) -> Option<[u32; D]> {
        let (mut cell, mut axis) = ([0; D], 0);
        while axis < D {
            let x = point[axis].to_f64();
            if x < self.low[axis] || x > self.high[axis] {
                return None;
            }
            let number = ((x - self.low[axis]) * self.cells_per_unit) as u32;
            cell[axis] = if number < self.last() { number } else { self.last() };
            axis += 1;
        }
        Some(cell)
    }

    /// The last number of a cell on an axis.
    #[inline(always)]
    pub const fn last(&self) -> u32 {
        u32::MAX >> (32 - self.bits)
    }

    /// The place of a cell in the order of cells.
    #[inline(always)]
    pub const fn code(&self, cell: [u32; D]) -> u64 {
        self.curve.code(cell, self.bits)
    }

    /// Cells that touch a cell, with itself.
    pub const AROUND: u32 = 3_u32.pow(D as u32);

    /// One of the [`AROUND`](Self::AROUND) cells around a cell, unless the grid ends there. No two are the same.
    #[inline(always)]
    pub const fn around(&self, cell: [u32; D], mut which: u32) -> Option<[u32; D]> {
        let (mut other, mut axis) = (cell, 0);
        while axis < D {
            // One back, none, one on.
            let number = cell[axis].wrapping_add(which % 3).wrapping_sub(1);
            if number > self.last() {
                return None;
            }
            other[axis] = number;
            which /= 3;
            axis += 1;
        }
        Some(other)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::vec::Vec;

    fn touch<const D: usize>(a: [u32; D], b: [u32; D]) -> bool {
        a.iter().zip(b).all(|(&a, b)| a.abs_diff(b) <= 1)
    }

    /// Numbers from 0 to below 1.
    fn random(seed: u64) -> impl Iterator<Item = f64> {
        (seed..).map(|i| {
            let bits = crate::primitives::generate::splitmix64(i);
            (bits >> 11) as f64 / (1_u64 << 53) as f64
        })
    }

    #[test]
    fn points_within_the_distance_are_in_cells_that_touch() {
        for (seed, distance) in [1.0, 0.3, 1e-3, 1e-7, 1e-12, 0.0].into_iter().enumerate() {
            for (low, high) in [(0.0, 1.0), (-1e9, 1e9), (1e15, 1e15 + 1e4), (5.0, 5.0)] {
                let grid = Grid::new([low, low], [high, high], distance, Curve::Hilbert);
                for at in random(1000 * seed as u64).take(2000) {
                    let a = f64::clamp(low + at * (high - low), low, high);
                    // The farthest that is still as near.
                    let b = f64::min(a + distance, high);
                    let b = if b - a > distance { b.next_down() } else { b };
                    let cells = [[a, low], [b, high]].map(|point| grid.cell(point).unwrap());
                    assert!(cells[0][0].abs_diff(cells[1][0]) <= 1, "{a} and {b}, {grid:?}");
                }
            }
        }
    }

    #[test]
    fn single_precision_is_rounded_no_farther() {
        let grid = Grid::new([-1.0; 1], [1.0; 1], 1e-6, Curve::ZOrder);
        for at in random(7).take(100_000) {
            let a = (2.0 * at - 1.0) as f32;
            let b = (a + 1e-6).min(1.0);
            if (b - a) * (b - a) <= 1e-6 * 1e-6 {
                assert!(touch(grid.cell([a]).unwrap(), grid.cell([b]).unwrap()), "{a} and {b}");
            }
        }
    }

    #[test]
    fn corners_are_inside_and_what_is_beyond_is_not() {
        let grid = Grid::new([0.0, -2.0], [1.0, 2.0], 0.5, Curve::Linear);
        assert_eq!(grid.cell([0.0_f32, -2.0]), Some([0, 0]));
        assert!(grid.cell([1.0_f32, 2.0]).is_some());
        assert_eq!(grid.cell([1.0_f32.next_up(), 2.0]), None);
        assert_eq!(grid.cell([0.0_f32.next_down(), 2.0]), None);
        assert_eq!(grid.cell([0.5_f32, -2.1]), None);
    }

    fn cells_around<const D: usize>() {
        let grid = Grid::new([0.0; D], [1.0; D], 0.1, Curve::Hilbert);
        for (cell, expected) in [([0; D], 2_usize.pow(D as u32)), ([3; D], 3_usize.pow(D as u32))] {
            let all: Vec<_> = (0..Grid::<D>::AROUND).filter_map(|i| grid.around(cell, i)).collect();
            assert_eq!(all.len(), expected);
            assert!(all.iter().all(|&other| touch(cell, other)) && all.contains(&cell));
            let mut codes: Vec<_> = all.iter().map(|&other| grid.code(other)).collect();
            codes.sort_unstable();
            codes.dedup();
            assert_eq!(codes.len(), expected, "no two have the same code");
        }
        let last = [grid.last(); D];
        assert_eq!((0..Grid::<D>::AROUND).filter_map(|i| grid.around(last, i)).count(), 1 << D);
    }

    #[test]
    fn neighbours_of_cells() {
        cells_around::<1>();
        cells_around::<2>();
        cells_around::<3>();
        cells_around::<4>();
        cells_around::<5>();
        cells_around::<6>();
    }
}

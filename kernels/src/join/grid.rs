//! A grid whose cells are at least as long as a distance, so that points within the distance are in the same or adjacent cells.

use super::curve::{Curve, MAX_DIMS, most_bits};
use crate::thread::coord::Float;
use cuda_std::prelude::*;

/// Length of a cell relative to the distance. The margin exceeds the rounding of coordinates, distances and cell coordinates.
const MARGIN: f64 = 1.0 + 1.0 / 32768.0;

/// Powers of three: the number of neighbor cells of a cell, including itself, by dimensions.
const AROUND: [u32; MAX_DIMS + 1] = [1, 3, 9, 27, 81, 243, 729];

/// A grid of cubic cells between two corners, of `D` dimensions; if `D` is [`MAX_DIMS`], of `dims` dimensions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Grid<const D: usize> {
    /// Number of dimensions.
    pub dims: usize,
    /// The low corner. Points outside the corners are in no cell.
    pub low: [f64; D],
    /// The high corner.
    pub high: [f64; D],
    /// The inverse of the length of a cell.
    pub cells_per_unit: f64,
    /// Bits of a cell's coordinate on an axis.
    pub bits: u32,
    /// The order of cells.
    pub curve: Curve,
}

impl<const D: usize> Grid<D> {
    /// Creates the grid with the smallest cells for a distance along an axis, as far as 64-bit codes allow.
    ///
    /// `distance` is not negative, and the high corner is not below the low corner.
    pub fn new(dims: usize, low: [f64; D], high: [f64; D], distance: f64, curve: Curve) -> Self {
        let extent = (0..dims).map(|axis| high[axis] - low[axis]).fold(0.0, f64::max);
        // One cell less than possible, because of rounding.
        let most_cells = f64::from(u32::MAX >> (32 - most_bits(dims)));
        let length = f64::max(distance * MARGIN, extent / most_cells);
        // If all points are equal, or almost, the grid has one cell.
        let cells_per_unit = if length > f64::MIN_POSITIVE { 1.0 / length } else { 0.0 };
        let last = (extent * cells_per_unit) as u32;
        let bits = (32 - last.leading_zeros()).clamp(1, most_bits(dims));
        Self { dims, low, high, cells_per_unit, bits, curve }
    }

    /// Returns the number of dimensions, a constant for all kernel instances but the general one.
    #[inline(always)]
    const fn dims(&self) -> usize {
        if D < MAX_DIMS { D } else { self.dims }
    }

    /// Returns the cell of a point, or `None` outside the grid.
    #[inline(always)]
    pub fn cell<C: Float>(&self, point: [C; D]) -> Option<[u32; D]> {
        let (mut cell, mut is_inside, mut axis) = ([0; D], true, 0);
        while axis < D {
            if axis < self.dims() {
                let x = point[axis].to_f64();
                is_inside &= x >= self.low[axis] && x <= self.high[axis];
                let number = ((x - self.low[axis]) * self.cells_per_unit) as u32;
                cell[axis] = if number < self.last() { number } else { self.last() };
            }
            axis += 1;
        }
        if is_inside { Some(cell) } else { None }
    }

    /// Returns the greatest coordinate of a cell on an axis.
    #[inline(always)]
    pub const fn last(&self) -> u32 {
        u32::MAX >> (32 - self.bits)
    }

    /// Returns the code of a cell.
    #[inline(always)]
    pub const fn code(&self, cell: [u32; D]) -> u64 {
        self.curve.code(cell, self.dims(), self.bits)
    }

    /// Returns the number of bits of a code.
    pub const fn code_bits(&self) -> u32 {
        self.bits * self.dims as u32
    }

    /// Returns the number of runs of consecutive codes that cover the neighbor cells of a cell: in row-major order a run has three cells.
    #[inline(always)]
    pub const fn num_runs(&self) -> u32 {
        match self.curve {
            Curve::Linear => AROUND[self.dims() - 1],
            _ => AROUND[self.dims()],
        }
    }

    /// Returns the first and the last code of run `which` of the [`num_runs`](Self::num_runs) runs of neighbor cells of a cell, or `None`
    /// if it is outside the grid. Runs do not overlap.
    #[inline(always)]
    pub const fn run(&self, cell: [u32; D], mut which: u32) -> Option<(u64, u64)> {
        let (mut first, mut more, mut begin) = (cell, 0, 0);
        if let Curve::Linear = self.curve {
            first[0] = cell[0].saturating_sub(1);
            let last = if cell[0] < self.last() { cell[0] + 1 } else { cell[0] };
            more = (last - first[0]) as u64;
            begin = 1;
        }
        let (mut is_inside, mut axis) = (true, 0);
        while axis < D {
            if axis >= begin && axis < self.dims() {
                // Offset -1, 0 or 1 on each axis.
                first[axis] = cell[axis].wrapping_add(which % 3).wrapping_sub(1);
                is_inside &= first[axis] <= self.last();
                which /= 3;
            }
            axis += 1;
        }
        let first = self.code(first);
        if is_inside { Some((first, first + more)) } else { None }
    }

    /// Returns the grid as numbers: cells per unit, the low corner, the high corner.
    pub fn to_words(&self) -> impl Iterator<Item = f64> {
        let corner = |of: [f64; D]| of.into_iter().take(self.dims);
        [self.cells_per_unit].into_iter().chain(corner(self.low)).chain(corner(self.high))
    }

    /// Loads the grid from the numbers of [`to_words`](Self::to_words).
    ///
    /// # Safety
    /// `words` are those of a grid of `dims` dimensions.
    #[inline(always)]
    pub(super) unsafe fn load(words: Slice<'_, f64>, dims: usize, bits: u32, curve: Curve) -> Self {
        let mut grid =
            Self { dims, low: [0.0; D], high: [0.0; D], cells_per_unit: words.load(0), bits, curve };
        let (dims, mut axis) = (grid.dims(), 0);
        while axis < D {
            if axis < dims {
                grid.low[axis] = words.load(1 + axis);
                grid.high[axis] = words.load(1 + dims + axis);
            }
            axis += 1;
        }
        grid
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::vec::Vec;

    /// Random numbers in 0..1.
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
                let grid = Grid::new(2, [low, low], [high, high], distance, Curve::Hilbert);
                for at in random(1000 * seed as u64).take(2000) {
                    let a = f64::clamp(low + at * (high - low), low, high);
                    // The farthest point within the distance.
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
        let grid = Grid::new(1, [-1.0], [1.0], 1e-6, Curve::ZOrder);
        for at in random(7).take(100_000) {
            let a = (2.0 * at - 1.0) as f32;
            let b = (a + 1e-6).min(1.0);
            if (b - a) * (b - a) <= 1e-6 * 1e-6 {
                let [a, b] = [a, b].map(|x| grid.cell([x]).unwrap());
                assert!(a[0].abs_diff(b[0]) <= 1, "{a:?} and {b:?}");
            }
        }
    }

    #[test]
    fn corners_are_inside_and_what_is_beyond_is_not() {
        let grid = Grid::new(2, [0.0, -2.0], [1.0, 2.0], 0.5, Curve::Linear);
        assert_eq!(grid.cell([0.0_f32, -2.0]), Some([0, 0]));
        assert!(grid.cell([1.0_f32, 2.0]).is_some());
        assert_eq!(grid.cell([1.0_f32.next_up(), 2.0]), None);
        assert_eq!(grid.cell([0.0_f32.next_down(), 2.0]), None);
        assert_eq!(grid.cell([0.5_f32, -2.1]), None);
    }

    /// Returns the codes of all neighbor cells of a cell, including itself.
    fn touching<const D: usize>(grid: &Grid<D>, cell: [u32; D]) -> Vec<u64> {
        let around = (0..3_u32.pow(D as u32)).filter_map(|mut which| {
            let mut other = cell;
            for (to, from) in other.iter_mut().zip(cell) {
                *to = (from + which % 3).checked_sub(1).filter(|number| *number <= grid.last())?;
                which /= 3;
            }
            Some(grid.code(other))
        });
        let mut codes: Vec<_> = around.collect();
        codes.sort_unstable();
        codes
    }

    fn cells_around<const D: usize>() {
        for curve in [Curve::Linear, Curve::ZOrder, Curve::Hilbert] {
            let grid = Grid::new(D, [0.0; D], [1.0; D], 0.1, curve);
            for cell in [[0; D], [3; D], [grid.last(); D], core::array::from_fn(|axis| axis as u32)] {
                let runs = (0..grid.num_runs()).filter_map(|i| grid.run(cell, i));
                let mut codes: Vec<_> = runs.flat_map(|(first, last)| first..=last).collect();
                codes.sort_unstable();
                assert_eq!(codes, touching(&grid, cell), "{curve:?}");
            }
        }
    }

    #[test]
    fn runs_of_cells_around() {
        cells_around::<1>();
        cells_around::<2>();
        cells_around::<3>();
        cells_around::<4>();
        cells_around::<5>();
        cells_around::<6>();
    }
}

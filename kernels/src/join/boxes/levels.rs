//! A grid of several levels: the cells of level `l` are `2^l` times as long as those of level 0, and every [`BOX_LEVEL_STEP`]th level is
//! used. A box belongs to the lowest level at which it touches at most two cells along each axis, and to the low one of them. A box of any size is thus in one cell (Koudas, Sevcik
//! 1997, *Size separation spatial join*, have levels of this kind), and the boxes of a level that may meet a box of the same or a lower
//! level are in at most three cells along each axis.
//!
//! Cells are computed at level 0, by a monotone function of the coordinate, and shifted for the other levels: if two boxes intersect, so
//! do their ranges of cells at every level, however coordinates are rounded.

use super::geometry::Aabb;
use crate::join::curve::{Curve, MAX_DIMS};
use crate::policy::BOX_LEVEL_STEP;
use crate::thread::coord::Float;
use cuda_std::prelude::*;

/// Length of a cell relative to the length asked for, so that boxes of exactly that length touch two cells in spite of rounding.
const MARGIN: f64 = 1.0 + 1.0 / 32768.0;
/// Relative excess of the growth of boxes over half the distance: it exceeds the rounding of distances.
const GROWTH_MARGIN: f64 = 1.0 + 1e-6;

/// Returns the length by which boxes grow at each side, so that boxes within a distance meet.
pub fn growth_of(distance: f64) -> f64 {
    distance / 2.0 * GROWTH_MARGIN
}

/// Returns the range of a box along an axis, longer by `growth` at each side. Ranges within the distance of the growth meet.
#[inline(always)]
pub(super) fn grown(low: f64, high: f64, growth: f64) -> (f64, f64) {
    if growth > 0.0 {
        // Sums are rounded by at most half of this.
        let outward = |x: f64| x.abs() * f64::EPSILON + f64::MIN_POSITIVE;
        let (low, high) = (low - growth, high + growth);
        (low - outward(low), high + outward(high))
    } else {
        (low, high)
    }
}

/// The number of a level.
pub type Level = u32;

/// A grid between two corners, of `D` dimensions; if `D` is [`MAX_DIMS`], of `dims` dimensions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LevelGrid<const D: usize> {
    /// Number of dimensions.
    pub dims: usize,
    /// The low corner. Boxes that do not touch the grid are in no cell.
    pub low: [f64; D],
    /// The high corner.
    pub high: [f64; D],
    /// The inverse of the length of a cell of level 0.
    pub cells_per_unit: f64,
    /// Boxes grow by this length at each side before their cells are computed: half the distance of a pair.
    pub growth: f64,
    /// Bits of a cell's coordinate on an axis, at level 0.
    pub bits: u32,
}

/// Returns the most bits of a cell's coordinate on an axis: a key of 62 bits has one more for the level.
const fn most_bits(dims: usize) -> u32 {
    let bits = 62 / dims as u32;
    if bits < 31 { bits } else { 31 }
}

impl<const D: usize> LevelGrid<D> {
    /// Creates the grid whose cells of level 0 have this length, or the shortest length that keys allow.
    ///
    /// `distance` is not negative, and the high corner is not below the low corner.
    pub fn new(dims: usize, low: [f64; D], high: [f64; D], length: f64, distance: f64) -> Self {
        let extent = (0..dims).map(|axis| high[axis] - low[axis]).fold(0.0, f64::max);
        // One cell less than possible, because of rounding.
        let most_cells = f64::from(u32::MAX >> (32 - most_bits(dims)));
        let length = f64::max(length * MARGIN, extent / most_cells);
        // If the grid is a point, or almost, it has one cell.
        let cells_per_unit = if length > f64::MIN_POSITIVE { 1.0 / length } else { 0.0 };
        let last = (extent * cells_per_unit) as u32;
        let bits = (32 - last.leading_zeros()).clamp(1, most_bits(dims));
        Self { dims, low, high, cells_per_unit, growth: growth_of(distance), bits }
    }

    /// Returns the number of dimensions, a constant for all kernel instances but the general one.
    #[inline(always)]
    pub(super) const fn dims(&self) -> usize {
        if D < MAX_DIMS { D } else { self.dims }
    }

    /// Returns the first and the last cell of level 0 that a box touches, or `None` if it does not touch the grid or is not
    /// [valid](Aabb::is_valid).
    #[inline(always)]
    pub fn cells<C: Float>(&self, of: &Aabb<C, D>) -> Option<[[u32; D]; 2]> {
        let (mut first, mut last, mut is_inside) = ([0; D], [0; D], true);
        for axis in 0..D {
            if axis < self.dims() {
                let (low, high) = (of.low[axis].to_f64(), of.high[axis].to_f64());
                is_inside &= low <= high;
                let (low, high) = grown(low, high, self.growth);
                is_inside &= high >= self.low[axis] && low <= self.high[axis];
                first[axis] = self.cell(low, axis);
                last[axis] = self.cell(high, axis);
            }
        }
        if is_inside { Some([first, last]) } else { None }
    }

    /// Returns the cell of a coordinate along an axis, the border cell outside the grid.
    #[inline(always)]
    fn cell(&self, x: f64, axis: usize) -> u32 {
        // The conversion saturates: negative numbers give 0.
        let cell = ((x - self.low[axis]) * self.cells_per_unit) as u32;
        let last = u32::MAX >> (32 - self.bits);
        if cell < last { cell } else { last }
    }

    /// Returns the level of a box that touches the cells from `first` to `last`.
    #[inline(always)]
    pub fn level(&self, [first, last]: &[[u32; D]; 2]) -> Level {
        let mut level = 0;
        for axis in 0..D {
            let span = last[axis] - first[axis];
            if axis < self.dims() && span > 1 {
                let own = 31 - span.leading_zeros();
                // The span is one or two cells there.
                let own = own + u32::from((last[axis] >> own) - (first[axis] >> own) > 1);
                level = if own > level { own } else { level };
            }
        }
        let level = level.next_multiple_of(BOX_LEVEL_STEP);
        // The whole grid is one cell of the highest level.
        if level < self.bits { level } else { self.bits }
    }

    /// Returns the key of a cell of a level, whose coordinates are those of the level. The keys of higher levels are smaller: a key is a
    /// 1 and then the row-major code of the cell.
    #[inline(always)]
    pub const fn key(&self, level: Level, cell: [u32; D]) -> u64 {
        let bits = self.bits - level;
        1 << (bits * self.dims() as u32) | Curve::Linear.code(cell, self.dims(), bits)
    }

    /// Returns the level of a box and the key of the low cell that it touches there, or `None` if [`cells`](Self::cells) does.
    #[inline(always)]
    pub fn level_and_key<C: Float>(&self, of: &Aabb<C, D>) -> Option<(Level, u64)> {
        let cells = self.cells(of)?;
        let level = self.level(&cells);
        Some((level, self.key(level, cells[0].map(|cell| cell >> level))))
    }

    /// Returns the level of a key.
    #[inline(always)]
    pub const fn level_of_key(&self, key: u64) -> Level {
        self.bits - (63 - key.leading_zeros()) / self.dims() as u32
    }

    /// Returns the number of bits of a key.
    pub const fn key_bits(&self) -> u32 {
        self.bits * self.dims as u32 + 1
    }

    /// Returns the grid as numbers: cells per unit, growth, the low corner, the high corner.
    pub fn to_words(&self) -> impl Iterator<Item = f64> {
        let corner = |of: [f64; D]| of.into_iter().take(self.dims);
        [self.cells_per_unit, self.growth].into_iter().chain(corner(self.low)).chain(corner(self.high))
    }

    /// Loads the grid from the numbers of [`to_words`](Self::to_words).
    ///
    /// # Safety
    /// `words` are those of a grid of `dims` dimensions.
    #[inline(always)]
    pub(super) unsafe fn load(words: Slice<'_, f64>, dims: usize, bits: u32) -> Self {
        let (cells_per_unit, growth) = (words.load(0), words.load(1));
        let mut grid = Self { dims, low: [0.0; D], high: [0.0; D], cells_per_unit, growth, bits };
        let dims = grid.dims();
        for axis in 0..D {
            if axis < dims {
                grid.low[axis] = words.load(2 + axis);
                grid.high[axis] = words.load(2 + dims + axis);
            }
        }
        grid
    }
}

/// Returns the levels whose boxes a box of a level searches, a bit for each. The larger of two boxes searches, unless its level is more
/// than `below` above the other's: it would search too many cells. `with_equal` adds the box's own level.
#[inline(always)]
pub(super) fn searched_levels(level: Level, below: u32, with_equal: bool) -> u64 {
    let from = |level: u32| !0_u64 << level;
    from(level.saturating_sub(below)) & !from(level + with_equal as u32) | from(level + below + 1)
}

/// The cells of a level in which boxes may meet a box, as runs of keys along the first axis.
#[derive(Clone, Copy)]
pub struct NeighborCells<const D: usize> {
    level: Level,
    first: [u32; D],
    last: [u32; D],
}

impl<const D: usize> NeighborCells<D> {
    /// Returns the cells for a box that touches the cells from `first` to `last` at level 0.
    #[inline(always)]
    pub const fn new([first, last]: &[[u32; D]; 2], level: Level) -> Self {
        let mut cells = Self { level, first: *first, last: *last };
        let mut axis = 0;
        while axis < D {
            // A box begins at most one cell before the last cell that it touches.
            cells.first[axis] = (first[axis] >> level).saturating_sub(1);
            cells.last[axis] = last[axis] >> level;
            axis += 1;
        }
        cells
    }

    /// Returns the number of runs: 3 for each axis after the first, or fewer, if the box is not above the level.
    #[inline(always)]
    pub const fn num_runs(&self, grid: &LevelGrid<D>) -> u32 {
        let (mut num, mut axis) = (1, 1);
        while axis < D {
            if axis < grid.dims() {
                num *= self.last[axis] - self.first[axis] + 1;
            }
            axis += 1;
        }
        num
    }

    /// Returns the first and the last key of a run.
    #[inline(always)]
    pub const fn run(&self, grid: &LevelGrid<D>, mut which: u32) -> (u64, u64) {
        let (mut cell, mut axis) = (self.first, 1);
        while axis < D {
            if axis + 1 < grid.dims() {
                let num = self.last[axis] - self.first[axis] + 1;
                cell[axis] += which % num;
                which /= num;
            } else if axis < grid.dims() {
                cell[axis] += which;
            }
            axis += 1;
        }
        let first = grid.key(self.level, cell);
        (first, first + (self.last[0] - self.first[0]) as u64)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::primitives::generate::splitmix64;
    use std::vec::Vec;

    /// Random numbers in 0..1.
    fn random(seed: u64) -> impl Iterator<Item = f64> {
        (seed << 32..).map(|i| (splitmix64(i) >> 11) as f64 / (1_u64 << 53) as f64)
    }

    /// Returns boxes whose sides differ by up to six decades.
    fn boxes<const D: usize>(num: usize, seed: u64) -> Vec<Aabb<f64, D>> {
        let mut random = random(seed);
        let mut next = || random.next().unwrap();
        let mut boxes = Vec::new();
        for _ in 0..num {
            let side = f64::powf(10.0, -6.0 * next());
            let low = core::array::from_fn(|_| (next() * 16.0).floor() / 16.0);
            boxes.push(Aabb { low, high: low.map(|x| x + side) });
        }
        boxes
    }

    fn pairs_are_in_neighbor_cells<const D: usize>(distance: f64, length: f64) {
        let grid = LevelGrid::<D>::new(D, [0.0; D], [1.5; D], length, distance);
        let boxes = boxes::<D>(150, D as u64);
        let cells: Vec<_> = boxes.iter().map(|of| grid.cells(of)).collect();
        for (a, a_cells) in boxes.iter().zip(&cells) {
            for (b, b_cells) in boxes.iter().zip(&cells) {
                let gap =
                    |axis: usize| f64::max(a.low[axis] - b.high[axis], b.low[axis] - a.high[axis]).max(0.0);
                if (0..D).any(|axis| gap(axis) > distance) {
                    continue;
                }
                let (Some(a_cells), Some(b_cells)) = (a_cells, b_cells) else {
                    assert!((0..D).any(|axis| a.low[axis].max(b.low[axis]) > 1.5));
                    continue;
                };
                let level = grid.level(b_cells);
                // A larger box would search too many cells.
                if grid.level(a_cells) > level + [8, 8, 8, 4, 0, 0, 0][D] {
                    continue;
                }
                let key = grid.key(level, b_cells[0].map(|cell| cell >> level));
                assert_eq!(grid.level_of_key(key), level);
                assert!(key >> grid.key_bits() == 0);
                let neighbors = NeighborCells::new(a_cells, level);
                let runs = (0..neighbors.num_runs(&grid)).map(|which| neighbors.run(&grid, which));
                let found = runs.filter(|(first, last)| (first..=last).contains(&&key)).count();
                assert_eq!(found, 1, "{a:?} {b:?} {grid:?}");
            }
        }
    }

    #[test]
    fn every_pair_is_found_once() {
        for length in [1.0, 0.1, 1e-3, 1e-7, 0.0] {
            for distance in [0.0, 1e-5, 0.1] {
                pairs_are_in_neighbor_cells::<1>(distance, length);
                pairs_are_in_neighbor_cells::<2>(distance, length);
                pairs_are_in_neighbor_cells::<3>(distance, length);
                pairs_are_in_neighbor_cells::<6>(distance, length);
            }
        }
    }

    #[test]
    fn one_of_two_boxes_searches() {
        for below in 0..9 {
            for a in 0..32 {
                for b in 0..32 {
                    let [forth, back] = [searched_levels(a, below, true), searched_levels(b, below, false)];
                    assert_eq!((forth >> b & 1) + (back >> a & 1), 1, "{below}: {a}, {b}");
                }
            }
        }
        assert_eq!(searched_levels(6, 2, true), !0 << 9 | 0b111_0000);
    }

    #[test]
    fn equal_boxes_are_of_level_0() {
        for side in [0.1, 0.01, 1e-3, 1e-4] {
            let grid = LevelGrid::<2>::new(2, [0.0; 2], [1.0; 2], side, 0.0);
            let mut random = random(5);
            for _ in 0..1000 {
                let low = [0, 1].map(|_| random.next().unwrap() * (1.0 - side));
                let cells = grid.cells(&Aabb { low, high: low.map(|x| x + side) }).unwrap();
                assert_eq!(grid.level(&cells), 0);
            }
        }
    }

    #[test]
    fn boxes_outside_and_inverted_boxes_have_no_cells() {
        let grid = LevelGrid::<1>::new(1, [0.0], [1.0], 0.1, 0.0);
        let cells = |low: f64, high: f64| grid.cells(&Aabb { low: [low], high: [high] });
        assert!(cells(1.0, 2.0).is_some() && cells(-1.0, 0.0).is_some() && cells(-9.0, 9.0).is_some());
        assert_eq!(cells(1.0f64.next_up(), 2.0), None);
        assert_eq!(cells(0.5, 0.4), None);
        assert_eq!(cells(f64::NAN, 0.4), None);
        assert_eq!(cells(0.3, f64::NAN), None);
    }
}

//! The order of points along a Hilbert curve: the code of a point is the position of its cell on the curve through a grid.

use super::buckets::BucketLayout;
use super::hilbert::position;
use crate::join::curve::most_bits;
use crate::policy::{PER_ITEM_THREADS, RTREE_CODE_BITS};
use crate::thread::coord::Coord;
use crate::thread::items::own_item;
use crate::thread::measure::MAX_DIMS;
use crate::thread::point::load_point_up_to;
use crate::thread::search::partition_point;
use cuda_std::prelude::*;

/// A grid of cells between two corners. It numbers a point beyond them like the nearest point between them.
#[derive(Clone, Copy)]
pub struct Grid<const D: usize> {
    low: [f64; D],
    /// Cells per length of 1; 0 on an axis without an extent.
    per_length: [f64; D],
    dims: usize,
}

impl<const D: usize> Grid<D> {
    /// The grid between a low and a high corner of points with `dims` coordinates, at most `D`.
    #[inline(always)]
    pub fn new<C: Coord>(low: [C; D], high: [C; D], dims: usize) -> Self {
        let (low, high, side) = (low.map(C::to_f64), high.map(C::to_f64), (1_u64 << axis_bits(dims)) as f64);
        let mut per_length = [0.0; D];
        for axis in 0..D {
            let extent = high[axis] - low[axis];
            per_length[axis] = if extent > 0.0 { side / extent } else { 0.0 };
        }
        Self { low, per_length, dims }
    }

    /// Returns the code of a point, a number of [`code_bits`] bits.
    #[inline(always)]
    pub fn code<C: Coord>(&self, point: [C; D]) -> u64 {
        let bits = axis_bits(self.dims);
        let last = (u64::MAX >> (64 - bits)) as u32;
        let mut cell = [0; D];
        for axis in 0..D {
            // The conversion gives 0 for numbers below it and for NaN, and the greatest number for those above that.
            let number = ((point[axis].to_f64() - self.low[axis]) * self.per_length[axis]) as u32;
            cell[axis] = if number < last { number } else { last };
        }
        position(cell, self.dims as u32, bits)
    }
}

/// Returns the number of bits of a code.
pub const fn code_bits(dims: usize) -> u32 {
    axis_bits(dims) * dims as u32
}

/// Returns the number of bits of a cell's number on an axis.
const fn axis_bits(dims: usize) -> u32 {
    let (bits, most) = (RTREE_CODE_BITS / dims as u32, most_bits(dims));
    if bits < most { bits } else { most }
}

/// Points with the grid of an index.
#[derive(Clone, Copy, KernelArgs)]
pub struct GridPoints<'a, C> {
    /// The coordinates, point after point.
    pub coords: Slice<'a, C>,
    /// Number of coordinates of a point.
    pub dims: u32,
    /// The corners of the grid, the low one first.
    pub corners: Slice<'a, C>,
}

impl<C: Coord> GridPoints<'_, C> {
    /// Returns the grid. The number of dimensions is `D` unless `D` is [`MAX_DIMS`].
    #[inline(always)]
    pub(crate) unsafe fn grid<const D: usize>(&self) -> Grid<D> {
        let dims = if D == MAX_DIMS { self.dims as usize } else { D };
        let corner = |i| load_point_up_to::<C, D, MAX_DIMS>(self.corners, i, dims);
        Grid::new(corner(0), corner(1), dims)
    }

    /// Returns the code of a point in the grid.
    #[inline(always)]
    pub(crate) unsafe fn code<const D: usize>(&self, grid: &Grid<D>, i: usize) -> u64 {
        grid.code(load_point_up_to::<C, D, MAX_DIMS>(self.coords, i, grid.dims))
    }
}

/// Writes the code and the number of each point; one thread per code. If `num_slots` is not 0, the points are
/// those of a left-balanced tree with as many slots, and the codes are those of the first point of each bucket.
#[kernel(family = "query", block = PER_ITEM_THREADS)]
#[instances(C = [f32, f64, i32], D = [2, 3, 8])]
pub unsafe fn query_grid_codes<C: Coord, const D: usize>(
    points: GridPoints<'_, C>,
    num_slots: u32,
    codes: SliceMut<u64>,
    numbers: SliceMut<u32>,
) {
    let Some(i) = own_item(codes.len()) else { return };
    let (grid, layout, is_bucket) =
        (points.grid::<D>(), BucketLayout::left_balanced(num_slots), num_slots > 0);
    let number = if is_bucket { layout.begin(i as u32, layout.levels) } else { i as u32 };
    codes.store(i, points.code(&grid, number as usize));
    if !is_bucket {
        numbers.store(i, number);
    }
}

/// Writes the start bucket and the number of each query; one thread per query. A query starts in the last bucket whose
/// first point has no greater code.
#[kernel(family = "query", block = PER_ITEM_THREADS)]
#[instances(C = [f32, f64, i32], D = [2, 3, 8])]
pub unsafe fn query_grid_buckets<C: Coord, const D: usize>(
    queries: GridPoints<'_, C>,
    first_codes: Slice<u64>,
    buckets: SliceMut<u32>,
    numbers: SliceMut<u32>,
) {
    let Some(i) = own_item(buckets.len()) else { return };
    let code = queries.code(&queries.grid::<D>(), i);
    let end = partition_point(0, first_codes.len(), |bucket| first_codes.load(bucket) <= code);
    buckets.store(i, (end as u32).saturating_sub(1));
    numbers.store(i, i as u32);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_outside_are_in_the_cells_of_the_border() {
        let grid = Grid::new([-1.0_f32, 2.0], [1.0, 4.0], 2);
        let last = (1_u64 << code_bits(2)) - 1;
        assert_eq!(grid.code([-1.0_f32, 2.0]), 0);
        // The curve ends at the last cell of the first axis.
        assert_eq!(grid.code([1.0_f32, 2.0]), last);
        for [beyond, border] in [
            [[-9.0, 3.0], [-1.0, 3.0]],
            [[9.0, 3.5], [1.0, 3.5]],
            [[0.5, -1e30], [0.5, 2.0]],
            [[0.5, 1e30], [0.5, 4.0]],
            [[f32::NAN, 3.0], [-1.0, 3.0]],
        ] {
            assert_eq!(grid.code(beyond), grid.code(border), "{beyond:?}");
        }
    }

    #[test]
    fn grids_of_any_extent() {
        for (low, high) in [(0.0_f64, 0.0), (0.0, 5e-324), (-1e153, 1e153), (1e100, 1e100)] {
            let grid = Grid::<8>::new([low; 8], [high; 8], 3);
            assert_eq!(grid.code([low; 8]), 0, "{low} {high}");
            assert!(grid.code([high; 8]) < 1 << code_bits(3), "{low} {high}");
        }
        let grid = Grid::<1>::new([i32::MIN], [i32::MAX], 1);
        assert_eq!([i32::MIN, 0, i32::MAX].map(|x| grid.code([x])), [0, 1 << 31, u32::MAX.into()]);
    }
}

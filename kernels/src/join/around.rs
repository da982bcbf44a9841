//! The points of one set around a point of another: those of the runs of cells around its cell, each found by search.

use super::cells::{Pairing, Shape, load_point};
use super::grid::Grid;
use crate::thread::coord::Coord;
use crate::thread::measure::{Norm, along};
use crate::thread::search::partition_point;
use cuda_std::prelude::*;

/// The left points, in the order of their cells, and what is near.
#[derive(Clone, Copy)]
pub(super) struct Around<'a, C, const D: usize> {
    codes: Slice<'a, u64>,
    coords: Slice<'a, C>,
    ids: Slice<'a, u32>,
    grid: Grid<D>,
    norm: Norm,
    pairing: Pairing,
    bound: C,
}

/// A right point.
#[derive(Clone, Copy)]
pub(super) struct Right<C, const D: usize> {
    pub(super) point: [C; D],
    pub(super) id: u32,
    cell: [u32; D],
}

impl<'a, C: Coord, const D: usize> Around<'a, C, D> {
    #[inline(always)]
    pub(super) unsafe fn new(
        codes: Slice<'a, u64>,
        coords: Slice<'a, C>,
        ids: Slice<'a, u32>,
        dims: u32,
        grid: Slice<'a, f64>,
        shape: u32,
        bound: f64,
    ) -> Self {
        let Shape { bits, curve, norm, pairing } = Shape::from_word(shape);
        let grid = Grid::load(grid, dims as usize, bits, curve);
        Self { codes, coords, ids, grid, norm, pairing, bound: C::from_f64(bound) }
    }

    /// A right point, if it is in a cell.
    #[inline(always)]
    pub(super) unsafe fn right(
        &self,
        coords: Slice<'_, C>,
        ids: Slice<'_, u32>,
        i: usize,
    ) -> Option<Right<C, D>> {
        let point = load_point(coords, i, self.grid.dims);
        Some(Right { point, id: ids.load(i), cell: self.grid.cell(point)? })
    }

    /// Calls `take` with the place and id of each left point that is near enough, as long as `goes_on`; of those places that are
    /// `wanted`.
    #[inline(always)]
    pub(super) unsafe fn each(
        &self,
        right: &Right<C, D>,
        goes_on: impl Fn() -> bool,
        wanted: impl Fn(usize) -> bool,
        mut take: impl FnMut(usize, u32),
    ) {
        let mut run = 0;
        while run < self.grid.num_runs() && goes_on() {
            if let Some((first, last)) = self.grid.run(right.cell, run) {
                let mut place = partition_point(0, self.codes.len(), |i| self.codes.load(i) < first);
                let end = self.end(place, last);
                while place < end {
                    if wanted(place) && self.is_near(&right.point, place) {
                        let id = self.ids.load(place);
                        if self.pairing.takes(id, right.id) {
                            take(place, id);
                        }
                    }
                    place += 1;
                }
            }
            run += 1;
        }
    }

    /// The first place from `begin` on whose code is beyond `last`: a few steps away, most often.
    #[inline(always)]
    unsafe fn end(&self, begin: usize, last: u64) -> usize {
        let (mut low, mut step, len) = (begin, 1, self.codes.len());
        while low + step <= len && self.codes.load(low + step - 1) <= last {
            low += step;
            step *= 2;
        }
        let high = if low + step - 1 < len { low + step - 1 } else { len };
        partition_point(low, high, |i| self.codes.load(i) <= last)
    }

    #[inline(always)]
    unsafe fn is_near(&self, point: &[C; D], place: usize) -> bool {
        let other: [C; D] = load_point(self.coords, place, self.grid.dims);
        near(self.norm, self.grid.dims, &other, point, self.bound)
    }
}

/// True if two points are within the bound of each other.
#[inline(always)]
pub(super) fn near<C: Coord, const D: usize>(
    norm: Norm,
    dims: usize,
    left: &[C; D],
    right: &[C; D],
    bound: C,
) -> bool {
    let dims = if D < super::curve::MAX_DIMS { D } else { dims };
    norm.put_together(dims, |axis| along(left[axis], right[axis], C::ZERO)) <= bound
}

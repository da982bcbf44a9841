//! The points of one set around a point of another: those of the runs of cells around its cell, each found by search.

use super::best::pair;
use super::cells::{Pairing, Shape, load_point};
use super::grid::Grid;
use crate::thread::coord::Coord;
use crate::thread::measure::{Norm, along};
use crate::thread::search::partition_point;
use crate::thread::words::Bits128;
use cuda_std::prelude::*;

/// Places that are looked at together, so that none waits for another's loads; behind the last point there is room for so many.
pub const GROUP: usize = 4;

/// The left points, in the order of their cells.
#[derive(Clone, Copy, KernelArgs)]
pub struct Lefts<'a, C> {
    /// The codes of their cells; or of the cells that are not empty, with [`NOWHERE`](super::cells::NOWHERE) behind them up to the number
    /// of points.
    pub codes: Slice<'a, u64>,
    /// Where the points of each of these cells begin, and one more; nothing if each point has a code.
    pub begins: Slice<'a, u32>,
    /// Where parts of the codes begin.
    pub directory: Slice<'a, u32>,
    /// Their coordinates, one point after the other.
    pub coords: Slice<'a, C>,
    /// Their ids.
    pub ids: Slice<'a, u32>,
}

/// Two sets of points in the order of their cells, and when two points are near: what all joins by cells take.
#[derive(Clone, Copy, KernelArgs)]
pub struct CellSets<'a, C> {
    /// The left points.
    pub left: crate::join::around::Lefts<'a, C>,
    /// The coordinates of the right points.
    pub right_coords: Slice<'a, C>,
    /// The ids of the right points.
    pub right_ids: Slice<'a, u32>,
    /// Number of dimensions.
    pub dims: u32,
    /// The words of the grid.
    pub grid: Slice<'a, f64>,
    /// The grid's bits and curve, the norm and the pairing: [`Shape::to_word`].
    pub shape: u32,
    /// The largest distance of near points, as the norm computes it.
    pub bound: f64,
}

impl<'a, C: Coord> CellSets<'a, C> {
    /// The left points with their grid.
    #[inline(always)]
    pub(super) unsafe fn around<const D: usize>(&self) -> Around<'a, C, D> {
        let Shape { bits, curve, norm, pairing } = Shape::from_word(self.shape);
        let grid = Grid::load(self.grid, self.dims as usize, bits, curve);
        let directory = Directory::new(self.left.directory, grid.code_bits());
        Around { lefts: self.left, directory, grid, norm, pairing, bound: C::from_f64(self.bound) }
    }

    /// Right point `i`, if it is in a cell.
    #[inline(always)]
    pub(super) unsafe fn right<const D: usize>(
        &self,
        around: &Around<'a, C, D>,
        i: usize,
    ) -> Option<Right<C, D>> {
        let point = load_point(self.right_coords, i, around.grid.dims);
        Some(Right { point, id: self.right_ids.load(i), cell: around.grid.cell(point)? })
    }
}

/// The left points and what is near.
#[derive(Clone, Copy)]
pub(super) struct Around<'a, C, const D: usize> {
    lefts: Lefts<'a, C>,
    directory: Directory<'a>,
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

impl<C, const D: usize> Right<C, D> {
    /// The same, of a set in which so many points come before those of the launch.
    #[inline(always)]
    pub(super) fn behind(self, num_before: u32) -> Self {
        Self { id: self.id + num_before, ..self }
    }
}

impl<C: Coord, const D: usize> Around<'_, C, D> {
    /// Calls `take` with the place and id of each left point that is near.
    #[inline(always)]
    pub(super) unsafe fn each(&self, right: &Right<C, D>, take: impl FnMut(usize, u32)) {
        let near = |place| self.near(&right.point, place);
        self.look(right, (0, usize::MAX), || true, near, |_| true, take);
    }

    /// The same of places that are `wanted`, as few are, of the points in the cells around those from number `from` to below `to`, and as
    /// long as `goes_on`. Returns how many points there are.
    #[inline(always)]
    pub(super) unsafe fn each_wanted(
        &self,
        right: &Right<C, D>,
        (from, to): (usize, usize),
        goes_on: impl Fn() -> bool,
        wanted: impl Fn(usize) -> bool,
        take: impl FnMut(usize, u32),
    ) -> usize {
        let some = |place| {
            let (mut some, mut i) = (0, 0);
            while i < GROUP {
                some |= u32::from(wanted(place + i)) << i;
                i += 1;
            }
            some
        };
        self.look(right, (from, to), goes_on, some, |place| self.is_near(&right.point, place), take)
    }

    #[inline(always)]
    unsafe fn look(
        &self,
        right: &Right<C, D>,
        (from, to): (usize, usize),
        goes_on: impl Fn() -> bool,
        some: impl Fn(usize) -> u32,
        then: impl Fn(usize) -> bool,
        mut take: impl FnMut(usize, u32),
    ) -> usize {
        // Points of the runs before.
        let (mut run, mut before) = (0, 0);
        while run < self.grid.num_runs() && goes_on() {
            if let Some((first_code, last_code)) = self.grid.run(right.cell, run) {
                let (begin, all) = self.places(first_code, last_code);
                // Of the run what is in the part.
                let (mut place, mut end) = (begin, all);
                if from > before {
                    place = if from - before < all - begin { begin + (from - before) } else { all };
                }
                if to < before + (all - begin) {
                    end = if to > before { begin + (to - before) } else { begin };
                }
                before += all - begin;
                while place < end {
                    // A bit each; what is behind the end does not count.
                    let (mut hits, left) = (some(place), end - place);
                    hits &= if left < GROUP { (1 << left) - 1 } else { (1 << GROUP) - 1 };
                    while hits != 0 {
                        let at = place + hits.trailing_zeros() as usize;
                        hits &= hits - 1;
                        if then(at) {
                            let id = self.lefts.ids.load(at);
                            if self.pairing.takes(id, right.id) {
                                take(at, id);
                            }
                        }
                    }
                    place += GROUP;
                }
            }
            run += 1;
        }
        before
    }

    /// Where the points of the cells of some codes begin and end.
    #[inline(always)]
    unsafe fn places(&self, first: u64, last: u64) -> (usize, usize) {
        let begin = self.first_of(first);
        let end = self.first_behind(begin, last);
        let begins = self.lefts.begins;
        if begins.is_empty() {
            (begin, end)
        } else {
            (begins.load(begin) as usize, begins.load(end) as usize)
        }
    }

    /// The first of the codes that is this or one behind it.
    #[inline(always)]
    unsafe fn first_of(&self, code: u64) -> usize {
        let (low, high) = self.directory.range(code);
        partition_point(low, high, |i| self.lefts.codes.load(i) < code)
    }

    /// The first of the codes from `begin` on that is beyond `last`: a few steps away, most often.
    #[inline(always)]
    unsafe fn first_behind(&self, begin: usize, last: u64) -> usize {
        let (mut low, mut step, len) = (begin, 1, self.lefts.codes.len());
        while low + step <= len && self.lefts.codes.load(low + step - 1) <= last {
            low += step;
            step *= 2;
        }
        let high = if low + step - 1 < len { low + step - 1 } else { len };
        partition_point(low, high, |i| self.lefts.codes.load(i) <= last)
    }

    /// A left and a right point with the rank of their score, or the other way round if the sets have changed sides.
    #[inline(always)]
    pub(super) fn pair(&self, rank: u64, left: u32, right: u32) -> Bits128 {
        if self.pairing == Pairing::Turned { pair(rank, right, left) } else { pair(rank, left, right) }
    }

    /// The distance of a left point, as distances are compared.
    #[inline(always)]
    pub(super) unsafe fn distance(&self, right: &Right<C, D>, place: usize) -> C {
        distance(self.norm, &load_point(self.lefts.coords, place, self.grid.dims), &right.point)
    }

    /// Which of the points of a group are near, a bit each.
    #[inline(always)]
    unsafe fn near(&self, point: &[C; D], place: usize) -> u32 {
        let near_by = |norm| {
            let (mut hits, mut i) = (0, 0);
            while i < GROUP {
                hits |= u32::from(self.is_near_by(norm, point, place + i)) << i;
                i += 1;
            }
            hits
        };
        // The norm is chosen once for all of them.
        if self.norm == Norm::Euclidean { near_by(Norm::Euclidean) } else { near_by(self.norm) }
    }

    #[inline(always)]
    unsafe fn is_near(&self, point: &[C; D], place: usize) -> bool {
        self.is_near_by(self.norm, point, place)
    }

    #[inline(always)]
    unsafe fn is_near_by(&self, norm: Norm, point: &[C; D], place: usize) -> bool {
        near(norm, &load_point(self.lefts.coords, place, self.grid.dims), point, self.bound)
    }
}

/// True if two points are within the bound of each other.
#[inline(always)]
pub(super) fn near<C: Coord, const D: usize>(norm: Norm, left: &[C; D], right: &[C; D], bound: C) -> bool {
    distance(norm, left, right) <= bound
}

/// How far two points are from each other. Coordinates that they do not have are 0, and change nothing.
#[inline(always)]
fn distance<C: Coord, const D: usize>(norm: Norm, left: &[C; D], right: &[C; D]) -> C {
    norm.put_together(D, |axis| along(left[axis], right[axis], C::ZERO))
}

/// Where the codes of each of their highest bits begin, so that a search begins near its end: of equal parts of all codes, one more.
#[derive(Clone, Copy)]
pub(super) struct Directory<'a> {
    begins: Slice<'a, u32>,
    shift: u32,
}

impl<'a> Directory<'a> {
    #[inline(always)]
    pub(super) fn new(begins: Slice<'a, u32>, code_bits: u32) -> Self {
        let parts = begins.len() as u64 - 1;
        Self { begins, shift: code_bits - parts.trailing_zeros() }
    }

    /// The least code of a part.
    #[inline(always)]
    pub(super) fn code(&self, part: u64) -> u64 {
        if self.shift < u64::BITS { part << self.shift } else { 0 }
    }

    /// The places that the search for a code is between.
    #[inline(always)]
    unsafe fn range(&self, code: u64) -> (usize, usize) {
        let part = if self.shift < u64::BITS { (code >> self.shift) as usize } else { 0 };
        (self.begins.load(part) as usize, self.begins.load(part + 1) as usize)
    }
}

//! Finds the build points near a probe point: in the runs of neighbor cells around its cell, each found by binary search.

use super::best::pair;
use super::cells::{Directory, Pairing, Shape, SortedCodes, load_point};
use super::grid::Grid;
use crate::thread::coord::Float;
use crate::thread::measure::{Norm, along};
use crate::thread::words::Bits128;
use cuda_std::prelude::*;

/// Positions that are tested together, so that their loads overlap. The arrays have padding of this many elements after the last point.
pub const GROUP: usize = 4;

/// The build side, in the order of cells.
#[derive(Clone, Copy, KernelArgs)]
pub struct BuildSide<'a, C> {
    /// The code of the cell of each point. With a list of cells, the codes of the cells that are not empty, padded with
    /// [`NOWHERE`](super::cells::NOWHERE) up to the number of points.
    pub codes: Slice<'a, u64>,
    /// With a list of cells, where the points of each cell begin, and the end of the last; otherwise empty.
    pub begins: Slice<'a, u32>,
    /// Where equal ranges of codes begin: entry `i` is the position of the first code whose highest bits are at least `i`.
    pub directory: Slice<'a, u32>,
    /// The coordinates; those of each point are contiguous.
    pub coords: Slice<'a, C>,
    /// The ids.
    pub ids: Slice<'a, u32>,
}

/// The two sides of a join by a grid, and the condition for a pair: the common arguments of these joins.
#[derive(Clone, Copy, KernelArgs)]
pub struct JoinSides<'a, C> {
    /// The build side.
    pub build: crate::join::neighbor_cells::BuildSide<'a, C>,
    /// The coordinates of the probe points.
    pub probe_coords: Slice<'a, C>,
    /// The ids of the probe points.
    pub probe_ids: Slice<'a, u32>,
    /// Number of dimensions.
    pub dims: u32,
    /// The words of the grid.
    pub grid: Slice<'a, f64>,
    /// The grid's bits and curve, the norm and the pairing: [`Shape::to_word`].
    pub shape: u32,
    /// The largest distance of near points, as the norm computes it.
    pub bound: f64,
}

impl<'a, C: Float> JoinSides<'a, C> {
    /// Returns the search of neighbor cells in the build side.
    #[inline(always)]
    pub(super) unsafe fn neighbor_cells<const D: usize>(&self) -> NeighborCells<'a, C, D> {
        let Shape { bits, curve, norm, pairing } = Shape::from_word(self.shape);
        let grid = Grid::load(self.grid, self.dims as usize, bits, curve);
        let directory = Directory::new(self.build.directory, grid.code_bits());
        NeighborCells { build: self.build, directory, grid, norm, pairing, bound: C::from_f64(self.bound) }
    }

    /// Returns probe point `i`, if it is in the grid.
    #[inline(always)]
    pub(super) unsafe fn probe_point<const D: usize>(
        &self,
        cells: &NeighborCells<'a, C, D>,
        i: usize,
    ) -> Option<ProbePoint<C, D>> {
        let point = load_point(self.probe_coords, i, cells.grid.dims);
        Some(ProbePoint { point, id: self.probe_ids.load(i), cell: cells.grid.cell(point)? })
    }
}

/// Search of the build side by neighbor cells.
#[derive(Clone, Copy)]
pub(super) struct NeighborCells<'a, C, const D: usize> {
    build: BuildSide<'a, C>,
    directory: Directory<'a>,
    grid: Grid<D>,
    norm: Norm,
    pairing: Pairing,
    bound: C,
}

/// A probe point.
#[derive(Clone, Copy)]
pub(super) struct ProbePoint<C, const D: usize> {
    pub(super) point: [C; D],
    pub(super) id: u32,
    cell: [u32; D],
}

impl<C, const D: usize> ProbePoint<C, D> {
    /// Adds the number of points of the whole probe side that come before those of the launch to the id.
    #[inline(always)]
    pub(super) fn with_id_offset(self, num_before: u32) -> Self {
        Self { id: self.id + num_before, ..self }
    }
}

impl<C: Float, const D: usize> NeighborCells<'_, C, D> {
    /// Calls `visit` with position and id of each build point that is near.
    #[inline(always)]
    pub(super) unsafe fn for_each_match(&self, probe: &ProbePoint<C, D>, visit: impl FnMut(usize, u32)) {
        let near = |position| self.near(&probe.point, position);
        self.search(probe, (0, usize::MAX), || true, near, |_| true, visit);
    }

    /// Calls `visit` with position and id of each near build point that `accepts` accepts; `accepts` is tested before the distance.
    /// Visits points number `from` to `to` of the points in the neighbor cells, while `goes_on` is true. Returns the number of points in
    /// the neighbor cells.
    #[inline(always)]
    pub(super) unsafe fn for_each_match_where(
        &self,
        probe: &ProbePoint<C, D>,
        (from, to): (usize, usize),
        goes_on: impl Fn() -> bool,
        accepts: impl Fn(usize) -> bool,
        visit: impl FnMut(usize, u32),
    ) -> usize {
        let accepted = |position| {
            let (mut hits, mut i) = (0, 0);
            while i < GROUP {
                hits |= u32::from(accepts(position + i)) << i;
                i += 1;
            }
            hits
        };
        let is_near = |position| self.is_near(&probe.point, position);
        self.search(probe, (from, to), goes_on, accepted, is_near, visit)
    }

    /// Tests groups of positions by `group_hits`, which returns a bit for each, and then each hit by `is_hit`.
    #[inline(always)]
    unsafe fn search(
        &self,
        probe: &ProbePoint<C, D>,
        (from, to): (usize, usize),
        goes_on: impl Fn() -> bool,
        group_hits: impl Fn(usize) -> u32,
        is_hit: impl Fn(usize) -> bool,
        mut visit: impl FnMut(usize, u32),
    ) -> usize {
        // `before` is the number of points in the previous runs.
        let (mut run, mut before) = (0, 0);
        while run < self.grid.num_runs() && goes_on() {
            if let Some((first_code, last_code)) = self.grid.run(probe.cell, run) {
                let (begin, run_end) = self.positions(first_code, last_code);
                // Intersect the run with the part `from..to`.
                let (mut position, mut end) = (begin, run_end);
                if from > before {
                    position =
                        if from - before < run_end - begin { begin + (from - before) } else { run_end };
                }
                if to < before + (run_end - begin) {
                    end = if to > before { begin + (to - before) } else { begin };
                }
                before += run_end - begin;
                while position < end {
                    // Positions after the end do not count.
                    let (mut hits, remaining) = (group_hits(position), end - position);
                    hits &= if remaining < GROUP { (1 << remaining) - 1 } else { (1 << GROUP) - 1 };
                    while hits != 0 {
                        let hit = position + hits.trailing_zeros() as usize;
                        hits &= hits - 1;
                        if is_hit(hit) {
                            let id = self.build.ids.load(hit);
                            if self.pairing.includes(id, probe.id) {
                                visit(hit, id);
                            }
                        }
                    }
                    position += GROUP;
                }
            }
            run += 1;
        }
        before
    }

    /// Returns where the points of a run of cells begin and end.
    #[inline(always)]
    unsafe fn positions(&self, first_code: u64, last_code: u64) -> (usize, usize) {
        let codes = SortedCodes { codes: self.build.codes, directory: self.directory };
        let begin = codes.lower_bound(first_code);
        let end = codes.upper_bound(begin, last_code);
        let begins = self.build.begins;
        if begins.is_empty() {
            (begin, end)
        } else {
            (begins.load(begin) as usize, begins.load(end) as usize)
        }
    }

    /// Returns the pair of a build and a probe point with the rank of their score, in the order of the original sets.
    #[inline(always)]
    pub(super) fn pair(&self, rank: u64, build: u32, probe: u32) -> Bits128 {
        if self.pairing == Pairing::Swapped { pair(rank, probe, build) } else { pair(rank, build, probe) }
    }

    /// Returns the distance of a build point as distances are compared.
    #[inline(always)]
    pub(super) unsafe fn distance(&self, probe: &ProbePoint<C, D>, position: usize) -> C {
        distance(self.norm, &load_point(self.build.coords, position, self.grid.dims), &probe.point)
    }

    /// Returns which points of a group are near, as a bit for each.
    #[inline(always)]
    unsafe fn near(&self, point: &[C; D], position: usize) -> u32 {
        let near_by = |norm| {
            let (mut hits, mut i) = (0, 0);
            while i < GROUP {
                hits |= u32::from(self.is_near_by(norm, point, position + i)) << i;
                i += 1;
            }
            hits
        };
        // One branch on the norm for the whole group.
        if self.norm == Norm::Euclidean { near_by(Norm::Euclidean) } else { near_by(self.norm) }
    }

    #[inline(always)]
    unsafe fn is_near(&self, point: &[C; D], position: usize) -> bool {
        self.is_near_by(self.norm, point, position)
    }

    #[inline(always)]
    unsafe fn is_near_by(&self, norm: Norm, point: &[C; D], position: usize) -> bool {
        near(norm, &load_point(self.build.coords, position, self.grid.dims), point, self.bound)
    }
}

/// True if two points are within the distance of each other.
#[inline(always)]
pub(super) fn near<C: Float, const D: usize>(norm: Norm, left: &[C; D], right: &[C; D], bound: C) -> bool {
    distance(norm, left, right) <= bound
}

/// Returns the distance of two points. Unused coordinates are 0 and change nothing.
#[inline(always)]
fn distance<C: Float, const D: usize>(norm: Norm, left: &[C; D], right: &[C; D]) -> C {
    norm.put_together(D, |axis| along(left[axis], right[axis], C::ZERO))
}

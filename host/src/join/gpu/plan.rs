//! What joins will take of a GPU's memory, found without one.

use super::best::Best;
use super::cells::{GridOn, TwoSets};
use super::nested::{self, Top};
use super::pairs::Counting;
use super::{Strategy, grid_of_host, heaps, rising};
use crate::device::Layout;
use crate::error::Result;
use crate::join::{Lookup, Near};
use crate::primitives::bounds::Bounds;
use kauri_kernels::join::score::{ScoreType, Scoring};
use kauri_kernels::policy::JOIN;
use kauri_kernels::thread::coord::Coord;

/// Sets in host memory, and the grid of them.
pub(in crate::join) struct Needs {
    dims: usize,
    lens: [usize; 2],
    grid: Option<GridOn>,
}

/// What is asked for of the best pairs.
pub(in crate::join) struct Planned<'a> {
    pub(in crate::join) k: usize,
    pub(in crate::join) strategy: Strategy,
    pub(in crate::join) result_bytes: u64,
    pub(in crate::join) best_points: Option<usize>,
    pub(in crate::join) scoring: &'a Scoring,
    pub(in crate::join) of: ScoreType,
}

impl Needs {
    pub(in crate::join) fn new<C: Coord>(dims: usize, coords: [&[C]; 2], near: &Near<C>) -> Self {
        let lens = coords.map(|coords| coords.len() / dims);
        Self { dims, lens, grid: grid_of_host(dims, coords, near) }
    }

    /// Of sets of so many points, whatever they are.
    pub(super) fn most(dims: usize, lens: [usize; 2], lookup: Lookup) -> Self {
        Self { dims, lens, grid: Some(GridOn::largest(dims, lookup)) }
    }

    /// Number of cells, and bits of their codes; nothing if no two points can be near each other.
    pub(in crate::join) fn grid(&self) -> Option<(f64, u32)> {
        self.grid.as_ref().map(|grid| (grid.num_cells(), grid.code_bits))
    }

    /// True if so many points are in the cells around one that a tree takes less.
    pub(in crate::join) fn is_dense(&self, k: usize) -> bool {
        let around = self.grid.as_ref().map_or(0.0, |grid| grid.part_around() * self.lens[0] as f64);
        around > JOIN.nearest_by_cells_to(k)
    }

    /// Temporary bytes of two sets, or of one with itself; with the offsets of rows if pairs are not only counted.
    pub(in crate::join) fn of_pairs<C: Coord>(&self, is_one: bool, has_rows: bool) -> u64 {
        let Some(grid) = &self.grid else { return self.of_boxes::<C>() };
        let mut layout = Layout::new();
        TwoSets::<C>::plan(&mut layout, self.dims, grid, self.lens, is_one, false, false);
        if has_rows {
            Counting::plan(&mut layout, self.lens[1]);
            layout.reserve::<u64>(self.lens[1] + 1);
        }
        layout.bytes().max(self.of_boxes::<C>())
    }

    /// The strategy of the best pairs, and most temporary bytes that it takes.
    ///
    /// # Errors
    /// [`Error::StrategyLimit`](crate::Error::StrategyLimit).
    pub(in crate::join) fn of_best<C: Coord>(&self, planned: &Planned<'_>) -> Result<(Strategy, u64)> {
        let &Planned { strategy, result_bytes, best_points, scoring, of, .. } = planned;
        let all_pairs = self.lens[0] as u128 * self.lens[1] as u128;
        let k = usize::try_from(all_pairs).map_or(planned.k, |all| planned.k.min(all));
        let strategy = strategy.chosen(scoring, of, self.lens, k)?;
        if k == 0 {
            return Ok((strategy, 0));
        }
        let bytes = match strategy {
            Strategy::NestedLoop => {
                let mut layout = Layout::new();
                Best::plan(&mut layout, k);
                return Ok((strategy, layout.bytes()));
            }
            Strategy::Threshold => {
                let (_, points) = nested::some_points(k, best_points, self.lens);
                let mut layout = Layout::new();
                for len in self.lens {
                    Top::plan(&mut layout, of, len, len.min(points));
                }
                Best::plan(&mut layout, k);
                layout.bytes().max(self.of_rising::<C>(k))
            }
            Strategy::RegisterHeap | Strategy::SharedHeap => self.of_cells::<C>(|layout| {
                let in_registers = strategy == Strategy::RegisterHeap;
                let (of_row, batch) = heaps::rows_of(k, in_registers, self.lens[1], result_bytes);
                layout.reserve::<kauri_kernels::thread::words::Bits128>(batch * of_row);
                Best::plan(layout, k);
            }),
            Strategy::Filter => {
                let mut layout = Layout::new();
                Best::plan(&mut layout, k);
                layout.bytes().max(self.of_cells::<C>(|layout| {
                    Counting::plan(layout, self.lens[1]);
                    layout.reserve::<u64>(self.lens[1] + 1);
                }))
            }
            _ => self.of_rising::<C>(k),
        };
        Ok((strategy, bytes.max(self.of_boxes::<C>())))
    }

    /// Of the best pairs under a limit that rises.
    fn of_rising<C: Coord>(&self, k: usize) -> u64 {
        let mut layout = Layout::new();
        if let Some(grid) = &self.grid {
            rising::plan::<C>(&mut layout, self.dims, grid, self.lens, k);
        }
        layout.bytes()
    }

    /// Of two sets with scores, and more.
    fn of_cells<C: Coord>(&self, more: impl FnOnce(&mut Layout)) -> u64 {
        let Some(grid) = &self.grid else { return 0 };
        let mut layout = Layout::new();
        TwoSets::<C>::plan(&mut layout, self.dims, grid, self.lens, false, true, false);
        more(&mut layout);
        layout.bytes()
    }

    /// Of the boxes of sets, from which the grid is made.
    fn of_boxes<C: Coord>(&self) -> u64 {
        let mut layout = Layout::new();
        Bounds::<C>::plan(&mut layout, self.dims);
        layout.reserve::<C>(4 * self.dims);
        layout.bytes()
    }
}

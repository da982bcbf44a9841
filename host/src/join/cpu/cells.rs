//! The points of a set in the order of their cells, on the CPU.

use super::order::sort_by_code;
use super::overfull_cells::{OverfullCells, Segment};
use crate::error::Result;
use crate::parallel::{self, TASK_ITEMS};
use kauri_kernels::join::grid::Grid;
use kauri_kernels::thread::coord::Float;

/// The code and id of a point outside the grid.
const NOWHERE: (u64, u32) = (u64::MAX, u32::MAX);

/// Points sorted by (code of the cell, id), without the points outside the grid.
pub(super) struct Cells<C, const D: usize> {
    pub(super) codes: Vec<u64>,
    pub(super) ids: Vec<u32>,
    pub(super) points: Vec<[C; D]>,
    /// Trees over the points of overfull cells.
    pub(super) overfull: OverfullCells<C, D>,
}

impl<C: Float, const D: usize> Cells<C, D> {
    /// Sorts the points of a probe side, which need no trees.
    pub(super) fn new(points: &[[C; D]], grid: &Grid<D>) -> Result<Self> {
        let code = |id: usize| grid.cell(points[id]).map_or(NOWHERE, |cell| (grid.code(cell), id as u32));
        let mut cells = parallel::collect(points.len(), TASK_ITEMS, "cells of points", code)?;
        cells.retain(|cell| *cell != NOWHERE);
        sort_by_code(&mut cells, grid.code_bits())?;
        let point = |i: usize| points[cells[i].1 as usize];
        let points = parallel::collect(cells.len(), TASK_ITEMS, "points in the order of cells", point)?;
        let (codes, ids) = split(&cells)?;
        Ok(Self { codes, ids, points, overfull: OverfullCells::none() })
    }

    /// Sorts the points of a build side.
    pub(super) fn searchable(points: &[[C; D]], grid: &Grid<D>) -> Result<Self> {
        let cells = Self::new(points, grid)?;
        let overfull = OverfullCells::new(&cells.codes, &cells.points)?;
        Ok(Self { overfull, ..cells })
    }

    /// Replaces `segments` with those of the neighbor cells of a point, in the order of positions within each run of cells.
    pub(super) fn neighbor_segments(&self, grid: &Grid<D>, point: &[C; D], segments: &mut Vec<Segment>) {
        segments.clear();
        let Some(cell) = grid.cell(*point) else { return };
        for run in 0..grid.num_runs() {
            let Some((first, last)) = grid.run(cell, run) else { continue };
            let begin = self.codes.partition_point(|&code| code < first);
            let len = self.codes[begin..].partition_point(|&code| code <= last);
            self.overfull.append_segments(begin..begin + len, segments);
        }
    }
}

/// Splits sorted cells into their codes and the ids of their points.
fn split(cells: &[(u64, u32)]) -> Result<(Vec<u64>, Vec<u32>)> {
    let codes = parallel::collect(cells.len(), TASK_ITEMS, "codes of cells", |i| cells[i].0)?;
    let ids = parallel::collect(cells.len(), TASK_ITEMS, "ids in the order of cells", |i| cells[i].1)?;
    Ok((codes, ids))
}

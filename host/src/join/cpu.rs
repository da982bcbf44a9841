//! CPU backend of joins: the same grid, searched on all threads.

mod best;
mod cells;
mod overfull_cells;
mod rows;
mod sets;
#[cfg(test)]
mod tests;

use super::estimate::{self, Sample};
use super::params::JoinParams;
use super::rows::VisitRows;
use super::scored::Score;
use crate::batches::{Delivery, RowSplitter};
use crate::error::Result;
use crate::rows::Rows;
pub(super) use best::best_bytes;
use cells::Cells;
use kauri_kernels::join::score::Scoring;
use kauri_kernels::thread::coord::Coord;
use kauri_kernels::thread::words::Bits128;
pub(super) use overfull_cells::tree_bytes;
use rows::{ITEM_BYTES, zeros};
use sets::{JoinSides, grid_of_points};
use std::ops::ControlFlow;
use std::sync::Arc;

/// Counts the pairs.
pub(super) fn count<C: Coord>(dims: usize, coords: [&[C]; 2], params: &JoinParams<C>) -> Result<u64> {
    with_exact_dims!(dims, D => match JoinSides::<C, D>::new(coords, params)? {
        Some(sides) => sides.count(),
        None => Ok(0),
    })
}

/// Finds the build points near each probe point.
pub(super) fn rows<C: Coord>(dims: usize, coords: [&[C]; 2], params: &JoinParams<C>) -> Result<Rows> {
    with_exact_dims!(dims, D => match JoinSides::<C, D>::new(coords, params)? {
        Some(sides) => sides.rows(coords[1].len() / D),
        None => Ok(Rows::new(zeros(coords[1].len() / D + 1)?, Vec::new())),
    })
}

/// Delivers the build points near each probe point in batches of rows.
pub(super) fn deliver<C: Coord>(
    dims: usize,
    coords: [&[C]; 2],
    params: &JoinParams<C>,
    delivery: &mut Delivery<'_, '_>,
    visit: &mut VisitRows<'_>,
) -> Result<ControlFlow<()>> {
    with_exact_dims!(dims, D => deliver_dims::<C, D>(coords, params, delivery, visit))
}

fn deliver_dims<C: Coord, const D: usize>(
    coords: [&[C]; 2],
    params: &JoinParams<C>,
    delivery: &mut Delivery<'_, '_>,
    visit: &mut VisitRows<'_>,
) -> Result<ControlFlow<()>> {
    let [build, probe] = coords.map(|coords| coords.as_chunks::<D>().0);
    let mut splitter = RowSplitter::new(probe.len(), ITEM_BYTES, delivery.limits());
    // All batches share one grid, so that ids have the same order in all rows.
    let build = match grid_of_points([build, probe], params) {
        Some(grid) => Some((grid, Arc::new(Cells::searchable(build, &grid)?))),
        None => None,
    };
    if let Some((grid, build)) = &build {
        let sample = Sample::new(D, coords[1], estimate::ROWS, params)?;
        let probe = Arc::new(Cells::new(sample.coords.as_chunks::<D>().0, grid)?);
        let params = &sample.params(params);
        let sides = JoinSides { grid: *grid, params, build: build.clone(), probe, num_before: 0 };
        splitter = splitter.with_sample(sample.rows_with_items(sides.count()?));
    }
    while let Some(range) = splitter.next_range() {
        let rows = delivery.produce(|| match &build {
            Some((grid, build)) => {
                let part = Arc::new(Cells::new(&probe[range.clone()], grid)?);
                let num_before = range.start as u32;
                let sides = JoinSides { grid: *grid, params, build: build.clone(), probe: part, num_before };
                sides.leading_rows(range.len(), |offsets| splitter.rows_that_fit(offsets))
            }
            None => Ok(Rows::new(zeros(range.len() + 1)?, Vec::new())),
        })?;
        splitter.advance(rows.len(), rows.ids().len() as u64);
        let callback = || visit(range.start, rows.offsets(), rows.ids());
        let flow = delivery.deliver(rows.len(), rows.ids().len(), ITEM_BYTES, callback);
        if flow.is_break() {
            return Ok(flow);
        }
    }
    Ok(ControlFlow::Continue(()))
}

/// Finds the best pairs in order, the best first.
pub(super) fn top_k<C: Coord, S: Score>(
    dims: usize,
    coords: [&[C]; 2],
    scores: [&[S]; 2],
    params: &JoinParams<C>,
    scoring: &Scoring,
    k: usize,
) -> Result<Vec<Bits128>> {
    if k == 0 {
        return Ok(Vec::new());
    }
    with_exact_dims!(dims, D => match JoinSides::<C, D>::new(coords, params)? {
        Some(sides) => best::best_pairs(&sides, scores, scoring, k),
        None => Ok(Vec::new()),
    })
}

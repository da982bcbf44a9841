//! CPU backend of joins: the same grid, searched on all threads.

mod best;
mod cells;
pub(super) mod order;
mod overfull_cells;
mod rows;
mod sets;
#[cfg(test)]
mod tests;

use super::all_pairs::AllPairs;
use super::estimate::{self, Sample};
use super::params::{JoinParams, TopKParams};
use super::rows::{ITEM_BYTES, VisitRows, deliver_rows, empty_rows};
use super::scored::Score;
use crate::batches::{Delivery, RowSplitter};
use crate::error::Result;
use crate::rows::Rows;
use best::{CustomScore, PairScores};
pub(super) use best::{best_bytes, best_pairs_of_tasks};
use cells::Cells;
use kauri_kernels::thread::coord::Float;
use kauri_kernels::thread::words::Bits128;
pub(super) use overfull_cells::tree_bytes;
use sets::{JoinSides, grid_of_points};
use std::ops::ControlFlow;
use std::sync::Arc;

/// Counts the pairs.
pub(super) fn count<C: Float>(coords: [&[C]; 2], params: &JoinParams<C>) -> Result<u64> {
    with_exact_dims!(params.dims, D => match JoinSides::<C, D>::new(coords, params)? {
        Some(sides) => sides.count(),
        None => Ok(0),
    })
}

/// Finds the build points near each probe point.
pub(super) fn rows<C: Float>(coords: [&[C]; 2], params: &JoinParams<C>) -> Result<Rows> {
    let num_rows = coords[1].len() / params.dims;
    with_exact_dims!(params.dims, D => match JoinSides::<C, D>::new(coords, params)? {
        Some(sides) => sides.rows(num_rows),
        None => empty_rows(num_rows),
    })
}

/// Delivers the build points near each probe point in batches of rows.
pub(super) fn deliver<C: Float>(
    coords: [&[C]; 2],
    params: &JoinParams<C>,
    delivery: &mut Delivery<'_, '_>,
    visit: &mut VisitRows<'_>,
) -> Result<ControlFlow<()>> {
    with_exact_dims!(params.dims, D => deliver_dims::<C, D>(coords, params, delivery, visit))
}

fn deliver_dims<C: Float, const D: usize>(
    coords: [&[C]; 2],
    params: &JoinParams<C>,
    delivery: &mut Delivery<'_, '_>,
    visit: &mut VisitRows<'_>,
) -> Result<ControlFlow<()>> {
    let [build, probe] = coords.map(|coords| coords.as_chunks::<D>().0);
    let splitter = RowSplitter::new(probe.len(), ITEM_BYTES, delivery.limits());
    // All batches share one grid, so that ids have the same order in all rows.
    let Some(grid) = grid_of_points([build, probe], params) else {
        return deliver_rows(splitter, delivery, visit, |rows, _| empty_rows(rows.len()));
    };
    let build = Arc::new(Cells::searchable(build, &grid)?);
    let sample = Sample::new(coords[1], params.dims, estimate::ROWS, params.pairing)?;
    let sides = |probe: &[[C; D]], num_before: usize, params| {
        let probe = Arc::new(Cells::new(probe, &grid)?);
        Ok(JoinSides { grid, params, build: build.clone(), probe, num_before: num_before as u32 })
    };
    let sample_params = params.of_sample();
    let count = sides(sample.coords.as_chunks().0, 0, &sample_params)?.count()?;
    let splitter = splitter.with_sample(sample.rows_with_items(count));
    deliver_rows(splitter, delivery, visit, |range, splitter| {
        let sides = sides(&probe[range.clone()], range.start, params)?;
        sides.leading_rows(range.len(), &|offsets| splitter.rows_that_fit(offsets))
    })
}

/// Finds the best pairs in order, the best first.
pub(super) fn top_k<C: Float, S: Score>(
    coords: [&[C]; 2],
    scores: [&[S]; 2],
    params: &TopKParams<JoinParams<C>>,
) -> Result<Vec<Bits128>> {
    let ranks: [&best::RanksOf; 2] =
        [&|ids| best::ranks_of(ids, scores[0]), &|ids| best::ranks_of(ids, scores[1])];
    with_scores(coords, PairScores::OfPoints(ranks, &params.scoring), params)
}

/// Finds the best pairs by a custom score.
pub(super) fn top_k_by_custom_score<C: Float>(
    coords: [&[C]; 2],
    score: &CustomScore<'_>,
    params: &TopKParams<JoinParams<C>>,
) -> Result<Vec<Bits128>> {
    with_scores(coords, PairScores::Custom(score), params)
}

fn with_scores<C: Float>(
    coords: [&[C]; 2],
    scores: PairScores<'_>,
    params: &TopKParams<JoinParams<C>>,
) -> Result<Vec<Bits128>> {
    with_exact_dims!(params.join.dims, D => match JoinSides::<C, D>::new(coords, &params.join)? {
        Some(sides) => best::best_pairs(&sides, scores, params.k),
        None => Ok(Vec::new()),
    })
}

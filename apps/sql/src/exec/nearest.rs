//! The nearest right rows of left rows.

use super::part::JoinPoint;
use kauri::query::QueryOptions;
use kauri::{Batches, KdTree, SpatialIndex};
use std::ops::{ControlFlow, Range};

/// The numbers of a kNN join.
#[derive(Clone, Copy, Debug)]
pub(super) struct NearestParams {
    pub(super) k: usize,
    pub(super) within: Option<f64>,
    /// True if all points at the k-th distance are found.
    pub(super) include_ties: bool,
}

/// Points near some queries, in rows: ids and squared distances, the nearest first.
#[derive(Debug, Default)]
pub(super) struct NearRows {
    /// The number of the first query.
    pub(super) first: usize,
    /// The end of each row.
    pub(super) ends: Vec<usize>,
    pub(super) ids: Vec<u32>,
    pub(super) dist2: Vec<f64>,
}

impl NearRows {
    /// Returns the range of the points of a row, which is counted from 0.
    pub(super) fn range(&self, row: usize) -> Range<usize> {
        let begin = if row == 0 { 0 } else { self.ends[row - 1] };
        begin..self.ends[row]
    }

    fn push(&mut self, ids: &[u32], dist2: &[f64]) {
        self.ids.extend_from_slice(ids);
        self.dist2.extend_from_slice(dist2);
        self.ends.push(self.ids.len());
    }
}

/// Finds the nearest points of queries, and passes them on in chunks, in order.
pub(super) fn nearest<P: JoinPoint>(
    tree: &KdTree<P>,
    queries: &[P],
    params: NearestParams,
    batches: &mut Batches<'_>,
    mut visit: impl FnMut(NearRows) -> ControlFlow<()>,
) -> kauri::Result<()> {
    let mut options = QueryOptions::default();
    options.radius = params.within;
    // One more point shows whether there are ties.
    let fetch = (params.k + usize::from(params.include_ties)).min(tree.len());
    // Rows that are neither longer nor shorter lie one behind the other.
    let all_are_wanted = !params.include_ties && params.within.is_none();
    let mut error = None;
    tree.nearest_batches(queries, fetch, &options, batches, |batch| {
        let mut rows = NearRows { first: batch.rows().start, ..NearRows::default() };
        if all_are_wanted {
            rows.ends.extend((1..=batch.rows().len()).map(|row| row * fetch));
            (rows.ids, rows.dist2) = (batch.ids().to_vec(), batch.dist2().to_vec());
            return visit(rows);
        }
        for query in batch.rows() {
            let row = batch.row(query);
            let is_open = params.include_ties && is_open(row.dist2(), params.k, fetch, tree.len());
            if is_open {
                match with_ties(tree, &queries[query], params, &options) {
                    Ok((ids, dist2)) => rows.push(&ids, &dist2),
                    Err(found) => {
                        error = Some(found);
                        return ControlFlow::Break(());
                    }
                }
            } else {
                let len = len_with_ties(row.dist2(), params.k);
                rows.push(&row.ids()[..len], &row.dist2()[..len]);
            }
        }
        visit(rows)
    })?;
    error.map_or(Ok(()), Err)
}

/// Returns true if there may be more points at the k-th distance than the `fetch` points of a row.
fn is_open(dist2: &[f64], k: usize, fetch: usize, points: usize) -> bool {
    dist2.len() == fetch && fetch < points && dist2[fetch - 1] == dist2[k - 1]
}

/// Returns the number of points up to the k-th distance.
fn len_with_ties(dist2: &[f64], k: usize) -> usize {
    if dist2.len() <= k { dist2.len() } else { dist2.partition_point(|&distance| distance <= dist2[k - 1]) }
}

/// Finds the points of one query up to the k-th distance, by queries for more and more points.
fn with_ties<P: JoinPoint>(
    tree: &KdTree<P>,
    query: &P,
    params: NearestParams,
    options: &QueryOptions<P>,
) -> kauri::Result<(Vec<u32>, Vec<f64>)> {
    let mut fetch = params.k + 1;
    loop {
        fetch = (2 * fetch).min(tree.len());
        let found = tree.nearest_with(std::slice::from_ref(query), fetch, options)?;
        let row = found.row(0);
        if !is_open(row.dist2(), params.k, fetch, tree.len()) {
            let len = len_with_ties(row.dist2(), params.k);
            return Ok((row.ids()[..len].to_vec(), row.dist2()[..len].to_vec()));
        }
    }
}

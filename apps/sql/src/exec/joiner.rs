//! Calls of kauri: joins left rows with a part of the right side.

use super::OutputIndex;
use super::best;
use super::distances::PairDistances;
use super::merge::NearestMerge;
use super::nearest::{NearRows, NearestParams, nearest};
use super::output::{Output, Pairs};
use super::part::{JoinPoint, Part, Tree};
use super::side::{Shapes, Side};
use crate::error::from_kauri;
use crate::geometry::Measure;
use crate::options::KauriOptions;
use crate::predicate::{BoxRelation, SpatialPredicate};
use datafusion::common::internal_err;
use datafusion::error::Result;
use kauri::query::QueryOptions;
use kauri::{BoxJoin, Delivered, DistanceJoin, KdTree, LonLat, Neighbor, RowsBatch, SpatialIndex};
use std::ops::ControlFlow;

/// Joins sides by a predicate.
#[derive(Clone, Debug)]
pub(super) struct Joiner {
    pub(super) predicate: SpatialPredicate,
    include_ties: bool,
    /// True if the result has the distances of its pairs.
    has_distance: bool,
}

impl Joiner {
    pub(super) fn new(predicate: SpatialPredicate, options: &KauriOptions, output: &[OutputIndex]) -> Self {
        let has_distance = output.contains(&OutputIndex::Distance);
        Self { predicate, include_ties: options.include_ties, has_distance }
    }

    /// Returns true if a left row has its result only when it has been joined with all parts of the right side.
    pub(super) fn merges(&self) -> bool {
        matches!(self.predicate, SpatialPredicate::Knn { .. })
    }

    /// Joins left rows with a part of the right side that has all their partners, and sends the pairs.
    pub(super) fn join(&self, left: &Side, right: &Part, output: &Output) -> Result<()> {
        if left.len() == 0 || right.side.len() == 0 {
            return Ok(());
        }
        match self.predicate {
            SpatialPredicate::Knn { .. } => {
                self.nearest(left, right, |rows| output.send(left, &right.side, self.pairs(rows)))
            }
            SpatialPredicate::Within { radius, .. } => self.within(left, right, radius.get(), output),
            SpatialPredicate::TopK { k, radius, measure } => {
                let (Shapes::Scored(left), Shapes::Scored(rows)) = (&left.shapes, &right.side.shapes) else {
                    return internal_err!("a join of the best pairs has no scores");
                };
                best::send_pairs([left, rows], &right.device, k, radius.get(), measure, output)
            }
            SpatialPredicate::Boxes(relation) => boxes(left, right, relation, output),
        }
    }

    /// Finds the nearest rows of a part, and passes them on in chunks.
    pub(super) fn nearest(
        &self,
        left: &Side,
        right: &Part,
        visit: impl FnMut(NearRows) -> ControlFlow<()>,
    ) -> Result<()> {
        let SpatialPredicate::Knn { k, within, .. } = self.predicate else {
            return internal_err!("{} has no nearest rows", self.predicate);
        };
        let within = within.map(|radius| radius.get());
        let params = NearestParams { k, within, include_ties: self.include_ties };
        let tree = right.tree()?;
        right.with_batches(|batches| {
            match (&left.shapes, tree) {
                (Shapes::Planar(queries), Some(Tree::Planar(tree))) => {
                    nearest(tree, queries, params, batches, visit)
                }
                (Shapes::LonLat(queries), Some(Tree::LonLat(tree))) => {
                    nearest(tree, queries, params, batches, visit)
                }
                _ => return internal_err!("the sides of a join have different geometries"),
            }
            .map_err(from_kauri)
        })
    }

    /// Merges the nearest rows of a part with those of the parts before it.
    pub(super) fn merge(
        &self,
        left: &Side,
        right: &Part,
        merge: Option<NearestMerge>,
    ) -> Result<NearestMerge> {
        let SpatialPredicate::Knn { k, .. } = self.predicate else {
            return internal_err!("{} has no nearest rows", self.predicate);
        };
        let new = || NearestMerge::new(k, self.include_ties, left.len(), right.side.batch.schema());
        let mut merge = merge.unwrap_or_else(new);
        if left.len() == 0 || right.side.len() == 0 {
            return Ok(merge);
        }
        let mut chunks = Vec::new();
        self.nearest(left, right, |rows| {
            chunks.push(rows);
            ControlFlow::Continue(())
        })?;
        merge.merge(&chunks, right)?;
        Ok(merge)
    }

    /// Makes pairs of nearest rows.
    fn pairs(&self, rows: NearRows) -> Pairs {
        let distances = self.distances(&rows.dist2);
        let mut left = Vec::with_capacity(rows.ids.len());
        for (row, &end) in rows.ends.iter().enumerate() {
            left.resize(end, (rows.first + row) as u32);
        }
        Pairs { left, right: rows.ids, distances, scores: Vec::new() }
    }

    /// Returns the distances of squared distances of an index, if the result has distances.
    pub(super) fn distances(&self, dist2: &[f64]) -> Vec<f64> {
        if !self.has_distance {
            return Vec::new();
        }
        let distance = match self.predicate.measure() {
            Some(Measure::LonLat) => <LonLat as JoinPoint>::distance,
            _ => <[f64; 2] as JoinPoint>::distance,
        };
        dist2.iter().map(|&dist2| distance(dist2)).collect()
    }

    fn within(&self, left: &Side, right: &Part, radius: f64, output: &Output) -> Result<()> {
        // A tree is built once, while a join without one sorts the right side for each call.
        let is_tree_faster = right.has_tree() || left.len() < right.side.len() / 4;
        if is_tree_faster {
            return match (&left.shapes, right.tree()?) {
                (Shapes::Planar(queries), Some(Tree::Planar(tree))) => {
                    self.within_of(tree, queries, radius, left, right, output)
                }
                (Shapes::LonLat(queries), Some(Tree::LonLat(tree))) => {
                    self.within_of(tree, queries, radius, left, right, output)
                }
                _ => internal_err!("the sides of a join have different geometries"),
            };
        }
        let join = DistanceJoin::new(radius);
        let device = &right.device;
        let distances = self.has_distance.then(|| PairDistances::new(left, &right.side)).transpose()?;
        let visit = |batch: RowsBatch<'_>| {
            let mut pairs = pairs_of_ids(batch);
            if let Some(distances) = &distances {
                pairs.distances = distances.of(&pairs.left, &pairs.right);
            }
            output.send(left, &right.side, pairs)
        };
        right.with_batches(|batches| {
            match (&left.shapes, &right.side.shapes) {
                (Shapes::Planar(a), Shapes::Planar(b)) => join.rows_batches(device, a, b, batches, visit),
                (Shapes::LonLat(a), Shapes::LonLat(b)) => join.rows_batches(device, a, b, batches, visit),
                _ => return internal_err!("the sides of a join have different geometries"),
            }
            .map(ignore)
            .map_err(from_kauri)
        })
    }

    fn within_of<P: JoinPoint>(
        &self,
        tree: &KdTree<P>,
        queries: &[P],
        radius: f64,
        left: &Side,
        right: &Part,
        output: &Output,
    ) -> Result<()> {
        let visit = |batch: RowsBatch<'_, Neighbor<f64>>| {
            let distances = self.distances(batch.dist2());
            let left_ids = repeated(batch.rows().start, batch.offsets());
            let pairs = Pairs { left: left_ids, right: batch.ids().to_vec(), distances, scores: Vec::new() };
            output.send(left, &right.side, pairs)
        };
        let options = QueryOptions::default();
        right
            .with_batches(|batches| tree.within_batches(queries, radius, &options, batches, visit))
            .map(ignore)
            .map_err(from_kauri)
    }
}

fn boxes(left: &Side, right: &Part, relation: BoxRelation, output: &Output) -> Result<()> {
    let (Shapes::Boxes(a), Shapes::Boxes(b)) = (&left.shapes, &right.side.shapes) else {
        return internal_err!("a join of boxes has other geometries");
    };
    let join = match relation {
        BoxRelation::Intersects => BoxJoin::intersects(),
        BoxRelation::Contains => BoxJoin::contains(),
        BoxRelation::Within(radius) => BoxJoin::within(radius.get()),
    };
    let visit = |batch: RowsBatch<'_>| output.send(left, &right.side, pairs_of_ids(batch));
    right
        .with_batches(|batches| join.rows_batches(&right.device, a, b, batches, visit))
        .map(ignore)
        .map_err(from_kauri)
}

fn pairs_of_ids(batch: RowsBatch<'_>) -> Pairs {
    let left = repeated(batch.rows().start, batch.offsets());
    Pairs { left, right: batch.ids().to_vec(), distances: Vec::new(), scores: Vec::new() }
}

/// Returns the number of the row of each value.
fn repeated(first: usize, offsets: &[u64]) -> Vec<u32> {
    let mut rows = Vec::with_capacity((offsets[offsets.len() - 1] - offsets[0]) as usize);
    for (row, ends) in offsets.windows(2).enumerate() {
        rows.resize(rows.len() + (ends[1] - ends[0]) as usize, (first + row) as u32);
    }
    rows
}

/// A result that was not delivered completely was not wanted.
fn ignore(_: Delivered) {}

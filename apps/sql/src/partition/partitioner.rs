//! Parts of space, each of which is joined by itself.

use super::cut::Cut;
use super::region::{EMPTY, Place, Region, distance, length, union};
use crate::error::from_kauri;
use crate::geometry::Measure;
use crate::predicate::{BoxRelation, SpatialPredicate};
use datafusion::arrow::array::{ArrayRef, Int64Array};
use datafusion::common::hash_utils::create_hashes;
use datafusion::common::internal_err;
use datafusion::error::Result;
use datafusion::physical_plan::repartition::REPARTITION_RANDOM_STATE;
use kauri::query::{Norm, QueryOptions};
use kauri::{Device, KdTree, KdTreeOptions, LonLat, Point, SpatialIndex};
use std::sync::Arc;

/// The left rows of a cell.
#[derive(Clone, Copy, Debug)]
pub(super) struct CellRows {
    pub(super) rows: u64,
    /// Their bounding box.
    pub(super) region: Region,
}

impl CellRows {
    pub(super) const NONE: Self = Self { rows: 0, region: EMPTY };
}

/// Sends rows to parts. A part is a number of consecutive cells.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Partitioner {
    /// How geometries become places; see [`measure`](Self::measure).
    #[prost(uint32, tag = "1")]
    measure: u32,
    #[prost(message, required, tag = "2")]
    cut: Cut,
    /// The bounding box of the left rows below each node of the cut, planes before cells: two corners of three coordinates.
    #[prost(double, repeated, tag = "3")]
    regions: Vec<f64>,
    /// The largest distance of a partner of a left row below each node.
    #[prost(double, repeated, tag = "4")]
    reaches: Vec<f64>,
    /// The part of each cell.
    #[prost(uint32, repeated, tag = "5")]
    parts: Vec<u32>,
    /// For each part a number that the engine's hash sends to it.
    #[prost(int64, repeated, tag = "6")]
    keys: Vec<i64>,
}

impl Partitioner {
    /// Creates one that only knows the cells.
    pub(super) fn of_cut(cut: Cut, measure: Option<Measure>) -> Self {
        let measure = match measure {
            Some(Measure::Planar) => 0,
            Some(Measure::LonLat) => 1,
            None => 2,
        };
        Self { measure, cut, ..Self::default() }
    }

    /// Creates one of `parts` parts for a join of the left rows of each cell with a right side of which `sample` is a part.
    ///
    /// # Errors
    /// Errors of kauri.
    pub(super) fn new(
        cut: Cut,
        predicate: SpatialPredicate,
        left: &[CellRows],
        sample: &[Place],
        parts: usize,
    ) -> Result<Self> {
        let rounded = |cell: &CellRows| match cell.rows {
            0 => *cell,
            _ => CellRows { region: with_rounding(cell.region), ..*cell },
        };
        let left = &left.iter().map(rounded).collect::<Vec<_>>()[..];
        let reaches = reaches(predicate, left, sample)?;
        let mut right = vec![0; left.len()];
        sample.iter().for_each(|place| right[cut.cell_of(place)] += 1);
        let parts_of_cells = shares(left, &right, parts);
        let inner = left.len() - 1;
        let mut nodes = vec![(EMPTY, 0.0); inner];
        nodes.extend(left.iter().map(|cell| cell.region).zip(reaches));
        for node in (0..inner).rev() {
            let ((a, reach), (b, other)) = (nodes[2 * node + 1], nodes[2 * node + 2]);
            nodes[node] = (union(a, b), reach.max(other));
        }
        Ok(Self {
            regions: nodes.iter().flat_map(|(region, _)| region.as_flattened()).copied().collect(),
            reaches: nodes.iter().map(|&(_, reach)| reach).collect(),
            parts: parts_of_cells,
            keys: keys(parts)?,
            ..Self::of_cut(cut, predicate.measure())
        })
    }

    /// Checks one that was decoded.
    ///
    /// # Errors
    /// An internal error of the engine.
    pub(super) fn check(&self) -> Result<()> {
        let cells = self.cut.cells();
        let nodes = 2 * cells - 1;
        let is_cut = self.parts.is_empty() && self.reaches.is_empty() && self.regions.is_empty();
        let is_whole =
            self.parts.len() == cells && self.reaches.len() == nodes && self.regions.len() == 6 * nodes;
        let has_keys = self.parts.iter().all(|&part| (part as usize) < self.keys.len());
        if self.cut.is_valid() && (is_cut || is_whole) && has_keys && self.measure <= 2 {
            return Ok(());
        }
        internal_err!("the parts of a spatial join are not valid")
    }

    /// Returns true if it has parts, and false if it only knows the cells.
    pub(super) fn has_keys(&self) -> bool {
        !self.keys.is_empty() && !self.parts.is_empty()
    }

    /// Returns the measure of the geometries; `None` for boxes.
    pub(super) fn measure(&self) -> Option<Measure> {
        [Some(Measure::Planar), Some(Measure::LonLat), None][self.measure as usize]
    }

    pub(super) fn cell_of(&self, place: &Place) -> usize {
        self.cut.cell_of(place)
    }

    /// Returns the key of the part of a left row, which is that of its least corner; `None` if the row is outside of the box of its cell,
    /// so that it was not there when the parts were made.
    pub(super) fn home(&self, region: &Region) -> Option<i64> {
        let cell = self.cell_of(&region[0]);
        let [low, high] = self.region_of(cell + self.parts.len() - 1);
        let is_inside = (0..3).all(|axis| low[axis] <= region[0][axis] && region[1][axis] <= high[axis]);
        is_inside.then(|| self.keys[self.parts[cell] as usize])
    }

    /// Returns the bounding box of the left rows below a node.
    fn region_of(&self, node: usize) -> Region {
        let corners = self.regions.as_chunks::<3>().0;
        [corners[2 * node], corners[2 * node + 1]]
    }

    /// Adds the keys of the parts that have left rows in whose reach a right row is. `keys` is empty before.
    pub(super) fn near(&self, region: &Region, keys: &mut Vec<i64>) {
        self.near_below(0, region, keys);
    }

    fn near_below(&self, node: usize, region: &Region, keys: &mut Vec<i64>) {
        let left = self.region_of(node);
        // A node without rows has an empty box.
        if left[0][0] > left[1][0] || distance(&left, region) > self.reaches[node] {
            return;
        }
        let inner = self.parts.len() - 1;
        if node < inner {
            self.near_below(2 * node + 1, region, keys);
            self.near_below(2 * node + 2, region, keys);
            return;
        }
        let key = self.keys[self.parts[node - inner] as usize];
        // The cells of a part are consecutive.
        if keys.last() != Some(&key) {
            keys.push(key);
        }
    }

    /// Returns the key of rows without a geometry, which have no partners.
    pub(super) fn any_key(&self) -> i64 {
        self.keys[0]
    }
}

/// More than the rounding of coordinates and distances, relative to them.
const ROUNDING: f64 = 1e-9;
const SLACK: f64 = 1.0 + ROUNDING;

/// Returns a box that also has rows whose coordinates are rounded differently, as averages may be from run to run.
fn with_rounding([low, high]: Region) -> Region {
    [low.map(|x| x - ROUNDING * x.abs()), high.map(|x| x + ROUNDING * x.abs())]
}

/// Returns for each cell the largest distance of a partner of its left rows, or a larger one.
fn reaches(predicate: SpatialPredicate, left: &[CellRows], sample: &[Place]) -> Result<Vec<f64>> {
    let bound = |radius: f64, measure: Measure| match measure {
        Measure::Planar => radius * SLACK,
        Measure::LonLat => LonLat::bound(radius, Norm::Euclidean).sqrt() * SLACK,
    };
    let reach = match predicate {
        SpatialPredicate::Within { radius, measure } | SpatialPredicate::TopK { radius, measure, .. } => {
            bound(radius.get(), measure)
        }
        SpatialPredicate::Boxes(BoxRelation::Within(radius)) => radius.get() * SLACK,
        SpatialPredicate::Boxes(_) => 0.0,
        SpatialPredicate::Knn { k, within, measure } => {
            let within = within.map_or(f64::INFINITY, |radius| bound(radius.get(), measure));
            return nearest_reaches(k, left, sample)
                .map(|reaches| reaches.into_iter().map(|reach| reach.min(within)).collect());
        }
    };
    Ok(vec![reach; left.len()])
}

/// Returns for each cell a distance that the `k`-th nearest right row of its left rows does not exceed: that of the `k`-th nearest row of
/// the sample from the center of the left rows, and from there to the farthest of them.
fn nearest_reaches(k: usize, left: &[CellRows], sample: &[Place]) -> Result<Vec<f64>> {
    if sample.len() < k {
        return Ok(vec![f64::INFINITY; left.len()]);
    }
    let used: Vec<usize> = (0..left.len()).filter(|&cell| left[cell].rows > 0).collect();
    let centers: Vec<Place> = used.iter().map(|&cell| center(left[cell].region)).collect();
    let tree = KdTree::build(&Device::cpu(), sample, &KdTreeOptions::default()).map_err(from_kauri)?;
    let found = tree.nearest_with(&centers, k, &QueryOptions::default()).map_err(from_kauri)?;
    let mut reaches = vec![0.0; left.len()];
    for (query, &cell) in used.iter().enumerate() {
        let kth = found.row(query).dist2()[k - 1].sqrt();
        let [low, high] = left[cell].region;
        let center = centers[query];
        let to_corner = std::array::from_fn(|axis| (high[axis] - center[axis]).max(center[axis] - low[axis]));
        reaches[cell] = (kth + length(to_corner)) * SLACK;
    }
    Ok(reaches)
}

fn center([low, high]: Region) -> Place {
    std::array::from_fn(|axis| low[axis] + (high[axis] - low[axis]) / 2.0)
}

/// Divides the cells, in order, among parts of about equal weight. The weight of a cell is its share of the left rows plus its share of the
/// right rows.
fn shares(left: &[CellRows], right: &[u64], parts: usize) -> Vec<u32> {
    let total = |rows: u64| rows.max(1) as f64;
    let (left_rows, right_rows) = (total(left.iter().map(|cell| cell.rows).sum()), total(right.iter().sum()));
    let weights: Vec<f64> = left
        .iter()
        .zip(right)
        .map(|(cell, &rows)| cell.rows as f64 / left_rows + rows as f64 / right_rows)
        .collect();
    let whole: f64 = weights.iter().sum::<f64>().max(f64::MIN_POSITIVE);
    let mut before = 0.0;
    let part = |weight: &f64| {
        let part = (before + weight / 2.0) / whole * parts as f64;
        before += weight;
        (part as u32).min(parts as u32 - 1)
    };
    weights.iter().map(part).collect()
}

/// Returns for each of `parts` partitions the least number that the engine's hash sends to it.
fn keys(parts: usize) -> Result<Vec<i64>> {
    let mut keys = vec![None; parts];
    let mut missing = parts;
    let mut begin = 0;
    while missing > 0 {
        let end = begin + 16 * parts as i64;
        let numbers: ArrayRef = Arc::new((begin..end).collect::<Int64Array>());
        let mut hashes = vec![0; numbers.len()];
        create_hashes(&[numbers], REPARTITION_RANDOM_STATE.random_state(), &mut hashes)?;
        for (number, hash) in (begin..end).zip(hashes) {
            let key = &mut keys[(hash % parts as u64) as usize];
            if key.is_none() {
                (*key, missing) = (Some(number), missing - 1);
            }
        }
        begin = end;
    }
    Ok(keys.into_iter().flatten().collect())
}

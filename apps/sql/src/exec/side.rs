//! One side of a join: rows and their geometries.

use super::scored::ScoredRows;
use datafusion::arrow::record_batch::RecordBatch;
use kauri::LonLat;

/// The geometries of a side in the types of kauri.
#[derive(Debug)]
pub(super) enum Shapes {
    Planar(Vec<[f64; 2]>),
    LonLat(Vec<LonLat>),
    Boxes(Vec<[[f64; 2]; 2]>),
    /// Points with scores, of which a join of the best pairs reads those that it needs.
    Scored(ScoredRows),
}

/// The rows of a side that have a geometry. The id of a row is the index of its geometry.
#[derive(Debug)]
pub(super) struct Side {
    pub(super) batch: RecordBatch,
    pub(super) shapes: Shapes,
    /// The score of each id, if the join has scores.
    pub(super) scores: Vec<f64>,
    /// The row of each id; `None` if that is the id.
    pub(super) rows: Option<Vec<u32>>,
}

impl Side {
    /// Returns the number of geometries.
    pub(super) fn len(&self) -> usize {
        match &self.shapes {
            Shapes::Planar(points) => points.len(),
            Shapes::LonLat(points) => points.len(),
            Shapes::Boxes(boxes) => boxes.len(),
            Shapes::Scored(rows) => rows.len(),
        }
    }

    /// Returns the points of all ids: coordinates, or longitude and latitude. Sides of other geometries have none.
    pub(super) fn points(&self) -> &[[f64; 2]] {
        match &self.shapes {
            Shapes::Planar(points) => points,
            Shapes::LonLat(points) => bytemuck::cast_slice(points),
            Shapes::Boxes(_) | Shapes::Scored(_) => &[],
        }
    }

    /// Converts ids to rows.
    pub(super) fn rows_of(&self, mut ids: Vec<u32>) -> Vec<u32> {
        if let Some(rows) = &self.rows {
            ids.iter_mut().for_each(|id| *id = rows[*id as usize]);
        }
        ids
    }
}

//! A part of the right side in memory, and its index.

use super::memory::batch_bytes;
use super::reader::SideReader;
use super::rows::BatchedRows;
use super::side::{Shapes, Side};
use crate::error::from_kauri;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::error::Result;
use kauri::{Batches, Device, KdTree, KdTreeOptions, LonLat, Point};
use std::sync::{Mutex, OnceLock, PoisonError};

/// The bytes of the pairs that are in memory at a time.
const BATCH_BYTES: u64 = 32 << 20;
/// The left rows that are joined between two looks at whether the result is still wanted.
const BATCH_ROWS: usize = 1 << 17;

/// A point of a join, whose index has `f64` coordinates.
pub(super) trait JoinPoint: Point<Coord = f64> {
    /// Returns the distance of a squared distance of the index.
    fn distance(dist2: f64) -> f64;
}

impl JoinPoint for [f64; 2] {
    fn distance(dist2: f64) -> f64 {
        dist2.sqrt()
    }
}

impl JoinPoint for LonLat {
    fn distance(dist2: f64) -> f64 {
        Self::chord2_to_meters(dist2)
    }
}

/// A tree over points.
#[derive(Debug)]
pub(super) enum Tree {
    Planar(KdTree<[f64; 2]>),
    LonLat(KdTree<LonLat>),
}

/// Rows of the right side, and their index once it is needed.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) side: Side,
    pub(super) device: Device,
    tree: OnceLock<Option<Tree>>,
    /// Held while the tree is built.
    building: Mutex<()>,
    /// The memory for results of joins that have ended.
    batches: Mutex<Vec<Batches<'static>>>,
}

impl Part {
    pub(super) fn new(side: Side, device: Device) -> Self {
        Self { side, device, tree: OnceLock::new(), building: Mutex::default(), batches: Mutex::default() }
    }

    /// Returns the tree over the points, which the first call builds; `None` for other geometries.
    pub(super) fn tree(&self) -> Result<Option<&Tree>> {
        let _building = self.building.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(tree) = self.tree.get() {
            return Ok(tree.as_ref());
        }
        let options = KdTreeOptions::default();
        let tree = match &self.side.shapes {
            Shapes::Planar(points) => {
                KdTree::build(&self.device, points, &options).map(|tree| Some(Tree::Planar(tree)))
            }
            Shapes::LonLat(points) => {
                KdTree::build(&self.device, points, &options).map(|tree| Some(Tree::LonLat(tree)))
            }
            Shapes::Boxes(_) | Shapes::Scored(_) => Ok(None),
        };
        let tree = tree.map_err(from_kauri)?;
        Ok(self.tree.get_or_init(|| tree).as_ref())
    }

    /// Calls a function with memory for results. On a GPU it takes long to allocate, so it is used again.
    pub(super) fn with_batches<R>(&self, join: impl FnOnce(&mut Batches<'static>) -> R) -> R {
        let pool = || self.batches.lock().unwrap_or_else(PoisonError::into_inner);
        let free = pool().pop();
        let mut batches = free.unwrap_or_else(|| Batches::new().bytes(BATCH_BYTES).rows(BATCH_ROWS));
        let result = join(&mut batches);
        pool().push(batches);
        result
    }

    /// Returns true if the tree has been built.
    pub(super) fn has_tree(&self) -> bool {
        self.tree.get().is_some()
    }
}

/// Right rows that become a part.
pub(super) struct PartRows {
    reader: SideReader,
    pub(super) device: Device,
    pub(super) rows: BatchedRows,
}

impl PartRows {
    pub(super) fn new(reader: SideReader, device: Device, schema: SchemaRef) -> Self {
        Self { reader, device, rows: BatchedRows::new(schema) }
    }

    /// Returns the bytes that a part grows by with a batch: its rows before and after they are put together, their geometries and their
    /// index.
    pub(super) fn cost(&self, batch: &RecordBatch) -> usize {
        let num_rows = self.rows.num_rows() + batch.num_rows();
        let index = |rows| index_bytes(&self.device, rows, !self.reader.has_points());
        let index = index(num_rows).saturating_sub(index(self.rows.num_rows()));
        2 * batch_bytes(batch) + batch.num_rows() * self.reader.row_bytes() + index
    }

    pub(super) fn into_part(self, first_row: u64) -> Result<Part> {
        Ok(Part::new(self.reader.read(self.rows, first_row)?, self.device))
    }
}

/// Returns the bytes of the index over this many geometries, and of the memory that its build takes.
fn index_bytes(device: &Device, rows: usize, is_boxes: bool) -> usize {
    if is_boxes {
        return 64 * rows;
    }
    let plan = KdTree::<LonLat>::plan(device, rows, &KdTreeOptions::default());
    (plan.tree_bytes + plan.temp_bytes) as usize
}

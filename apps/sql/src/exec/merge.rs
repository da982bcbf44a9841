//! Merges the nearest rows of several parts of the right side.

use super::memory::batch_bytes;
use super::nearest::NearRows;
use super::order::{compare_points, keys};
use super::output::{Output, Pairs};
use super::part::Part;
use super::side::Side;
use datafusion::arrow::array::UInt32Array;
use datafusion::arrow::compute::{concat_batches, take_record_batch};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::arrow::row::Rows;
use datafusion::error::Result;
use std::cmp::Ordering;

/// A right row near a left row.
#[derive(Clone, Copy, Debug)]
struct Near {
    dist2: f64,
    point: [f64; 2],
    /// The row in the pool.
    row: u32,
}

/// The nearest right rows of left rows, among the parts that have been merged.
pub(super) struct NearestMerge {
    k: usize,
    include_ties: bool,
    /// The nearest rows of each left row, the nearest first.
    near: Vec<Vec<Near>>,
    /// The columns of these rows.
    pool: RecordBatch,
}

impl NearestMerge {
    pub(super) fn new(k: usize, include_ties: bool, num_left: usize, schema: SchemaRef) -> Self {
        Self { k, include_ties, near: vec![Vec::new(); num_left], pool: RecordBatch::new_empty(schema) }
    }

    /// Returns the bytes of the rows.
    pub(super) fn bytes(&self) -> usize {
        batch_bytes(&self.pool) + self.pool.num_rows() * size_of::<Near>()
    }

    /// Merges the nearest rows of a part. `chunks` has all left rows, in order.
    pub(super) fn merge(&mut self, chunks: &[NearRows], part: &Part) -> Result<()> {
        let ids: Vec<u32> = chunks.iter().flat_map(|chunk| chunk.ids.iter().copied()).collect();
        let rows = UInt32Array::from(part.side.rows_of(ids.clone()));
        let taken = take_record_batch(&part.side.batch, &rows)?;
        let mut row = self.pool.num_rows() as u32;
        let pool = concat_batches(&self.pool.schema(), [&self.pool, &taken])?;
        let keys = keys(&pool)?;
        let points = part.side.points();
        let mut kept: Vec<u32> = Vec::new();
        for chunk in chunks {
            for index in 0..chunk.ends.len() {
                let near = &mut self.near[chunk.first + index];
                for found in chunk.range(index) {
                    let point = points[chunk.ids[found] as usize];
                    near.push(Near { dist2: chunk.dist2[found], point, row });
                    row += 1;
                }
                near.sort_by(|a, b| order(a, b, keys.as_ref()));
                cut(near, self.k, self.include_ties);
                for near in near {
                    kept.push(near.row);
                    near.row = kept.len() as u32 - 1;
                }
            }
        }
        self.pool = take_record_batch(&pool, &UInt32Array::from(kept))?;
        Ok(())
    }

    /// Sends the result.
    pub(super) fn send(self, left: &Side, distance: impl Fn(&[f64]) -> Vec<f64>, output: &Output) {
        let near = || self.near.iter().flatten();
        let ids =
            self.near.iter().enumerate().flat_map(|(id, near)| near.iter().map(move |_| id as u32)).collect();
        let pairs = Pairs {
            left: left.rows_of(ids),
            right: near().map(|near| near.row).collect(),
            distances: distance(&near().map(|near| near.dist2).collect::<Vec<_>>()),
            scores: Vec::new(),
        };
        // A receiver that is gone needs no pairs.
        let _ = output.send_rows(&left.batch, &self.pool, pairs);
    }
}

/// Compares as the ids of a right side in memory are ordered.
fn order(a: &Near, b: &Near, keys: Option<&Rows>) -> Ordering {
    let keys =
        || keys.map_or(Ordering::Equal, |keys| keys.row(a.row as usize).cmp(&keys.row(b.row as usize)));
    a.dist2.total_cmp(&b.dist2).then_with(|| compare_points(a.point, b.point)).then_with(keys)
}

fn cut(near: &mut Vec<Near>, k: usize, include_ties: bool) {
    if near.len() > k {
        let kth = near[k - 1].dist2;
        near.truncate(if include_ties { near.partition_point(|near| near.dist2 <= kth) } else { k });
    }
}

//! Rows with scores, of which a join of the best pairs reads few.
//!
//! The best rows of both sides are joined first. The worst of the best pairs that they have is a threshold: a row whose score does not reach
//! it with the best score of the other side is in no better pair, and its point is not read.

use super::reader::SideReader;
use super::rows::BatchedRows;
use super::side::Side;
use datafusion::arrow::array::{Array, Float64Array};
use datafusion::arrow::buffer::ScalarBuffer;
use datafusion::arrow::compute::max;
use datafusion::error::Result;
use rayon::iter::{IndexedParallelIterator, IntoParallelIterator, IntoParallelRefIterator, ParallelIterator};
use rayon::slice::ParallelSlice;

/// Rows with scores, and with points that have been checked.
#[derive(Debug)]
pub(super) struct ScoredRows {
    reader: SideReader,
    rows: BatchedRows,
    /// The scores of each batch; NaN for rows without a point or a score.
    scores: Vec<ScalarBuffer<f64>>,
    /// The greatest score; -∞ if no row has one.
    best_score: f64,
}

impl ScoredRows {
    /// Takes rows whose points have been checked. A score is null if its row has no point.
    pub(super) fn new(reader: SideReader, rows: BatchedRows, scores: Vec<Float64Array>) -> Self {
        let best_score = scores.par_iter().filter_map(max).reduce(|| f64::NEG_INFINITY, f64::max);
        let without_nulls = |scores: Float64Array| {
            if scores.null_count() == 0 {
                return scores.values().clone();
            }
            scores.iter().map(|score| score.unwrap_or(f64::NAN)).collect()
        };
        let scores = scores.into_par_iter().map(without_nulls).collect();
        Self { reader, rows, scores, best_score }
    }

    /// Returns the number of rows.
    pub(super) fn len(&self) -> usize {
        self.rows.num_rows()
    }

    pub(super) fn best_score(&self) -> f64 {
        self.best_score
    }

    /// Returns the rows of the `len` best scores, in order.
    pub(super) fn best(&self, len: usize) -> Vec<u32> {
        // A task for each thread: every task begins without a bound.
        let task = self.scores.len().div_ceil(rayon::current_num_threads()).max(1);
        let best_of = |(index, scores): (usize, &[ScalarBuffer<f64>])| {
            let mut best = BestRows { len, rows: Vec::new(), bound: f64::NEG_INFINITY };
            for (batch, scores) in (index * task..).zip(scores) {
                best.add(scores, self.rows.begin(batch));
            }
            best
        };
        let merge = |mut a: BestRows, b: BestRows| {
            a.rows.extend(b.rows);
            a.cut();
            a
        };
        let tasks = self.scores.par_chunks(task).enumerate().map(best_of);
        let Some(mut best) = tasks.reduce_with(merge) else { return Vec::new() };
        best.cut();
        let mut rows: Vec<u32> = best.rows.into_iter().map(|(_, row)| row).collect();
        rows.sort_unstable();
        rows
    }

    /// Returns the rows whose scores fulfill a condition that NaN does not, in order.
    pub(super) fn with_score(&self, condition: impl Fn(f64) -> bool + Sync) -> Vec<u32> {
        let rows_of = |(index, scores): (usize, &ScalarBuffer<f64>)| {
            let rows = (self.rows.begin(index)..).zip(scores.iter());
            rows.filter(|&(_, &score)| condition(score)).map(|(row, _)| row).collect::<Vec<_>>()
        };
        let rows: Vec<Vec<u32>> = self.scores.par_iter().enumerate().map(rows_of).collect();
        rows.concat()
    }

    /// Reads the points of rows.
    pub(super) fn read(&self, rows: &[u32]) -> Result<Side> {
        if rows.len() > self.len() / 2 {
            // Fewer copies.
            return self.reader.read_now(&self.rows, 0);
        }
        let mut few = BatchedRows::new(self.rows.schema().clone());
        few.push(self.rows.take(rows)?);
        self.reader.read_now(&few, 0)
    }
}

/// The best rows so far.
struct BestRows {
    len: usize,
    /// Scores and rows, fewer than `2 * len`.
    rows: Vec<(f64, u32)>,
    /// The score that a further row must exceed.
    bound: f64,
}

impl BestRows {
    fn add(&mut self, scores: &[f64], begin: u32) {
        for (row, &score) in (begin..).zip(scores) {
            if score > self.bound {
                self.rows.push((score, row));
                if self.rows.len() >= 2 * self.len {
                    self.cut();
                }
            }
        }
    }

    /// Keeps the best `len` rows.
    fn cut(&mut self) {
        if self.rows.len() > self.len {
            let (_, last, _) = self.rows.select_nth_unstable_by(self.len - 1, |a, b| b.0.total_cmp(&a.0));
            self.bound = last.0;
            self.rows.truncate(self.len);
        }
    }
}

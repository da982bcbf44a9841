//! Results that are too large for memory: batch after batch, in order, to a callback.
//!
//! On a GPU three things go on at the same time: the device makes a batch, the one before it is copied to pinned host memory, and
//! the callback looks at the one before that. So a call takes little more time than the slowest of the three.

mod cut;
mod delivery;
mod pipeline;

pub(crate) use cut::{Limits, Rows, equal_rows};
pub(crate) use delivery::Delivery;
pub(crate) use pipeline::{Input, Made, Pipeline, Place, Work, items};

use crate::progress::Progress;
use crate::stats::Stats;
use std::fmt;

/// Bytes of a batch unless asked otherwise: it takes a millisecond to copy, a hundred times what its launches do.
const BYTES: u64 = 64 << 20;
/// Rows of a batch unless asked otherwise.
const ROWS: usize = 1 << 22;

/// How results are delivered in batches, and the memory for it, which is kept for the next call: a second call of the same size
/// allocates nothing on a GPU.
///
/// A batch is a range of rows that follow each other, with their results; each row is whole, and in one batch. Batches come in
/// order, on the thread of the call. Where they are cut depends on the limits and the results alone, and not on the device.
///
/// Memory: on a GPU two batches in device memory and two in pinned host memory, and in both what the queries of as many rows take, with
/// a quarter more to grow into; on the CPU one batch.
///
/// ```
/// use kauri::{Batches, Device, KdTree, KdTreeOptions, SpatialIndex};
/// use kauri::query::QueryOptions;
/// use std::ops::ControlFlow;
/// let points = [[0.0f32], [1.0], [2.0], [3.0]];
/// let tree = KdTree::build(&Device::cpu(), &points, &KdTreeOptions::default())?;
///
/// let mut batches = Batches::new().bytes(1 << 20).rows(3);
/// let mut sizes = Vec::new();
/// let delivered = tree.within_batches(&points, 1.0, &QueryOptions::default(), &mut batches, |batch| {
///     for row in batch.rows() {
///         sizes.push((row, batch.row(row).len()));
///     }
///     ControlFlow::Continue(())
/// })?;
/// assert_eq!(sizes, [(0, 2), (1, 3), (2, 3), (3, 2)]);
/// assert!(delivered.is_complete && delivered.items == 10);
/// # Ok::<(), kauri::Error>(())
/// ```
pub struct Batches<'p> {
    limits: Limits,
    progress: Option<Box<dyn Progress + Send + 'p>>,
    /// Streams and memory of the last GPU.
    pipeline: Option<Pipeline>,
}

impl<'p> Batches<'p> {
    /// Batches of up to 64 MiB and 4 million rows.
    pub fn new() -> Self {
        Self { limits: Limits { bytes: BYTES, rows: ROWS }, progress: None, pipeline: None }
    }

    /// Batches whose items, ids and distances, take at most so many bytes.
    pub fn bytes(mut self, bytes: u64) -> Self {
        self.limits.bytes = bytes;
        self
    }

    /// Batches of at most so many rows; of 1 if that is 0.
    pub fn rows(mut self, rows: usize) -> Self {
        self.limits.rows = rows.max(1);
        self
    }

    /// Calls report to `progress` how many rows have been delivered.
    pub fn progress(mut self, progress: impl Progress + Send + 'p) -> Self {
        self.progress = Some(Box::new(progress));
        self
    }
}

impl Default for Batches<'_> {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Batches<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batches").field("limits", &self.limits).finish_non_exhaustive()
    }
}

/// What a call delivered in batches.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Delivered {
    /// Rows, from the first on.
    pub rows: u64,
    /// Items of these rows.
    pub items: u64,
    /// Bytes of these items.
    pub bytes: u64,
    /// Batches.
    pub batches: u64,
    /// All rows were delivered: neither the callback nor the progress stopped the call before.
    pub is_complete: bool,
    /// Where it ran, and how long the thread of the call was in each phase: `make` batches, `wait` for their copies, and `look` at
    /// them in the callback. On a GPU `temp_bytes` are of the device and of pinned memory, as much as is kept for the next call.
    pub stats: Stats,
}

//! Batches: results that are larger than memory, delivered part by part, in order, to a callback.
//!
//! On a GPU three steps overlap: the device produces a batch, the previous batch is copied to pinned host memory, and the callback
//! reads the one before. A call therefore takes little more time than the slowest of the three.
//!
//! | calls | batches of |
//! |---|---|
//! | [`SpatialIndex::nearest_batches`](crate::SpatialIndex::nearest_batches) | rows of `k` neighbors |
//! | [`SpatialIndex::within_batches`](crate::SpatialIndex::within_batches) | rows of ids and distances |
//! | [`DistanceJoin::rows_batches`](crate::DistanceJoin::rows_batches) | rows of ids |

mod delivery;
mod pipeline;
mod rows;
mod split;

pub(crate) use delivery::Delivery;
pub(crate) use pipeline::{
    ArrayBuffer, BatchContext, BatchSource, FinishedBatch, HostNotification, InputBuffer, Pipeline, items,
};
pub(crate) use rows::{RowBatches, RowLaunch};
pub(crate) use split::{Limits, RowSplitter, split_equal_rows};

use crate::progress::Progress;
use crate::stats::Stats;
use std::fmt;

/// Default bytes of a batch. The copy takes much longer than the launches.
const BYTES: u64 = 64 << 20;
/// Default rows of a batch.
const ROWS: usize = 1 << 22;

/// Limits of batches, and the memory for them, which the next call reuses: a second call of the same size allocates nothing on a GPU.
///
/// A batch is a range of consecutive whole rows with their results. Batches are delivered in order, on the thread of the call. The limits
/// and the results alone determine where one batch ends and the next begins; the device does not matter.
///
/// Memory: on a GPU two batches and the queries of their rows, in device memory and again in pinned host memory, with a quarter more to
/// grow into; on the CPU one batch.
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
    /// Streams and memory on the GPU of the previous call.
    pipeline: Option<Pipeline>,
}

impl<'p> Batches<'p> {
    /// Creates batches of up to 64 MiB and 4 million rows.
    pub fn new() -> Self {
        Self { limits: Limits { bytes: BYTES, rows: ROWS }, progress: None, pipeline: None }
    }

    /// Limits the items of a batch, its ids and distances, to `bytes` bytes.
    pub fn bytes(mut self, bytes: u64) -> Self {
        self.limits.bytes = bytes;
        self
    }

    /// Limits a batch to `rows` rows; 0 counts as 1.
    pub fn rows(mut self, rows: usize) -> Self {
        self.limits.rows = rows.max(1);
        self
    }

    /// Reports to `progress` how many rows have been delivered.
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

/// Counts of the rows that a call delivered in [`Batches`].
///
/// ```
/// use kauri::{Batches, Device, DistanceJoin};
/// use std::ops::ControlFlow;
/// let points = [[0.0f32], [1.0], [2.0], [3.0]];
/// let mut batches = Batches::new().rows(2);
/// let stop_at_once = |_: kauri::RowsBatch<'_>| ControlFlow::Break(());
/// let delivered =
///     DistanceJoin::new(1.0).rows_batches(&Device::cpu(), &points, &points, &mut batches, stop_at_once)?;
/// assert_eq!((delivered.rows, delivered.items, delivered.bytes), (2, 5, 20));
/// assert!(!delivered.is_complete);
/// # Ok::<(), kauri::Error>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Delivered {
    /// Delivered rows; they are the first of the result.
    pub rows: u64,
    /// Items of these rows.
    pub items: u64,
    /// Bytes of these items.
    pub bytes: u64,
    /// Number of batches.
    pub batches: u64,
    /// True if all rows were delivered: neither the callback nor the progress stopped the call earlier.
    pub is_complete: bool,
    /// The device, and the time that the thread of the call spent in each phase: `make` batches, `wait` for their copies, and run the
    /// `callback`. On a GPU `temp_bytes` is the device and pinned memory kept for the next call.
    pub stats: Stats,
}

//! Batches of rows of any length on a GPU: counts the items of a range of rows, then writes the rows that fit.

use super::{
    ArrayBuffer, BatchContext, BatchSource, FinishedBatch, HostNotification, InputBuffer, RowSplitter,
};
use crate::device::{Stream, Workspace};
use crate::error::Result;
use cuda_std::mem::SliceMut;
use cust_core::DeviceCopy;
use std::ops::Range;

/// Produces batches of rows: offsets, ids, and an optional value of each id. `launch` enqueues the kernels of a range of rows.
pub(crate) struct RowBatches<F> {
    splitter: RowSplitter,
    /// Bytes of the value of an id, 0 if there are none.
    value_bytes: usize,
    launch: F,
    /// The rows of the batch in progress, and the number of items that its arrays hold.
    started: (Range<usize>, u64),
}

/// Arguments for the kernels of one range of rows.
///
/// The kernels write the offsets of all rows, then call [`Total::send`], then write as many ids and values as the arrays hold.
pub(crate) struct RowLaunch<'a> {
    pub(crate) stream: &'a Stream,
    pub(crate) workspace: &'a mut Workspace,
    pub(crate) input: InputBuffer<'a>,
    pub(crate) rows: Range<usize>,
    /// One offset per row, and the end of the last row.
    pub(crate) offsets: SliceMut<'a, u64>,
    pub(crate) ids: SliceMut<'a, u32>,
    pub(crate) values: ValueBuffer<'a>,
    pub(crate) total: Total<'a>,
}

/// Device memory for the values of the ids.
pub(crate) struct ValueBuffer<'a> {
    array: ArrayBuffer<'a>,
    len: usize,
    max_len: usize,
}

impl<'a> ValueBuffer<'a> {
    /// Returns an array with a value for each id.
    pub(crate) fn reserve<T: DeviceCopy>(self, label: &'static str) -> Result<SliceMut<'a, T>> {
        self.array.reserve(self.len, self.max_len, label)
    }
}

/// The number of items of a range of rows, for the host.
pub(crate) struct Total<'a> {
    /// `None` if the host knows the number already.
    notification: Option<HostNotification<'a>>,
}

impl Total<'_> {
    /// Sends the last offset, the number of items, to the host, unless the host knows it.
    ///
    /// # Safety
    /// Earlier work on the stream writes the offsets, and they stay unchanged until the batch is finished.
    pub(crate) unsafe fn send(self, stream: &Stream, offsets: SliceMut<'_, u64>) -> Result<()> {
        match self.notification {
            // SAFETY: passed on to the caller.
            Some(host) => unsafe { host.send(stream, offsets.read_only().part(offsets.len() - 1, 1)) },
            None => Ok(()),
        }
    }
}

impl<F: FnMut(RowLaunch<'_>) -> Result<()>> RowBatches<F> {
    pub(crate) fn new(splitter: RowSplitter, value_bytes: usize, launch: F) -> Self {
        Self { splitter, value_bytes, launch, started: (0..0, 0) }
    }

    /// Enqueues the kernels of a range of rows, with arrays of `capacity` items.
    fn launch(
        &mut self,
        context: BatchContext<'_>,
        rows: Range<usize>,
        capacity: u64,
        is_total_known: bool,
    ) -> Result<()> {
        let len = usize::try_from(capacity).unwrap_or(usize::MAX);
        let max_len = usize::try_from(self.splitter.max_items()).unwrap_or(usize::MAX);
        let BatchContext { stream, workspace, input, arrays: [offsets, ids, values], notification } = context;
        (self.launch)(RowLaunch {
            stream,
            workspace,
            input,
            offsets: offsets.reserve(rows.len() + 1, usize::MAX, "offsets of rows")?,
            ids: ids.reserve(len, max_len, "ids of points found")?,
            values: ValueBuffer { array: values, len, max_len },
            total: Total { notification: (!is_total_known).then_some(notification) },
            rows: rows.clone(),
        })?;
        self.started = (rows, capacity);
        Ok(())
    }
}

impl<F: FnMut(RowLaunch<'_>) -> Result<()>> BatchSource for RowBatches<F> {
    /// The rows; the arrays are their offsets, ids and values.
    type Batch = Range<usize>;

    fn start(&mut self, context: BatchContext<'_>) -> Result<bool> {
        let Some(rows) = self.splitter.next_range() else { return Ok(false) };
        let capacity = self.splitter.expected_items(rows.len());
        self.launch(context, rows, capacity, false)?;
        Ok(true)
    }

    fn finish(&mut self, total: u64, mut context: BatchContext<'_>) -> Result<FinishedBatch<Self::Batch>> {
        let (rows, capacity) = self.started.clone();
        let (num_rows, num_items) = self.splitter.fit(rows.len(), total, || {
            let offsets = context.arrays[0].reborrow();
            let offsets = offsets.reserve(rows.len() + 1, usize::MAX, "offsets of rows")?;
            // SAFETY: the kernels have written one offset per row and the end of the last.
            unsafe { context.stream.read(offsets.read_only()) }
        })?;
        if num_items > capacity {
            // The arrays were too small. The input is uploaded again after the first kernels have read it.
            context.stream.synchronize()?;
            self.launch(context, rows.clone(), num_items, true)?;
        }
        self.splitter.advance(num_rows, num_items);
        let len = num_items as usize;
        let bytes = [(num_rows + 1) * size_of::<u64>(), len * size_of::<u32>(), len * self.value_bytes];
        Ok(FinishedBatch { bytes, batch: rows.start..rows.start + num_rows })
    }
}

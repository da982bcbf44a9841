//! Bytes of batches, the memory that the sides of a join leave to each other, and one batch of many.

use datafusion::arrow::array::{Array, AsArray, GenericByteViewArray};
use datafusion::arrow::compute::concat;
use datafusion::arrow::datatypes::{ByteViewType, DataType, SchemaRef};
use datafusion::arrow::record_batch::{RecordBatch, RecordBatchOptions};
use datafusion::error::Result;
use datafusion::execution::memory_pool::{MemoryLimit, MemoryPool};
use rayon::iter::{IntoParallelIterator, ParallelIterator};
use std::sync::Arc;

/// Returns the memory for left rows: an eighth of the session's memory.
pub(super) fn probe_bytes(pool: &Arc<dyn MemoryPool>) -> usize {
    match pool.memory_limit() {
        MemoryLimit::Finite(bytes) => bytes / 8,
        MemoryLimit::Infinite | MemoryLimit::Unknown => 0,
    }
}

/// Makes one batch of many. Each thread takes a column.
pub(super) fn concatenated(schema: &SchemaRef, batches: &[RecordBatch]) -> Result<RecordBatch> {
    if batches.is_empty() {
        return Ok(RecordBatch::new_empty(Arc::clone(schema)));
    }
    let column = |index: usize| {
        let arrays: Vec<&dyn Array> = batches.iter().map(|batch| batch.column(index).as_ref()).collect();
        concat(&arrays)
    };
    let columns = (0..schema.fields().len()).into_par_iter().map(column).collect::<Result<Vec<_>, _>>()?;
    let num_rows = batches.iter().map(RecordBatch::num_rows).sum();
    let options = RecordBatchOptions::new().with_row_count(Some(num_rows));
    Ok(RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)?)
}

/// Returns the bytes of the rows of a batch. A batch may be a part of larger buffers, which are not counted.
pub(super) fn batch_bytes(batch: &RecordBatch) -> usize {
    batch.columns().iter().map(|column| array_bytes(column)).sum()
}

fn array_bytes(array: &dyn Array) -> usize {
    let data = match array.data_type() {
        DataType::Utf8View => view_bytes(array.as_string_view()),
        DataType::BinaryView => view_bytes(array.as_binary_view()),
        _ => 0,
    };
    array.to_data().get_slice_memory_size().unwrap_or_else(|_| array.get_array_memory_size()) + data
}

fn view_bytes<T: ByteViewType>(array: &GenericByteViewArray<T>) -> usize {
    let len = |value: &T::Native| AsRef::<[u8]>::as_ref(value).len();
    array.iter().flatten().map(len).sum()
}

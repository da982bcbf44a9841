//! Bytes of batches, and the memory that the sides of a join leave to each other.

use datafusion::arrow::array::{Array, AsArray, GenericByteViewArray};
use datafusion::arrow::datatypes::{ByteViewType, DataType};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::execution::memory_pool::{MemoryLimit, MemoryPool};
use std::sync::Arc;

/// Returns the memory for left rows: an eighth of the session's memory.
pub(super) fn probe_bytes(pool: &Arc<dyn MemoryPool>) -> usize {
    match pool.memory_limit() {
        MemoryLimit::Finite(bytes) => bytes / 8,
        MemoryLimit::Infinite | MemoryLimit::Unknown => 0,
    }
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

//! Notification of the host: device counters written to mapped host memory, without waiting for copies.

use crate::device::{PinnedBuffer, Stream};
use crate::error::Result;
use cuda_std::mem::Slice;
use kauri_kernels::primitives::notify::primitives_tell;

/// Enqueues a kernel that copies `words` to mapped pinned memory of at least the same length. A copy by the driver
/// would wait for all earlier copies to the host, on any stream.
///
/// # Safety
/// The words are complete when the stream reaches this work, and do not change until it is done. Until then nothing
/// else uses the pinned memory.
pub(crate) unsafe fn notify_host(
    stream: &Stream,
    words: Slice<'_, u64>,
    to: &mut PinnedBuffer<u64>,
) -> Result<()> {
    assert!(words.len() <= to.len(), "the pinned memory holds all words");
    let num_blocks = words.len().div_ceil(32) as u64;
    // SAFETY: passed on to the caller.
    unsafe { stream.launch::<primitives_tell>(num_blocks, (words, to.slice_mut())) }
}

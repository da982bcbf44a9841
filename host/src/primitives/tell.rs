//! Words for the host, past all copies.

use crate::device::{PinnedBuffer, Stream};
use crate::error::Result;
use cuda_std::mem::Slice;
use kauri_kernels::primitives::tell::primitives_tell;

/// Puts words in pinned memory, of as many or more, as soon as the stream comes to it. A copy would wait for all copies to the host
/// that are under way, whatever their streams.
///
/// # Safety
/// The words are written and stay so, and nothing else uses the pinned memory, until the stream has done the work.
pub(crate) unsafe fn tell(stream: &Stream, words: Slice<'_, u64>, to: &mut PinnedBuffer<u64>) -> Result<()> {
    assert!(words.len() <= to.len(), "there is room");
    let num_blocks = words.len().div_ceil(32) as u64;
    // SAFETY: passed on to the caller.
    unsafe { stream.launch::<primitives_tell>(num_blocks, (words, to.slice_mut())) }
}

//! Notification of the host: device counters copied to mapped host memory.

use cuda_std::prelude::*;

/// Copies words to mapped host memory; a thread per word.
///
/// A copy by the driver would wait for all earlier copies to the host, on any stream.
#[kernel(family = "primitives-moves", block = 32)]
pub unsafe fn primitives_tell(words: Slice<u64>, to: SliceMut<u64>) {
    let i = thread::index_1d() as usize;
    if i < words.len() {
        to.store(i, words.load(i));
    }
}

//! Words for the host.

use cuda_std::prelude::*;

/// Puts words where the host sees them; one thread each.
///
/// A copy would wait for all copies to the host that are under way, on whatever stream.
#[kernel(family = "primitives-moves", block = 32)]
pub unsafe fn primitives_tell(words: Slice<u64>, to: SliceMut<u64>) {
    let i = thread::index_1d() as usize;
    if i < words.len() {
        to.store(i, words.load(i));
    }
}

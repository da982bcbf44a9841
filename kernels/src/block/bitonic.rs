//! Bitonic sort of a few items in shared memory (Batcher 1968).

use crate::thread::ranked::Ranked;
use cuda_std::prelude::*;

/// Sorts the first `len` items, a power of two. Ends with a barrier, if there are two.
///
/// # Safety
/// All threads of the block call, with the same arguments; the items were set before a barrier, and nobody else uses them.
#[inline(always)]
pub unsafe fn sort<R: Ranked>(items: SharedSlice<'_, R>, len: u32) {
    let (thread, num_threads) = (thread::thread_idx_x(), thread::block_dim_x());
    let mut size = 2;
    while size <= len {
        let mut stride = size / 2;
        while stride > 0 {
            let mut pair = thread;
            while pair < len / 2 {
                // The lower item of the pair: its bit of the stride is 0.
                let low = (pair & !(stride - 1)) * 2 + (pair & (stride - 1));
                let (a, b) = (items.load(low as usize), items.load((low + stride) as usize));
                if b.is_before(a) == (low & size == 0) {
                    items.store(low as usize, b);
                    items.store((low + stride) as usize, a);
                }
                pair += num_threads;
            }
            thread::sync_threads();
            stride /= 2;
        }
        size *= 2;
    }
}

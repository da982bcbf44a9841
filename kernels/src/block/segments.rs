//! Bitonic sort of segments of a block's items, which stay in registers (Batcher 1968).
//!
//! Thread `t` of a block with `N` items per thread holds the items from `N t` on. Steps that compare items of different threads move the
//! items through shared memory to a *layout* in which they meet in one thread: in layout `p`, the items of a thread differ in the bits of
//! their index from bit `p` on. All comparisons put the smaller item first, because a merge reads its upper half mirrored.

use crate::thread::network::{merge_adjacent, merge_bitonic, merge_mirrored};
use crate::thread::ranked::Ranked;
use cuda_std::prelude::*;

/// The sort of the items of a block.
#[derive(Clone, Copy)]
pub struct SegmentSort<'a, R, const ITEMS: usize> {
    /// Scratch memory for all items of the block.
    pub exchange: SharedSlice<'a, R>,
}

impl<R: Ranked, const ITEMS: usize> SegmentSort<'_, R, ITEMS> {
    /// The number of bits of an index within a thread.
    const BITS: u32 = ITEMS.ilog2();

    /// Sorts each aligned segment of `2^log_len` items.
    ///
    /// # Safety
    /// All threads of the block call, with the same length, and the block has at least that many items. `ITEMS` is a power of two of at
    /// least 4. Nothing else uses the scratch memory; a barrier follows before it is used again.
    #[inline(always)]
    pub unsafe fn sort(&self, items: &mut [R; ITEMS], log_len: u32) {
        let mut stage = 1;
        while stage <= Self::BITS {
            if stage <= log_len {
                merge_mirrored(items, stage);
            }
            stage += 1;
        }
        while stage <= log_len {
            self.merge(items, stage);
            stage += 1;
        }
    }

    /// Merges each two sorted halves of a segment of `2^stage` items.
    #[inline(always)]
    unsafe fn merge(&self, items: &mut [R; ITEMS], stage: u32) {
        let mut layout = stage - Self::BITS;
        self.exchange(items, 0, layout, (1 << (stage - 1)) - 1);
        merge_bitonic(items);
        while layout > 0 {
            let next = layout.saturating_sub(Self::BITS);
            self.exchange(items, layout, next, 0);
            merge_adjacent(items, layout - next);
            layout = next;
        }
    }

    /// Moves the items from one layout to another. `mirror` is flipped in the indices of the upper half of a thread's items.
    #[inline(always)]
    unsafe fn exchange(&self, items: &mut [R; ITEMS], from: u32, to: u32, mirror: u32) {
        // In the layouts up to 5 a warp holds the same items, so that it waits only for its own threads.
        let in_warp = from <= 5 && to <= 5;
        self.barrier(in_warp);
        let base = Self::spread(Self::index(from));
        for i in 0..ITEMS {
            self.exchange.store((base ^ Self::spread((i as u32) << from)) as usize, items[i]);
        }
        self.barrier(in_warp);
        let base = Self::spread(Self::index(to));
        for i in 0..ITEMS {
            let mirror = if i >= ITEMS / 2 { mirror } else { 0 };
            items[i] = self.exchange.load((base ^ Self::spread((i as u32) << to ^ mirror)) as usize);
        }
    }

    #[inline(always)]
    unsafe fn barrier(&self, in_warp: bool) {
        if in_warp {
            warp::sync_warp(warp::FULL_MASK);
        } else {
            thread::sync_threads();
        }
    }

    /// Returns the index of the thread's first item in a layout.
    #[inline(always)]
    fn index(layout: u32) -> u32 {
        let thread = thread::thread_idx_x();
        let low = (1 << layout) - 1;
        thread & low | (thread & !low) << Self::BITS
    }

    /// Returns the place of an item in shared memory. Items that differ in any bits of a layout are in different banks. It is linear: the
    /// place of `a ^ b` is that of `a` ^ that of `b`.
    #[inline(always)]
    fn spread(index: u32) -> u32 {
        index ^ ((index >> Self::BITS) & (ITEMS as u32 - 1))
    }
}

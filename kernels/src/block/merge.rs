//! Merging and sorting of a tile in shared memory, stable, by merge path.

use crate::policy::MERGE;
use crate::thread::merge_path::split;
use crate::thread::order::{Carried, Lookup, Order};
use crate::thread::words::Words;
use core::marker::PhantomData;
use cuda_std::prelude::*;

/// Threads of a block.
pub const THREADS: usize = MERGE.threads_per_block;
/// Items of a thread, consecutive ones.
pub const ITEMS: usize = MERGE.items_per_thread;
/// Items of a tile.
pub const TILE: usize = THREADS * ITEMS;

/// Blocks that a multiprocessor is to hold.
pub const fn min_blocks<K: Words>() -> usize {
    MERGE.min_blocks[if K::WORDS < 4 { 0 } else { 1 }]
}

/// Shared memory for a tile.
#[repr(C, align(16))]
pub struct TileSmem<K, V> {
    keys: [K; TILE],
    values: [V; TILE],
}

/// Items of a thread: keys and values.
pub type Items<K, V> = ([K; ITEMS], [V; ITEMS]);

/// A tile in shared memory, whose items have an order.
pub struct Tile<'a, K, V, O> {
    keys: SharedSlice<'a, K>,
    values: SharedSlice<'a, V>,
    lookup: Lookup<'a, K>,
    order: PhantomData<O>,
}

impl<'a, K: Words, V: Carried, O: Order<K, V>> Tile<'a, K, V, O> {
    /// A tile of the block's own memory.
    #[inline(always)]
    pub fn new(smem: *mut TileSmem<K, V>, lookup: Lookup<'a, K>) -> Self {
        Self {
            keys: shared_field!(smem, keys),
            values: shared_field!(smem, values),
            lookup,
            order: PhantomData,
        }
    }

    /// Sets item `i`.
    ///
    /// # Safety
    /// No other thread uses the item until the next barrier.
    #[inline(always)]
    pub unsafe fn set(&self, i: usize, (key, value): (K, V)) {
        self.keys.store(i, key);
        if V::IS_CARRIED {
            self.values.store(i, value);
        }
    }

    /// Item `i`.
    ///
    /// # Safety
    /// The item was set before the last barrier.
    #[inline(always)]
    pub unsafe fn get(&self, i: usize) -> (K, V) {
        (self.keys.load(i), if V::IS_CARRIED { self.values.load(i) } else { V::ANY })
    }

    /// Merges the first `first_len` items with the `second_len` behind them. Ends with a barrier.
    ///
    /// # Safety
    /// All threads of the block call, with the same arguments, behind a barrier.
    #[inline(always)]
    pub unsafe fn merge(&self, first_len: usize, second_len: usize) {
        let diagonal = thread::thread_idx_x() as usize * ITEMS;
        let merged = self.merge_some(0, first_len, second_len, diagonal);
        self.replace(merged, first_len + second_len);
    }

    /// Sorts the first `len` items. Ends with a barrier.
    ///
    /// # Safety
    /// All threads of the block call, with the same arguments, behind a barrier.
    #[inline(always)]
    pub unsafe fn sort(&self, len: usize) {
        let thread = thread::thread_idx_x() as usize;
        let sorted = self.sort_own(thread * ITEMS, len);
        self.replace(sorted, len);
        // The number of threads as the hardware says it, so that this stays a loop: unrolled, it would not fit in registers.
        let num_threads = thread::block_dim_x() as usize;
        let mut width = 1;
        while width < num_threads && width * ITEMS < len {
            // A group of threads merges two runs of `width` threads, a power of two.
            let begin = (thread & !(2 * width - 1)) * ITEMS;
            let first_len = clip(len, begin, width * ITEMS);
            let second_len = clip(len, begin + width * ITEMS, width * ITEMS);
            let merged = self.merge_some(begin, first_len, second_len, thread * ITEMS - begin);
            self.replace(merged, len);
            width *= 2;
        }
    }

    /// The thread's items, in registers, after an exchange of neighbours; those from `len` on are not there.
    #[inline(always)]
    unsafe fn sort_own(&self, begin: usize, len: usize) -> Items<K, V> {
        let (mut keys, mut values) = ([K::ZEROS; ITEMS], [V::ANY; ITEMS]);
        let mut i = 0;
        while i < ITEMS {
            if begin + i < len {
                (keys[i], values[i]) = self.get(begin + i);
            }
            i += 1;
        }
        // Only neighbours change places, and only if they have to: so it is stable.
        let mut round = 0;
        while round < ITEMS {
            let mut i = round % 2;
            while i + 1 < ITEMS {
                let (a, b) = ((keys[i], values[i]), (keys[i + 1], values[i + 1]));
                if begin + i + 1 < len && O::is_before(&self.lookup, b, a) {
                    (keys[i], values[i]) = b;
                    (keys[i + 1], values[i + 1]) = a;
                }
                i += 2;
            }
            round += 1;
        }
        (keys, values)
    }

    /// Of the merge of two runs that begin at `begin` the items from `diagonal` on, as many as a thread has; what lies beyond
    /// the end is any value.
    #[inline(always)]
    unsafe fn merge_some(
        &self,
        begin: usize,
        first_len: usize,
        second_len: usize,
        diagonal: usize,
    ) -> Items<K, V> {
        let diagonal = if diagonal < first_len + second_len { diagonal } else { first_len + second_len };
        let middle = begin + first_len;
        let split = split(first_len, second_len, diagonal, |i, j| {
            !O::is_before(&self.lookup, self.get(middle + j), self.get(begin + i))
        });
        let (mut a, mut b) = (begin + split, middle + diagonal - split);
        let end = middle + second_len;
        let (mut item_a, mut item_b) = ((K::ZEROS, V::ANY), (K::ZEROS, V::ANY));
        if a < middle {
            item_a = self.get(a);
        }
        if b < end {
            item_b = self.get(b);
        }
        let (mut keys, mut values) = ([K::ZEROS; ITEMS], [V::ANY; ITEMS]);
        let mut i = 0;
        while i < ITEMS {
            let takes_b = b < end && (a >= middle || O::is_before(&self.lookup, item_b, item_a));
            (keys[i], values[i]) = if takes_b { item_b } else { item_a };
            if takes_b {
                b += 1;
                if b < end {
                    item_b = self.get(b);
                }
            } else {
                a += 1;
                if a < middle {
                    item_a = self.get(a);
                }
            }
            i += 1;
        }
        (keys, values)
    }

    /// Sets the thread's items of the first `len` when all threads have read theirs. Ends with a barrier.
    #[inline(always)]
    unsafe fn replace(&self, (keys, values): Items<K, V>, len: usize) {
        let begin = thread::thread_idx_x() as usize * ITEMS;
        thread::sync_threads();
        let mut i = 0;
        while i < ITEMS {
            if begin + i < len {
                self.set(begin + i, (keys[i], values[i]));
            }
            i += 1;
        }
        thread::sync_threads();
    }
}

/// Of `len` items from `begin` on how many there are before `end`.
#[inline(always)]
pub(crate) const fn clip(end: usize, begin: usize, len: usize) -> usize {
    let rest = end.saturating_sub(begin);
    if rest < len { rest } else { len }
}

//! Stable merge and sort of a tile in shared memory, by merge path.

use super::warp_striped::warp_striped_first;
use crate::thread::merge_path::split_u32;
use crate::thread::order::{Carried, Lookup, Order};
use crate::thread::words::{MAX_WORDS, Words};
use core::marker::PhantomData;
use cuda_std::prelude::*;

/// Shared memory of a tile.
#[derive(Clone, Copy)]
#[repr(C, align(16))]
pub struct TileSmem<K, V, const THREADS: usize, const ITEMS: usize> {
    keys: [[K; THREADS]; ITEMS],
    values: [[V; THREADS]; ITEMS],
}

/// A tile of ordered items in shared memory. A thread has `ITEMS` consecutive items.
pub struct Tile<'a, K, V, O, const ITEMS: usize> {
    keys: SharedSlice<'a, K>,
    values: SharedSlice<'a, V>,
    lookup: Lookup<'a, K>,
    order: PhantomData<O>,
}

/// The items of a thread, in registers.
pub struct Items<K, V, const ITEMS: usize> {
    keys: [K; ITEMS],
    values: [V; ITEMS],
}

impl<'a, K: Words, V: Carried, O: Order<K, V>, const ITEMS: usize> Tile<'a, K, V, O, ITEMS> {
    /// Creates the view of a tile.
    #[inline(always)]
    pub fn new<const THREADS: usize>(
        smem: *mut TileSmem<K, V, THREADS, ITEMS>,
        lookup: Lookup<'a, K>,
    ) -> Self {
        Self {
            keys: shared_field!(smem, keys),
            values: shared_field!(smem, values),
            lookup,
            order: PhantomData,
        }
    }

    /// Stores item `i`.
    ///
    /// # Safety
    /// No other thread accesses the item until the next barrier.
    #[inline(always)]
    pub unsafe fn set(&self, i: usize, (key, value): (K, V)) {
        self.keys.store(i, key);
        if V::IS_CARRIED {
            self.values.store(i, value);
        }
    }

    /// Loads item `i`.
    ///
    /// # Safety
    /// The item was stored before the last barrier.
    #[inline(always)]
    pub unsafe fn get(&self, i: usize) -> (K, V) {
        (self.keys.load(i), if V::IS_CARRIED { self.values.load(i) } else { V::ANY })
    }

    /// Stores the first `len` items in a block of `threads`. A warp stores the items of its own threads. Item `i + distance`
    /// is `item(i, distance)`; `i` is constant per thread, so that it computes addresses once.
    ///
    /// # Safety
    /// All threads of the block call. `item` can be called for every index below `len`.
    #[inline(always)]
    pub unsafe fn fill(&self, len: usize, threads: usize, item: impl Fn(u32, usize) -> (K, V)) {
        if len == threads * ITEMS {
            self.fill_rows::<true>(len, item);
        } else {
            self.fill_rows::<false>(len, item);
        }
    }

    #[inline(always)]
    unsafe fn fill_rows<const FULL: bool>(&self, len: usize, item: impl Fn(u32, usize) -> (K, V)) {
        let (first, len) = (warp_striped_first(ITEMS), len as u32);
        // All loads are in flight before the first item is stored. Keys are held as words, which the compiler keeps in
        // registers.
        let (mut keys, mut values) = ([[0; MAX_WORDS]; ITEMS], [V::ANY; ITEMS]);
        for row in 0..ITEMS {
            let i = first + 32 * row as u32;
            if FULL || i < len {
                let (key, value) = item(first, 32 * row);
                keys[row] = key.to_words();
                values[row] = value;
            }
        }
        for row in 0..ITEMS {
            // Items beyond the end are never read.
            self.set(first as usize + 32 * row, (K::from_words(keys[row]), values[row]));
        }
    }

    /// Passes the first `len` items of a block of `threads` to `take`. A warp passes the items of its own threads.
    ///
    /// # Safety
    /// All threads of the block call, after a barrier of the warp. `take` can be called for every index below `len`.
    #[inline(always)]
    pub unsafe fn drain(&self, len: usize, threads: usize, take: impl Fn(usize, (K, V))) {
        if len == threads * ITEMS {
            self.drain_rows::<true>(len, take);
        } else {
            self.drain_rows::<false>(len, take);
        }
    }

    #[inline(always)]
    unsafe fn drain_rows<const FULL: bool>(&self, len: usize, take: impl Fn(usize, (K, V))) {
        let (first, len) = (warp_striped_first(ITEMS), len as u32);
        for row in 0..ITEMS {
            let i = first + 32 * row as u32;
            if FULL || i < len {
                take(i as usize, self.get(i as usize));
            }
        }
    }

    /// Stores the thread's items. Items beyond the end may have any value.
    ///
    /// # Safety
    /// As [`set`](Self::set).
    #[inline(always)]
    pub unsafe fn set_own(&self, items: &Items<K, V, ITEMS>) {
        let begin = thread::thread_idx_x() as usize * ITEMS;
        for i in 0..ITEMS {
            self.set(begin + i, (items.keys[i], items.values[i]));
        }
    }

    /// Returns the thread's items of the merge of the first `first_len` items with the `second_len` items behind them.
    /// Items beyond the end have any value.
    ///
    /// # Safety
    /// All threads of the block call, with the same arguments, after a barrier.
    #[inline(always)]
    pub unsafe fn merge(&self, first_len: u32, second_len: u32) -> Items<K, V, ITEMS> {
        let diagonal = thread::thread_idx_x() * ITEMS as u32;
        self.merge_runs(0, first_len, second_len, diagonal)
    }

    /// Sorts the first `len` items. A barrier must follow before a thread of another warp reads them.
    ///
    /// # Safety
    /// All threads of the block call, with the same arguments, after a barrier. A barrier of the warp is enough if the
    /// warp has stored its threads' items itself.
    #[inline(always)]
    pub unsafe fn sort(&self, len: usize) {
        let (len, items) = (len as u32, ITEMS as u32);
        let thread = thread::thread_idx_x();
        // No other thread accesses the thread's items yet.
        self.set_own(&self.sort_own(thread * items, len));
        // The number of threads is read from a special register, so that the compiler does not unroll the loop:
        // unrolled, it needs too many registers.
        let num_threads = thread::block_dim_x();
        let mut width = 1;
        while width < num_threads && width * items < len {
            // A group of threads merges two runs of `width` threads, a power of two.
            let begin = (thread & !(2 * width - 1)) * items;
            let first_len = clip_u32(len, begin, width * items);
            let second_len = clip_u32(len, begin + width * items, width * items);
            sync_group(2 * width);
            let merged = self.merge_runs(begin, first_len, second_len, thread * items - begin);
            sync_group(2 * width);
            self.set_own(&merged);
            width *= 2;
        }
    }

    /// Sorts the thread's items from `begin` on by odd-even transposition. Items from `len` on are absent.
    #[inline(always)]
    unsafe fn sort_own(&self, begin: u32, len: u32) -> Items<K, V, ITEMS> {
        let (mut keys, mut values) = ([K::ZEROS; ITEMS], [V::ANY; ITEMS]);
        // Absent items equal the last present one, so they stay behind it.
        let mut last = (K::ZEROS, V::ANY);
        for i in 0..ITEMS {
            if begin + (i as u32) < len {
                (keys[i], values[i]) = self.get(begin as usize + i);
                if i == 0 || !O::is_before(&self.lookup, (keys[i], values[i]), last) {
                    last = (keys[i], values[i]);
                }
            } else {
                (keys[i], values[i]) = last;
            }
        }
        // Only adjacent items swap, and only if they are out of order: the sort is stable.
        let mut round = 0;
        while begin < len && round < ITEMS {
            let mut i = round % 2;
            while i + 1 < ITEMS {
                let (a, b) = ((keys[i], values[i]), (keys[i + 1], values[i + 1]));
                let swaps = O::is_before(&self.lookup, b, a);
                (keys[i], values[i]) = if swaps { b } else { a };
                (keys[i + 1], values[i + 1]) = if swaps { a } else { b };
                i += 2;
            }
            round += 1;
        }
        Items { keys, values }
    }

    /// Returns the thread's items, from `diagonal` on, of the merge of two adjacent runs that begin at `begin`. Items
    /// beyond the end have any value. All threads of the warp call.
    #[inline(always)]
    unsafe fn merge_runs(
        &self,
        begin: u32,
        first_len: u32,
        second_len: u32,
        diagonal: u32,
    ) -> Items<K, V, ITEMS> {
        let len = first_len + second_len;
        let diagonal = if diagonal < len { diagonal } else { len };
        let middle = begin + first_len;
        let split = split_u32(first_len, second_len, diagonal, |i, j| {
            let (a, b) = (begin + i, middle + j);
            !self.is_before((b, self.key(b)), (a, self.key(a)))
        });
        // A group without items reads what its own threads have stored beyond the end.
        let last = if len > 0 { begin + len - 1 } else { begin };
        let path = Path { a: begin + split, middle, b: middle + diagonal - split, end: begin + len, last };
        // If no run can end before the thread is done, which is usual in long runs, the end is not checked.
        let is_inside = path.a + (ITEMS as u32) < middle && path.b + (ITEMS as u32) < path.end;
        if warp::warp_vote_all(warp::FULL_MASK, is_inside) {
            self.merge_path_items::<true>(path)
        } else {
            self.merge_path_items::<false>(path)
        }
    }

    /// Returns the next items along a merge path. `INSIDE` says that neither run ends on the way.
    #[inline(always)]
    unsafe fn merge_path_items<const INSIDE: bool>(&self, path: Path) -> Items<K, V, ITEMS> {
        let Path { mut a, middle, mut b, end, last } = path;
        let len = end - b + middle - a;
        // Beyond the end of a run the key is arbitrary. (Behind the first run the second one begins.)
        let key = |i| self.key(if INSIDE || i < last { i } else { last });
        let (mut key_a, mut key_b) = (key(a), key(b));
        let (mut keys, mut indices) = ([K::ZEROS; ITEMS], [0; ITEMS]);
        for i in 0..ITEMS {
            let takes_b = if INSIDE {
                self.is_before((b, key_b), (a, key_a))
            } else if O::COMPARES_VALUES {
                b < end && (a >= middle || self.is_before((b, key_b), (a, key_a)))
            } else {
                // Bitwise operators are cheaper than branches here.
                (b < end) & ((a >= middle) | self.is_before((b, key_b), (a, key_a)))
            };
            (keys[i], indices[i]) = if takes_b { (key_b, b) } else { (key_a, a) };
            let next = indices[i] + 1;
            let next_key = key(next);
            (a, key_a) = if takes_b { (a, key_a) } else { (next, next_key) };
            (b, key_b) = if takes_b { (next, next_key) } else { (b, key_b) };
        }
        // Values are loaded once their index is known.
        let mut values = [V::ANY; ITEMS];
        let mut i = 0;
        while V::IS_CARRIED && i < ITEMS {
            if INSIDE || (i as u32) < len {
                values[i] = self.values.load(indices[i] as usize);
            }
            i += 1;
        }
        Items { keys, values }
    }

    #[inline(always)]
    unsafe fn key(&self, i: u32) -> K {
        self.keys.load(i as usize)
    }

    /// Returns true if item `b` has to come before item `a`; each is given by its index and its key.
    #[inline(always)]
    unsafe fn is_before(&self, (b, key_b): (u32, K), (a, key_a): (u32, K)) -> bool {
        let (mut value_a, mut value_b) = (V::ANY, V::ANY);
        if O::COMPARES_VALUES {
            (value_a, value_b) = (self.values.load(a as usize), self.values.load(b as usize));
        }
        O::is_before(&self.lookup, (key_b, value_b), (key_a, value_a))
    }
}

/// The position of a thread in two adjacent runs: `a` in the first, which ends at `middle`, and `b` in the second,
/// which ends at `end`.
struct Path {
    a: u32,
    middle: u32,
    b: u32,
    end: u32,
    /// The last index that may be read.
    last: u32,
}

/// Synchronizes groups of `num_threads` threads, a power of two.
#[inline(always)]
unsafe fn sync_group(num_threads: u32) {
    if num_threads <= 32 {
        warp::sync_warp(warp::FULL_MASK);
    } else {
        thread::sync_threads();
    }
}

/// Returns how many of the `len` items from `begin` on are before `end`.
#[inline(always)]
pub(crate) const fn clip(end: usize, begin: usize, len: usize) -> usize {
    let rest = end.saturating_sub(begin);
    if rest < len { rest } else { len }
}

/// [`clip`] within a tile, in 32 bits.
#[inline(always)]
const fn clip_u32(end: u32, begin: u32, len: u32) -> u32 {
    let rest = end.saturating_sub(begin);
    if rest < len { rest } else { len }
}

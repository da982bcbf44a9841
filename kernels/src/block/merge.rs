//! Merging and sorting of a tile in shared memory, stable, by merge path.

use super::warp_striped::warp_striped_first;
use crate::thread::merge_path::split_short;
use crate::thread::order::{Carried, Lookup, Order};
use crate::thread::words::{MAX_WORDS, Words};
use core::marker::PhantomData;
use cuda_std::prelude::*;

/// Shared memory for a tile.
#[derive(Clone, Copy)]
#[repr(C, align(16))]
pub struct TileSmem<K, V, const THREADS: usize, const ITEMS: usize> {
    keys: [[K; THREADS]; ITEMS],
    values: [[V; THREADS]; ITEMS],
}

/// A tile in shared memory, whose items have an order. Of a thread there are `ITEMS`, consecutive ones.
pub struct Tile<'a, K, V, O, const ITEMS: usize> {
    keys: SharedSlice<'a, K>,
    values: SharedSlice<'a, V>,
    lookup: Lookup<'a, K>,
    order: PhantomData<O>,
}

/// A thread's items, in registers.
pub struct Items<K, V, const ITEMS: usize> {
    keys: [K; ITEMS],
    values: [V; ITEMS],
}

impl<'a, K: Words, V: Carried, O: Order<K, V>, const ITEMS: usize> Tile<'a, K, V, O, ITEMS> {
    /// A tile of the block's own memory.
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

    /// Sets the first `len` items; all there are, if `FULL`. A warp sets those of its own threads. Item `i + distance` is
    /// `item(i, distance)`: of a thread `i` stays the same, so that it computes addresses once.
    ///
    /// # Safety
    /// All threads of the block call; `item` can be called for numbers less than `len`.
    #[inline(always)]
    pub unsafe fn fill<const FULL: bool>(&self, len: usize, item: impl Fn(u32, usize) -> (K, V)) {
        let (first, len) = (warp_striped_first::<ITEMS>(), len as u32);
        // All loads are on their way before the first item is stored. As words, because the compiler keeps those in registers.
        let (mut keys, mut values) = ([[0; MAX_WORDS]; ITEMS], [V::ANY; ITEMS]);
        let mut row = 0;
        while row < ITEMS {
            let i = first + 32 * row as u32;
            if FULL || i < len {
                let (key, value) = item(first, 32 * row);
                keys[row] = key.to_words();
                values[row] = value;
            }
            row += 1;
        }
        let mut row = 0;
        while row < ITEMS {
            // Beyond the end nobody looks.
            self.set(first as usize + 32 * row, (K::from_words(keys[row]), values[row]));
            row += 1;
        }
    }

    /// Gives the first `len` items away; all there are, if `FULL`. A warp gives those that its own threads have set.
    ///
    /// # Safety
    /// All threads of the block call, behind a barrier of the warp; `take` can be called for numbers less than `len`.
    #[inline(always)]
    pub unsafe fn drain<const FULL: bool>(&self, len: usize, take: impl Fn(usize, (K, V))) {
        let (first, len) = (warp_striped_first::<ITEMS>(), len as u32);
        let mut row = 0;
        while row < ITEMS {
            let i = first + 32 * row as u32;
            if FULL || i < len {
                take(i as usize, self.get(i as usize));
            }
            row += 1;
        }
    }

    /// Sets the thread's items. What is not there may be any item.
    ///
    /// # Safety
    /// As [`set`](Self::set).
    #[inline(always)]
    pub unsafe fn set_own(&self, items: &Items<K, V, ITEMS>) {
        let begin = thread::thread_idx_x() as usize * ITEMS;
        let mut i = 0;
        while i < ITEMS {
            self.set(begin + i, (items.keys[i], items.values[i]));
            i += 1;
        }
    }

    /// The thread's items of the merge of the first `first_len` items with the `second_len` behind them; what lies beyond the
    /// end is any item.
    ///
    /// # Safety
    /// All threads of the block call, with the same arguments, behind a barrier.
    #[inline(always)]
    pub unsafe fn merge(&self, first_len: u32, second_len: u32) -> Items<K, V, ITEMS> {
        let diagonal = thread::thread_idx_x() * ITEMS as u32;
        self.merge_runs(0, first_len, second_len, diagonal)
    }

    /// Sorts the first `len` items. A barrier has to follow before a thread of another warp reads them.
    ///
    /// # Safety
    /// All threads of the block call, with the same arguments, behind a barrier; one of the warp is enough if the warp has set
    /// its threads' items itself.
    #[inline(always)]
    pub unsafe fn sort(&self, len: usize) {
        let (len, items) = (len as u32, ITEMS as u32);
        let thread = thread::thread_idx_x();
        // Nobody else uses the thread's items yet.
        self.set_own(&self.sort_own(thread * items, len));
        // The number of threads as the hardware says it, so that this stays a loop: unrolled, it would not fit in registers.
        let num_threads = thread::block_dim_x();
        let mut width = 1;
        while width < num_threads && width * items < len {
            // A group of threads merges two runs of `width` threads, a power of two.
            let begin = (thread & !(2 * width - 1)) * items;
            let first_len = clip_short(len, begin, width * items);
            let second_len = clip_short(len, begin + width * items, width * items);
            sync_group(2 * width);
            let merged = self.merge_runs(begin, first_len, second_len, thread * items - begin);
            sync_group(2 * width);
            self.set_own(&merged);
            width *= 2;
        }
    }

    /// The thread's items from `begin` on, by an exchange of neighbors; those from `len` on are not there.
    #[inline(always)]
    unsafe fn sort_own(&self, begin: u32, len: u32) -> Items<K, V, ITEMS> {
        let (mut keys, mut values) = ([K::ZEROS; ITEMS], [V::ANY; ITEMS]);
        // What is not there equals the last of what is, so it stays behind it.
        let mut last = (K::ZEROS, V::ANY);
        let mut i = 0;
        while i < ITEMS {
            if begin + (i as u32) < len {
                (keys[i], values[i]) = self.get(begin as usize + i);
                if i == 0 || !O::is_before(&self.lookup, (keys[i], values[i]), last) {
                    last = (keys[i], values[i]);
                }
            } else {
                (keys[i], values[i]) = last;
            }
            i += 1;
        }
        // Only neighbors change places, and only if they have to: so it is stable.
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

    /// Of the merge of two runs that begin at `begin` the items from `diagonal` on, as many as a thread has; what lies beyond
    /// the end is any item. All threads of the warp call.
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
        let split = split_short(first_len, second_len, diagonal, |i, j| {
            let (a, b) = (begin + i, middle + j);
            !self.is_before((b, self.key(b)), (a, self.key(a)))
        });
        // A group without items reads what its threads have set beyond the end.
        let last = if len > 0 { begin + len - 1 } else { begin };
        let path = Path { a: begin + split, middle, b: middle + diagonal - split, end: begin + len, last };
        // Where no run can end before the thread is done, which is nearly everywhere in long runs, nobody looks for the end.
        let is_inside = path.a + (ITEMS as u32) < middle && path.b + (ITEMS as u32) < path.end;
        if warp::warp_vote_all(warp::FULL_MASK, is_inside) {
            self.walk::<true>(path)
        } else {
            self.walk::<false>(path)
        }
    }

    /// The next items along a path; `INSIDE` if neither run ends.
    #[inline(always)]
    unsafe fn walk<const INSIDE: bool>(&self, path: Path) -> Items<K, V, ITEMS> {
        let Path { mut a, middle, mut b, end, last } = path;
        let len = end - b + middle - a;
        // Beyond a run's end there is any key. (Of the first run there the second one begins.)
        let key = |i| self.key(if INSIDE || i < last { i } else { last });
        let (mut key_a, mut key_b) = (key(a), key(b));
        let (mut keys, mut places) = ([K::ZEROS; ITEMS], [0; ITEMS]);
        let mut i = 0;
        while i < ITEMS {
            let takes_b = if INSIDE {
                self.is_before((b, key_b), (a, key_a))
            } else if O::COMPARES_VALUES {
                b < end && (a >= middle || self.is_before((b, key_b), (a, key_a)))
            } else {
                // Cheaper than branches.
                (b < end) & ((a >= middle) | self.is_before((b, key_b), (a, key_a)))
            };
            (keys[i], places[i]) = if takes_b { (key_b, b) } else { (key_a, a) };
            let next = places[i] + 1;
            let next_key = key(next);
            (a, key_a) = if takes_b { (a, key_a) } else { (next, next_key) };
            (b, key_b) = if takes_b { (next, next_key) } else { (b, key_b) };
            i += 1;
        }
        // Values do not go along: they are fetched once it is known from where.
        let mut values = [V::ANY; ITEMS];
        let mut i = 0;
        while V::IS_CARRIED && i < ITEMS {
            if INSIDE || (i as u32) < len {
                values[i] = self.values.load(places[i] as usize);
            }
            i += 1;
        }
        Items { keys, values }
    }

    #[inline(always)]
    unsafe fn key(&self, i: u32) -> K {
        self.keys.load(i as usize)
    }

    /// True if item `b` has to come before item `a`; each is given by its place and its key.
    #[inline(always)]
    unsafe fn is_before(&self, (b, key_b): (u32, K), (a, key_a): (u32, K)) -> bool {
        let (mut value_a, mut value_b) = (V::ANY, V::ANY);
        if O::COMPARES_VALUES {
            (value_a, value_b) = (self.values.load(a as usize), self.values.load(b as usize));
        }
        O::is_before(&self.lookup, (key_b, value_b), (key_a, value_a))
    }
}

/// Where a thread is in two runs, and where they end.
struct Path {
    a: u32,
    middle: u32,
    b: u32,
    end: u32,
    /// The last place that may be read.
    last: u32,
}

/// Waits for the threads of a group, a power of two.
#[inline(always)]
unsafe fn sync_group(num_threads: u32) {
    if num_threads <= 32 {
        warp::sync_warp(warp::FULL_MASK);
    } else {
        thread::sync_threads();
    }
}

/// Of `len` items from `begin` on how many there are before `end`.
#[inline(always)]
pub(crate) const fn clip(end: usize, begin: usize, len: usize) -> usize {
    let rest = end.saturating_sub(begin);
    if rest < len { rest } else { len }
}

/// [`clip`] within a tile.
#[inline(always)]
const fn clip_short(end: u32, begin: u32, len: u32) -> u32 {
    let rest = end.saturating_sub(begin);
    if rest < len { rest } else { len }
}

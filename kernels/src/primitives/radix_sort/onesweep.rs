//! One pass of the sort, by one digit: every item is read once and written once.
//!
//! A block takes a tile by ticket, ranks its items by digit, finds by look-back how many items of each digit earlier
//! tiles have, and writes the items of each digit contiguously.

use crate::block::look_back::{ColumnLookBack, LookBackWord};
use crate::block::radix_rank::RadixRank;
use crate::block::scan::ScanSmem;
use crate::block::warp_striped::{load_warp_striped, scatter};
use crate::policy::radix_sort_min_blocks;
use crate::thread::carried::*;
use crate::thread::radix_key::{DigitReader, RADIX, RadixKey, digit_mask};
use crate::thread::words::computed;
use cuda_std::prelude::*;

/// Sorts by one digit; a block per tile. `N` counts items: `u32` for up to 2^30, `u64` for more. `FOLDED` kernels convert
/// keys by their [`KeyOrder`](crate::thread::radix_key::KeyOrder); the others sort unsigned keys. A block of `WARPS` warps
/// sorts a tile of `32 * WARPS * ITEMS` items. Where a kind has several shapes, the first is for many items, the last for
/// few.
#[kernel(family = "primitives-radix-sort", hot, block = 32 * WARPS, min_blocks = radix_sort_min_blocks(ITEMS), shared = OnesweepSmem<K, V, N, WARPS, ITEMS>)]
#[instances(K = [u32], V = [NoValue, u32], N = [u32], FOLDED = [false, true], WARPS = [12], ITEMS = [28, 16])]
#[instances(K = [u32, u64], V = [NoValue, u32], N = [u32], FOLDED = [false, true], WARPS = [8], ITEMS = [4])]
#[instances(K = [u64], V = [NoValue, u32], N = [u32], FOLDED = [false, true], WARPS = [12], ITEMS = [18])]
#[instances(K = [u32, u64], V = [u64], N = [u32], FOLDED = [false, true], WARPS = [12], ITEMS = [12])]
#[instances(K = [u32, u64], V = [u128], N = [u32], FOLDED = [false, true], WARPS = [8], ITEMS = [8])]
#[instances(K = [u32], V = [NoValue, u32], N = [u64], FOLDED = [true], WARPS = [12], ITEMS = [20])]
#[instances(K = [u64], V = [NoValue, u32], N = [u64], FOLDED = [true], WARPS = [12], ITEMS = [14])]
#[instances(K = [u32, u64], V = [u128], N = [u64], FOLDED = [true], WARPS = [8], ITEMS = [8])]
#[instance(u32, u64, u64, true, 12, 10)]
#[instance(u64, u64, u64, true, 12, 12)]
pub unsafe fn primitives_radix_sort_onesweep<
    K: RadixKey,
    V: Carried,
    N: LookBackWord,
    const FOLDED: bool,
    const WARPS: usize,
    const ITEMS: usize,
>(
    pass: Pass<'_, K, V, N>,
) {
    let (mask, reader, smem) = (digit_mask(pass.digit_bits), DigitReader::new(pass.order), shared_mem());
    Onesweep::<K, V, N, FOLDED, WARPS, ITEMS> { pass, mask, reader, smem }.run()
}

/// A pass by one digit.
#[derive(Clone, Copy, KernelArgs)]
pub struct Pass<'a, K, V, N> {
    /// The input.
    pub source: crate::thread::carried::Source<'a, K, V>,
    /// The output.
    pub target: crate::thread::carried::Pairs<'a, K, V>,
    /// The begins of each digit's items.
    pub digit_begins: Slice<'a, u64>,
    /// The words of the look-back, 256 per tile: zeros.
    pub words: SliceMut<'a, N>,
    /// The words of the next pass, which this pass clears.
    pub next_words: SliceMut<'a, N>,
    /// The number of tiles taken so far: 0.
    pub ticket: SliceMut<'a, u32>,
    /// The lowest bit of the digit.
    pub shift: u32,
    /// The bits of the digit.
    pub digit_bits: u32,
    /// The order of keys.
    pub order: crate::thread::radix_key::KeyOrder,
}

/// Shared memory of [`primitives_radix_sort_onesweep()`].
#[repr(C)]
pub struct OnesweepSmem<K: RadixKey, V: Carried, N: LookBackWord, const WARPS: usize, const ITEMS: usize> {
    phases: Phases<K, WARPS, ITEMS>,
    values: [[[V; 32]; WARPS]; ITEMS],
    /// Per digit, the output index of an item minus its rank within the tile.
    offsets: [N; RADIX],
    scan: ScanSmem,
    tile: [u32; 1],
}

/// Two phases that do not overlap: ranking, exchanging keys.
#[repr(C)]
union Phases<K: RadixKey, const WARPS: usize, const ITEMS: usize> {
    /// Per warp, the count of each digit; then the rank, within the tile, of the warp's first item with that digit.
    warp_counts: [[u32; RADIX]; WARPS],
    keys: [[[K; 32]; WARPS]; ITEMS],
}

/// The pass for one tile.
struct Onesweep<
    'a,
    K: RadixKey,
    V: Carried,
    N: LookBackWord,
    const FOLDED: bool,
    const WARPS: usize,
    const ITEMS: usize,
> {
    pass: Pass<'a, K, V, N>,
    mask: u32,
    reader: DigitReader<K, FOLDED>,
    smem: *mut OnesweepSmem<K, V, N, WARPS, ITEMS>,
}

impl<K: RadixKey, V: Carried, N: LookBackWord, const FOLDED: bool, const WARPS: usize, const ITEMS: usize>
    Onesweep<'_, K, V, N, FOLDED, WARPS, ITEMS>
{
    const THREADS: usize = 32 * WARPS;
    const TILE: usize = Self::THREADS * ITEMS;

    #[inline(always)]
    unsafe fn run(self) {
        let rank = RadixRank::<WARPS> {
            counts: shared_field!(self.smem, phases.warp_counts),
            scan: &raw mut (*self.smem).scan,
        };
        self.take_tile(&rank);
        let (tile, len) = self.tile();
        let keys = self.load_keys(tile, len);
        // Digits are recomputed from the keys each time: kept, they would need too many registers.
        rank.count::<ITEMS>(ITEMS, |item| self.digit(computed(keys[item])));
        thread::sync_threads();
        let (count, before) = rank.sum(|count| self.publish(tile, count));
        let ranks = rank.ranks::<ITEMS>(ITEMS, |item| self.digit(keys[item]));
        let (tile, len) = self.tile();
        thread::sync_threads();
        scatter(shared_field!(self.smem, phases.keys), &ranks, &keys, ITEMS);
        // The loads of the values overlap the look-back.
        let values = self.load_values(tile, len);
        self.look_back(tile, count, before);
        if V::IS_CARRIED {
            scatter(shared_field!(self.smem, values), &ranks, &values, ITEMS);
        }
        thread::sync_threads();
        if len == Self::TILE as u32 {
            self.write_items::<true>(len);
        } else {
            self.write_items::<false>(len);
        }
    }

    /// Takes the next tile in the order in which blocks start; meanwhile clears the counters and the next pass's words.
    #[inline(always)]
    unsafe fn take_tile(&self, rank: &RadixRank<'_, WARPS>) {
        let t = thread::thread_idx_x() as usize;
        if t == 0 {
            let tile = self.pass.ticket.atomic_add(0, 1, Ordering::Relaxed, Scope::Device);
            shared_field!(self.smem, tile).store(0, tile);
        }
        rank.clear();
        let word = thread::block_idx_x() as usize * RADIX + t;
        if t < RADIX && word < self.pass.next_words.len() {
            self.pass.next_words.store(word, N::ZERO);
        }
        thread::sync_threads();
    }

    /// Returns the block's tile and its number of items.
    #[inline(always)]
    unsafe fn tile(&self) -> (u32, u32) {
        let tile = shared_field!(self.smem, tile).load(0);
        let remaining = self.pass.source.keys.len() - tile as usize * Self::TILE;
        (tile, if remaining < Self::TILE { remaining as u32 } else { Self::TILE as u32 })
    }

    #[inline(always)]
    unsafe fn load_keys(&self, tile: u32, len: u32) -> [K; ITEMS] {
        // Padding has the largest key and the last positions, so it ranks behind every item.
        let mut keys = self.load(self.pass.source.keys, tile, len, self.reader.padding());
        for item in 0..ITEMS {
            keys[item] = self.reader.loaded(keys[item]);
        }
        keys
    }

    #[inline(always)]
    unsafe fn load_values(&self, tile: u32, len: u32) -> [V; ITEMS] {
        if V::IS_CARRIED { self.load(self.pass.source.values, tile, len, V::ANY) } else { [V::ANY; ITEMS] }
    }

    /// Loads the caller's items of the tile. A warp's items are consecutive, so that ranks follow the order of the
    /// input: the sort is stable.
    #[inline(always)]
    unsafe fn load<T: Copy>(&self, items: Slice<'_, T>, tile: u32, len: u32, padding: T) -> [T; ITEMS] {
        let begin = tile as usize * Self::TILE;
        if len == Self::TILE as u32 {
            load_warp_striped::<T, ITEMS, true>(items, begin, len, padding, ITEMS)
        } else {
            load_warp_striped::<T, ITEMS, false>(items, begin, len, padding, ITEMS)
        }
    }

    #[inline(always)]
    fn digit(&self, key: K) -> u32 {
        self.reader.digit(key, self.pass.shift, self.mask)
    }

    /// Publishes the count of the caller's digit.
    #[inline(always)]
    unsafe fn publish(&self, tile: u32, count: u32) {
        self.column(thread::thread_idx_x() as usize).publish_sum(tile, N::from_count(count));
    }

    #[inline(always)]
    fn column(&self, digit: usize) -> ColumnLookBack<'_, N> {
        ColumnLookBack { words: self.pass.words, stride: RADIX, column: digit }
    }

    /// Finds where the tile's items of each digit begin in the output.
    #[inline(always)]
    unsafe fn look_back(&self, tile: u32, count: u32, before: u32) {
        let digit = thread::thread_idx_x() as usize;
        if digit < RADIX {
            let digit_begin = N::from_index(self.pass.digit_begins.load(digit));
            let begin = digit_begin.plus(self.column(digit).exclusive_prefix(tile, N::from_count(count)));
            shared_field!(self.smem, offsets).store(digit, begin.minus(N::from_count(before)));
        }
    }

    /// Writes the items in rank order, so that the items of a digit are contiguous.
    #[inline(always)]
    unsafe fn write_items<const FULL: bool>(&self, len: u32) {
        let (keys, values) = (shared_field!(self.smem, phases.keys), shared_field!(self.smem, values));
        let offsets = shared_field!(self.smem, offsets);
        for item in 0..ITEMS {
            let rank = (item * Self::THREADS) as u32 + thread::thread_idx_x();
            if FULL || rank < len {
                let key = keys.load(rank as usize);
                let index = offsets.load(self.digit(key) as usize).plus(N::from_count(rank)).index();
                let value = if V::IS_CARRIED { values.load(rank as usize) } else { V::ANY };
                self.pass.target.store(index, self.reader.stored(key), value);
            }
        }
    }
}

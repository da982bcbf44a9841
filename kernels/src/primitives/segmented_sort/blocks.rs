//! Sorts of segments of more than 32 items, by one block each.

use super::segment;
use crate::block::radix_rank::{RadixRank, group_items};
use crate::block::scan::{ScanSmem, exclusive_sum};
use crate::block::warp_striped::{gather_warp_striped, load_warp_striped, scatter};
use crate::policy::{SEGMENT_MIN_BLOCKS, SEGMENT_SHORT_ITEMS};
use crate::thread::carried::*;
use crate::thread::radix_key::{DigitReader, RADIX, RADIX_BITS, RadixKey, SortBy, digit_mask};
use cuda_std::prelude::*;

/// Sorts the segments of a list of `num_listed[which]` entries, with any number of blocks. `tickets[which]` is zeroed
/// before. Tiles have `32 * WARPS * ITEMS` items. Only longer segments use `scratch`, buffers for all items.
#[kernel(family = "primitives-segmented-sort", hot, block = 32 * WARPS, min_blocks = SEGMENT_MIN_BLOCKS, shared = BlocksSmem<K, V, WARPS, ITEMS>)]
#[instances(K = [u64], V = [NoValue, u32, u64], WARPS = [8], ITEMS = [2, 12])]
#[instances(K = [u32], V = [NoValue, u32], WARPS = [8], ITEMS = [2, 20])]
#[instances(K = [u32], V = [u64], WARPS = [8], ITEMS = [2, 12])]
pub unsafe fn primitives_segmented_sort_blocks<
    K: RadixKey,
    V: Carried,
    const WARPS: usize,
    const ITEMS: usize,
>(
    source: Source<'_, K, V>,
    offsets: Slice<u64>,
    target: Pairs<'_, K, V>,
    scratch: Pairs<'_, K, V>,
    list: Slice<u64>,
    num_listed: Slice<u64>,
    tickets: SliceMut<u64>,
    which: u32,
    by: SortBy,
) {
    let (reader, smem) = (DigitReader::new(by.order), shared_mem());
    Blocks::<K, V, WARPS, ITEMS> { source, target, scratch, by, reader, smem }.run(
        offsets,
        list,
        num_listed.load(which as usize),
        tickets.part(which as usize, 1),
    )
}

/// Shared memory of [`primitives_segmented_sort_blocks()`].
#[repr(C)]
pub struct BlocksSmem<K: RadixKey, V: Carried, const WARPS: usize, const ITEMS: usize> {
    phases: Phases<K, WARPS, ITEMS>,
    values: [[[V; 32]; WARPS]; ITEMS],
    /// Per digit, the index in the segment of the next item; before the first pass the counts of all digits.
    digit_begins: [u64; RADIX],
    /// Per digit, the index of an item in the segment minus its rank in the tile.
    offsets: [u64; RADIX],
    counts: [u32; RADIX],
    scan: ScanSmem,
    ticket: [u64; 1],
}

/// Two phases that do not overlap: ranking, exchanging keys.
#[repr(C)]
union Phases<K: RadixKey, const WARPS: usize, const ITEMS: usize> {
    warp_counts: [[u32; RADIX]; WARPS],
    keys: [[[K; 32]; WARPS]; ITEMS],
}

/// A digit: the bits of `mask` above bit `shift`.
#[derive(Clone, Copy)]
struct Digit {
    shift: u32,
    mask: u32,
}

/// The state of one block.
struct Blocks<'a, K: RadixKey, V: Carried, const WARPS: usize, const ITEMS: usize> {
    source: Source<'a, K, V>,
    target: Pairs<'a, K, V>,
    scratch: Pairs<'a, K, V>,
    by: SortBy,
    /// Converts the keys of the input and of the output.
    reader: DigitReader<K, true>,
    smem: *mut BlocksSmem<K, V, WARPS, ITEMS>,
}

impl<'a, K: RadixKey, V: Carried, const WARPS: usize, const ITEMS: usize> Blocks<'a, K, V, WARPS, ITEMS> {
    const THREADS: usize = 32 * WARPS;
    const TILE: usize = Self::THREADS * ITEMS;

    #[inline(always)]
    unsafe fn run(
        self,
        offsets: Slice<'_, u64>,
        list: Slice<'_, u64>,
        num_listed: u64,
        next: SliceMut<'_, u64>,
    ) {
        let ticket = shared_field!(self.smem, ticket);
        loop {
            if thread::thread_idx_x() == 0 {
                ticket.store(0, next.atomic_add(0, 1, Ordering::Relaxed, Scope::Device));
            }
            thread::sync_threads();
            let entry = ticket.load(0);
            // The barriers of the sort separate this load from the store of the next ticket.
            if entry >= num_listed || entry >= list.len() as u64 {
                break;
            }
            let (begin, len) = segment(offsets, list.load(entry as usize) as usize, self.source.keys.len());
            // Every segment of the short list fits in a tile.
            if Self::TILE <= SEGMENT_SHORT_ITEMS || len <= Self::TILE {
                self.sort_tile(begin, len as u32);
            } else {
                self.sort_by_tiles(begin, len);
            }
            thread::sync_threads();
        }
    }

    #[inline(always)]
    fn rank(&self) -> RadixRank<'a, WARPS> {
        // SAFETY: only the address is computed.
        let scan = unsafe { &raw mut (*self.smem).scan };
        RadixRank { counts: shared_field!(self.smem, phases.warp_counts), scan }
    }

    /// Returns the number of items that each thread uses for a tile of `len` items: whole groups.
    #[inline(always)]
    fn num_items(len: u32) -> usize {
        let group = group_items(ITEMS) as u32;
        (len.div_ceil(Self::THREADS as u32 * group) * group) as usize
    }

    #[inline(always)]
    unsafe fn load_values(&self, values: Slice<'_, V>, begin: usize, len: u32) -> [V; ITEMS] {
        if V::IS_CARRIED {
            load_warp_striped::<V, ITEMS, false>(values, begin, len, V::ANY, Self::num_items(len))
        } else {
            [V::ANY; ITEMS]
        }
    }

    /// Sorts a segment that fits in a tile, in shared memory.
    #[inline(always)]
    unsafe fn sort_tile(&self, begin: usize, len: u32) {
        let reader = self.reader;
        let (keys_smem, values_smem) =
            (shared_field!(self.smem, phases.keys), shared_field!(self.smem, values));
        let num_items = Self::num_items(len);
        // Padding has the largest key and the last positions, so it stays last.
        let mut keys =
            load_warp_striped::<K, ITEMS, false>(self.source.keys, begin, len, reader.padding(), num_items);
        let mut item = 0;
        while item < ITEMS {
            keys[item] = reader.loaded(keys[item]);
            item += 1;
        }
        let mut values = self.load_values(self.source.values, begin, len);
        let mut shift = self.by.begin_bit;
        loop {
            let mask = digit_mask(self.by.end_bit - shift);
            let digit = |item: usize| reader.digit(keys[item], shift, mask);
            let rank = self.rank();
            rank.clear();
            thread::sync_threads();
            rank.count::<ITEMS>(num_items, digit);
            thread::sync_threads();
            rank.sum(|_| {});
            let ranks = rank.ranks::<ITEMS>(num_items, digit);
            thread::sync_threads();
            scatter(keys_smem, &ranks, &keys, num_items);
            if V::IS_CARRIED {
                scatter(values_smem, &ranks, &values, num_items);
            }
            thread::sync_threads();
            shift += RADIX_BITS;
            if shift >= self.by.end_bit {
                break;
            }
            keys = gather_warp_striped(keys_smem, K::ZERO, num_items);
            if V::IS_CARRIED {
                values = gather_warp_striped(values_smem, V::ANY, num_items);
            }
            thread::sync_threads();
        }
        let mut rank = thread::thread_idx_x();
        while rank < len {
            let i = begin + rank as usize;
            let value = if V::IS_CARRIED { values_smem.load(rank as usize) } else { V::ANY };
            self.target.store(i, reader.stored(keys_smem.load(rank as usize)), value);
            rank += Self::THREADS as u32;
        }
    }

    /// Sorts a longer segment: each digit takes one pass over all of its tiles, alternating between output and scratch
    /// buffer.
    #[inline(always)]
    unsafe fn sort_by_tiles(&self, begin: usize, len: usize) {
        let num_passes = (self.by.end_bit - self.by.begin_bit).div_ceil(RADIX_BITS);
        let mut pass = 0;
        while pass < num_passes {
            // The last pass writes to the output, the one before it to the scratch buffer.
            let to_target = (num_passes - pass) % 2 == 1;
            let source = match (pass, to_target) {
                (0, _) => self.source,
                (_, true) => self.scratch.read_only(),
                _ => self.target.read_only(),
            };
            let target = if to_target { self.target } else { self.scratch };
            self.sort_by_digit(source, target, begin, len, self.by.begin_bit + pass * RADIX_BITS);
            pass += 1;
        }
    }

    /// Returns the digit of an unconverted key.
    #[inline(always)]
    fn digit_of(&self, key: K, Digit { shift, mask }: Digit) -> u32 {
        self.reader.digit(self.reader.loaded(key), shift, mask)
    }

    #[inline(always)]
    unsafe fn sort_by_digit(
        &self,
        source: Source<'_, K, V>,
        target: Pairs<'_, K, V>,
        begin: usize,
        len: usize,
        shift: u32,
    ) {
        let digit = Digit { shift, mask: digit_mask(self.by.end_bit - shift) };
        self.count_digits(source.keys, begin, len, digit);
        let mut done = 0;
        while done < len {
            let remaining = len - done;
            let tile_len = if remaining < Self::TILE { remaining as u32 } else { Self::TILE as u32 };
            self.move_tile(source, target, begin, begin + done, tile_len, digit);
            done += Self::TILE;
        }
    }

    /// Computes the begin of each digit's items in the segment.
    #[inline(always)]
    unsafe fn count_digits(&self, keys: Slice<'_, K>, begin: usize, len: usize, digit: Digit) {
        let t = thread::thread_idx_x() as usize;
        let (counts, digit_begins) =
            (shared_field!(self.smem, counts), shared_field!(self.smem, digit_begins));
        // Counts of 32 bits suffice for a part of the segment; the totals have 64.
        const PART: usize = 1 << 30;
        let mut total = 0u64;
        let mut done = 0;
        while done < len {
            if t < RADIX {
                counts.store(t, 0);
            }
            thread::sync_threads();
            let part_end = if len - done < PART { len } else { done + PART };
            let mut i = done + t;
            while i < part_end {
                let digit = self.digit_of(keys.load(begin + i), digit);
                counts.atomic_add(digit as usize, 1, Ordering::Relaxed, Scope::Block);
                i += Self::THREADS;
            }
            thread::sync_threads();
            if t < RADIX {
                total += u64::from(counts.load(t));
            }
            done = part_end;
        }
        // The scan over the digits is done in two halves. The lower one cannot overflow: 256 numbers of 24 bits.
        const HALF: u32 = 24;
        let (low, _) = exclusive_sum((total & ((1 << HALF) - 1)) as u32, self.rank().scan);
        let (high, _) = exclusive_sum((total >> HALF) as u32, self.rank().scan);
        if t < RADIX {
            digit_begins.store(t, (u64::from(high) << HALF) + u64::from(low));
        }
        thread::sync_threads();
    }

    /// Moves the items of a tile to their positions by this digit.
    #[inline(always)]
    unsafe fn move_tile(
        &self,
        source: Source<'_, K, V>,
        target: Pairs<'_, K, V>,
        begin: usize,
        tile: usize,
        tile_len: u32,
        digit: Digit,
    ) {
        let t = thread::thread_idx_x() as usize;
        let (keys_smem, values_smem) =
            (shared_field!(self.smem, phases.keys), shared_field!(self.smem, values));
        let (digit_begins, offsets) =
            (shared_field!(self.smem, digit_begins), shared_field!(self.smem, offsets));

        let num_items = Self::num_items(tile_len);
        let padding = self.reader.padding();
        let keys = load_warp_striped::<K, ITEMS, false>(source.keys, tile, tile_len, padding, num_items);
        let digit_of_item = |item: usize| self.digit_of(keys[item], digit);
        let rank = self.rank();
        rank.clear();
        thread::sync_threads();
        rank.count::<ITEMS>(num_items, digit_of_item);
        thread::sync_threads();
        let (count, before) = rank.sum(|_| {});
        if t < RADIX {
            let next = digit_begins.load(t);
            offsets.store(t, next.wrapping_sub(before.into()));
            // Padding is counted as well, but exists only in the last tile.
            digit_begins.store(t, next + u64::from(count));
        }
        let ranks = rank.ranks::<ITEMS>(num_items, digit_of_item);
        thread::sync_threads();
        scatter(keys_smem, &ranks, &keys, num_items);
        if V::IS_CARRIED {
            scatter(values_smem, &ranks, &self.load_values(source.values, tile, tile_len), num_items);
        }
        thread::sync_threads();
        let mut rank = thread::thread_idx_x();
        while rank < tile_len {
            let key = keys_smem.load(rank as usize);
            let offset = offsets.load(self.digit_of(key, digit) as usize);
            let i = begin + offset.wrapping_add(rank.into()) as usize;
            let value = if V::IS_CARRIED { values_smem.load(rank as usize) } else { V::ANY };
            target.store(i, key, value);
            rank += Self::THREADS as u32;
        }
        thread::sync_threads();
    }
}

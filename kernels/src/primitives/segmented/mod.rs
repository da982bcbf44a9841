//! Segmented scan and reduce in one pass over all segments, with the work of a plain scan however long the segments
//! are. A byte per item marks the first item of a segment.

use super::select::flag_bits;
use crate::block::scan::exclusive_over_warps;
use crate::block::tile::{self, Items, THREADS, WARPS, row_begin, row_items, tile_items};
use crate::policy::{PER_ITEM_THREADS, SEGMENTED_MIN_BLOCKS, SEGMENTED_ROWS as ROWS};
use crate::thread::items::own_item;
use crate::thread::operator::*;
use crate::thread::segments::segment_of;
use crate::thread::words::{MAX_WORDS, Words, computed};
use crate::warp::look_back::{Decoupled, FixedOrder, LookBack, Ticket};
use crate::warp::scan::{exclusive_of, inclusive_since};
use crate::warp::search::partition_point;
use crate::warp::shuffle::shuffle_idx;
use core::marker::PhantomData;
use cuda_std::prelude::*;
use cuda_std::shared::SharedElement;

/// Scans every segment; a block per tile. An item whose byte in `heads` is not 0 begins a segment. Otherwise like
/// `primitives_scan`.
#[kernel(
    family = "primitives-segmented",
    block = THREADS,
    min_blocks = SEGMENTED_MIN_BLOCKS,
    shared = SegmentedSmem<T>,
    hot
)]
#[instances(T = [u32, u64, f32, f64], O = [Min, Max], L = [Decoupled])]
#[instances(T = [u32, u64], O = [Sum], L = [Decoupled])]
#[instances(T = [f32, f64], O = [Sum], L = [FixedOrder])]
pub unsafe fn primitives_segmented_scan<T: Words, O: Operator<T>, L: LookBack>(
    input: Slice<T>,
    heads: Slice<u8>,
    output: SliceMut<T>,
    words: SliceMut<u64>,
    exclusive: u32,
) {
    Segmented { input, heads, words }.scan::<O, L>(output, exclusive != 0)
}

/// Writes the sum of every nonempty segment to its entry of `sums`. Segments begin at `offsets`; `heads` marks the same
/// items.
#[kernel(
    family = "primitives-segmented",
    block = THREADS,
    min_blocks = SEGMENTED_MIN_BLOCKS,
    shared = SegmentedSmem<T>,
    hot
)]
#[instances(T = [u32, u64, f32, f64], O = [Min, Max], L = [Decoupled])]
#[instances(T = [u32, u64], O = [Sum], L = [Decoupled])]
#[instances(T = [f32, f64], O = [Sum], L = [FixedOrder])]
pub unsafe fn primitives_segmented_reduce<T: Words, O: Operator<T>, L: LookBack>(
    input: Slice<T>,
    heads: Slice<u8>,
    offsets: Slice<u64>,
    sums: SliceMut<T>,
    words: SliceMut<u64>,
) {
    Segmented { input, heads, words }.reduce::<O, L>(offsets, sums)
}

/// Marks the first item of every segment in `heads`; a thread per segment.
#[kernel(family = "primitives-segmented", block = PER_ITEM_THREADS)]
pub unsafe fn primitives_segment_heads(offsets: Slice<u64>, heads: SliceMut<u8>) {
    let Some(segment) = own_item(offsets.len()) else { return };
    let begin = offsets.load(segment);
    // Of segments with the same begin, only the last one writes: each byte has one writer.
    let is_last = segment + 1 == offsets.len() || offsets.load(segment + 1) != begin;
    if is_last && begin < heads.len() as u64 {
        heads.store(begin as usize, 1);
    }
}

/// Operators whose segmented forms have kernels.
#[diagnostic::on_unimplemented(message = "there is no segmented kernel for the operator `{Self}` over `{T}`")]
pub trait SegmentedOperator<T: Words>: Operator<T> {
    /// The look-back whose results have the same bits on every run.
    type LookBack: LookBack;
}

macro_rules! segmented_operators {
    ($($o:ty: $l:ty, $($t:ty),*;)*) => { $($( impl SegmentedOperator<$t> for $o { type LookBack = $l; } )*)* };
}
segmented_operators! {
    Sum: Decoupled, u32, u64;
    Sum: FixedOrder, f32, f64;
    Min: Decoupled, u32, u64, f32, f64;
    Max: Decoupled, u32, u64, f32, f64;
}

/// The sum of items since the last head among them, and whether there is a head.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct SinceHead<T> {
    /// The sum.
    pub sum: T,
    /// 1 or 0, in the value's type, so that there is no padding.
    has_head: T,
}

impl<T: Words> SinceHead<T> {
    /// Creates a sum; `has_head` says whether it begins at a head.
    #[inline(always)]
    pub fn new(sum: T, has_head: bool) -> Self {
        Self { sum, has_head: T::from_words([has_head.into(), 0, 0, 0]) }
    }

    /// Returns true if there is a head.
    #[inline(always)]
    pub fn has_head(self) -> bool {
        self.has_head.to_words()[0] != 0
    }
}

// SAFETY: two plain values of the same type, without padding.
unsafe impl<T: Words> cust_core::DeviceCopy for SinceHead<T> {}
// SAFETY: as above.
unsafe impl<T: Words> bytemuck::Zeroable for SinceHead<T> {}
// SAFETY: as above.
unsafe impl<T: Words> bytemuck::Pod for SinceHead<T> {}
impl<T: Words> SharedElement for SinceHead<T> {}
/// Only for values of up to two words: the flag takes one more.
// SAFETY: the words of a value and a flag. (In memory it is padded to two values, and never read 16 bytes at a time.)
unsafe impl<T: Words> Words for SinceHead<T> {
    const WORDS: usize = {
        assert!(T::WORDS < MAX_WORDS, "segmented operators take values of one or two words");
        T::WORDS + 1
    };
    const ZEROS: Self = Self { sum: T::ZEROS, has_head: T::ZEROS };

    #[inline(always)]
    fn to_words(self) -> [u32; MAX_WORDS] {
        let mut words = self.sum.to_words();
        words[T::WORDS] = self.has_head().into();
        words
    }
    #[inline(always)]
    fn from_words(words: [u32; MAX_WORDS]) -> Self {
        let mut own = words;
        own[T::WORDS] = 0;
        Self::new(T::from_words(own), words[T::WORDS] != 0)
    }
}

/// The operator `O`, restarted at heads.
#[derive(Clone, Copy, Debug)]
pub struct Restarting<O>(PhantomData<O>);

impl<T: Words, O: Operator<T>> Operator<SinceHead<T>> for Restarting<O> {
    const IDENTITY: SinceHead<T> = SinceHead { sum: O::IDENTITY, has_head: T::ZEROS };
    const COMMUTATIVE: bool = false;
    const EXACT: bool = O::EXACT;

    #[inline(always)]
    fn combine(a: SinceHead<T>, b: SinceHead<T>) -> SinceHead<T> {
        let sum = if b.has_head() { b.sum } else { O::combine(a.sum, b.sum) };
        SinceHead::new(sum, a.has_head() || b.has_head())
    }
}

/// Shared memory of segmented scans and reductions.
#[repr(C)]
pub struct SegmentedSmem<T> {
    warp_sums: [SinceHead<T>; WARPS],
    before: [SinceHead<T>; 1],
    ticket: [u64; 1],
}

/// The scan of one tile.
struct Segmented<'a, T> {
    input: Slice<'a, T>,
    heads: Slice<'a, u8>,
    words: SliceMut<'a, u64>,
}

impl<T: Words> Segmented<'_, T> {
    /// Writes every item's sum.
    #[inline(always)]
    unsafe fn scan<O: Operator<T>, L: LookBack>(self, output: SliceMut<'_, T>, exclusive: bool) {
        let (begin, _, sums) = self.run::<O, L>(exclusive);
        tile::store(output, begin, sums)
    }

    /// Writes the sum at the last item of every segment to the segment's entry.
    #[inline(always)]
    unsafe fn reduce<O: Operator<T>, L: LookBack>(self, offsets: Slice<'_, u64>, to: SliceMut<'_, T>) {
        let (begin, heads, sums) = self.run::<O, L>(false);
        let ends = self.ends(begin, heads);
        if !warp::warp_vote_any(warp::FULL_MASK, ends != 0) {
            return;
        }
        // Each lane searches between the segments of the warp's first and last items.
        let first = begin + row_begin::<T, ROWS>(0) - warp::lane_id() as usize * T::PER_16;
        let segment_of_warp = |item: usize, low: usize| {
            partition_point::<32>(low + 1, offsets.len(), |s| offsets.load(s) <= item as u64) - 1
        };
        let low = segment_of_warp(first, 0);
        let high = segment_of_warp(first + ROWS * row_items::<T>() - 1, low);
        let mut row = 0;
        while row < ROWS {
            let mut e = 0;
            while e < T::PER_16 {
                if ends >> (row * T::PER_16 + e) & 1 != 0 {
                    let item = (begin + row_begin::<T, ROWS>(row) + e) as u64;
                    let segment = segment_of(offsets, item, low, high);
                    // Items before the first segment belong to none.
                    if offsets.load(segment) <= item {
                        to.store(segment, sums[row][e]);
                    }
                }
                e += 1;
            }
            row += 1;
        }
    }

    /// Returns a bit per item of the thread, set for the last item of a segment: the next item is a head or does not
    /// exist.
    #[inline(always)]
    unsafe fn ends(&self, begin: usize, heads: u32) -> u32 {
        let mut ends = 0;
        let mut row = 0;
        while row < ROWS {
            let own = heads >> (row * T::PER_16) & ((1 << T::PER_16) - 1);
            let next = begin + row_begin::<T, ROWS>(row) + T::PER_16;
            // The flag of the item behind the lane's last one comes from the lane above, or from memory.
            let mut next_is_head = shuffle_idx(own & 1, (warp::lane_id() + 1) % 32);
            if warp::lane_id() == 31 {
                next_is_head = u32::from(next < self.input.len() && self.heads.load(next) != 0);
            }
            let mut row_ends = own >> 1 | next_is_head << (T::PER_16 - 1);
            // The last item of the input ends a segment too.
            let last = self.input.len() - 1;
            if last < next && last + T::PER_16 >= next {
                row_ends |= 1 << (last + T::PER_16 - next);
            }
            ends |= row_ends << (row * T::PER_16);
            row += 1;
        }
        ends
    }

    /// Returns the begin of the tile, the heads of the thread's items, and the scanned items.
    #[inline(always)]
    unsafe fn run<O: Operator<T>, L: LookBack>(&self, exclusive: bool) -> (usize, u32, Items<T, ROWS>) {
        let smem = shared_mem::<SegmentedSmem<T>>();
        let (before, ticket) = (shared_field!(smem, before), shared_field!(smem, ticket));
        let tile = Ticket { counter: self.words.part(0, 1) }.take(ticket);
        let begin = tile * tile_items::<T, ROWS>();
        let items = tile::load(self.input, begin, O::IDENTITY);
        let heads = flag_bits::<T, ROWS>(self.heads, begin, self.input.len());

        let (mut sums, is_open, warp_sum) = Self::scan_warp::<O>(items, heads, exclusive);
        let (warps_before, sum) =
            exclusive_over_warps::<_, Restarting<O>>(warp_sum, shared_field!(smem, warp_sums));
        if thread::thread_idx_x() < 32 {
            let words = self.words.part(1, self.words.len() - 1);
            let num_tiles = thread::grid_dim_x() as usize;
            if warp::lane_id() == 0 {
                L::publish(words, num_tiles, tile, sum);
            }
            let tiles_before = L::exclusive_prefix::<_, Restarting<O>>(words, num_tiles, tile, sum);
            if warp::lane_id() == 0 {
                before.store(0, tiles_before);
            }
        }
        thread::sync_threads();

        // Reloaded: the items leave few registers for other values.
        let begin = ticket.load(0) as usize * tile_items::<T, ROWS>();
        let before = Restarting::<O>::combine(before.load(0), warps_before).sum;
        let mut row = 0;
        while row < ROWS {
            let mut e = 0;
            while e < T::PER_16 {
                if is_open >> (row * T::PER_16 + e) & 1 != 0 {
                    sums[row][e] = O::combine(before, sums[row][e]);
                }
                e += 1;
            }
            row += 1;
        }
        (begin, heads, sums)
    }

    /// Returns the items scanned within the warp, a bit per item of the thread whose segment began before the warp's
    /// items, and the sum of the warp.
    #[inline(always)]
    unsafe fn scan_warp<O: Operator<T>>(
        items: Items<T, ROWS>,
        heads: u32,
        exclusive: bool,
    ) -> (Items<T, ROWS>, u32, SinceHead<T>) {
        let mut sums = items;
        let mut is_open = 0;
        // The sum of the warp's rows so far since their last head, and whether they have a head.
        let (mut warp_sum, mut has_head) = (O::IDENTITY, false);
        let mut row = 0;
        while row < ROWS {
            let is_head = |e: usize| heads >> (row * T::PER_16 + e) & 1 != 0;
            let mut sum = items[row][0];
            let mut any = is_head(0);
            let mut e = 1;
            while e < T::PER_16 {
                sum = O::combine(if is_head(e) { O::IDENTITY } else { sum }, items[row][e]);
                any = any || is_head(e);
                e += 1;
            }
            let head_lanes = warp::warp_vote_ballot(warp::FULL_MASK, any);
            let (lanes_before, row_sum) = exclusive_of::<T, O>(inclusive_since::<T, O>(sum, head_lanes));
            let head_below = head_lanes & warp::lane_mask_lt() != 0;
            let mut sum = if head_below { lanes_before } else { O::combine(warp_sum, lanes_before) };
            let mut is_closed = has_head || head_below;
            let mut e = 0;
            while e < T::PER_16 {
                let before = if is_head(e) { O::IDENTITY } else { sum };
                sum = O::combine(before, items[row][e]);
                sums[row][e] = computed(if exclusive { before } else { sum });
                is_closed = is_closed || is_head(e);
                is_open |= u32::from(!is_closed) << (row * T::PER_16 + e);
                e += 1;
            }
            warp_sum = if head_lanes != 0 { row_sum } else { O::combine(warp_sum, row_sum) };
            has_head = has_head || head_lanes != 0;
            is_open = computed(is_open);
            row += 1;
        }
        let warp_sum = SinceHead::new(warp_sum, has_head);
        (sums, is_open, warp_sum)
    }
}

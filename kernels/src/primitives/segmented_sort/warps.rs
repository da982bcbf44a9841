//! Sorts of segments by a warp: several of up to 32 items together, longer ones one by one; still longer segments are put on lists.

use super::SegmentedSort;
use crate::policy::{PER_ITEM_THREADS, SEGMENT_SHORT_ITEMS, SEGMENT_WARP_ITEMS};
use crate::thread::carried::*;
use crate::thread::radix_key::{DigitReader, RadixKey};
use crate::warp::scan::inclusive_sum;
use cuda_std::prelude::*;
use cuda_std::warp::WarpReductionOp;

/// Sorts the segments of up to [`SEGMENT_WARP_ITEMS`] items. Other segments go to the lists `short`, up to [`SEGMENT_SHORT_ITEMS`] items,
/// and `long`, in any order. A warp handles `segments_of_warp` segments, at most 32.
#[kernel(family = "primitives-segmented-sort", hot, block = PER_ITEM_THREADS)]
#[instances(K = [u32, u64], V = [NoValue, u32, u64])]
pub unsafe fn primitives_segmented_sort_warps<K: RadixKey, V: Carried>(
    sort: SegmentedSort<'_, K, V>,
    lists: Lists<'_>,
    segments_of_warp: u32,
) {
    Warps { sort, reader: DigitReader::new(sort.by.order) }.run(&lists, segments_of_warp as usize)
}

/// The lists of segments that are too long for a warp.
#[derive(Clone, Copy, KernelArgs)]
pub struct Lists<'a> {
    /// Segments of up to [`SEGMENT_SHORT_ITEMS`] items.
    pub short: SliceMut<'a, u64>,
    /// Longer segments.
    pub long: SliceMut<'a, u64>,
    /// The number of entries of each list, zeroed before.
    pub num_listed: SliceMut<'a, u64>,
}

impl Lists<'_> {
    /// Appends each lane's segment to its list, if any. All lanes call.
    #[inline(always)]
    unsafe fn add(&self, segment: usize, len: usize) {
        let is_long = len > SEGMENT_SHORT_ITEMS;
        self.add_to(self.short, 0, segment, len > SEGMENT_WARP_ITEMS && !is_long);
        self.add_to(self.long, 1, segment, is_long);
    }

    #[inline(always)]
    unsafe fn add_to(&self, list: SliceMut<'_, u64>, which: usize, segment: usize, belongs: bool) {
        let lanes = warp::warp_vote_ballot(warp::FULL_MASK, belongs);
        let mut begin = 0;
        if lanes != 0 && warp::lane_id() == 0 {
            let count = lanes.count_ones().into();
            begin = self.num_listed.atomic_add(which, count, Ordering::Relaxed, Scope::Device);
        }
        let begin = warp::shuffle_idx(warp::FULL_MASK, begin, 0);
        let index = begin + u64::from((lanes & warp::lane_mask_lt()).count_ones());
        // Only offsets that do not ascend can give more segments than a list can hold.
        if belongs && index < list.len() as u64 {
            list.store(index as usize, segment as u64);
        }
    }
}

/// The most items of a lane.
const ITEMS: usize = SEGMENT_WARP_ITEMS / 32;

/// The state of one warp.
struct Warps<'a, K, V> {
    sort: SegmentedSort<'a, K, V>,
    reader: DigitReader<K, true>,
}

impl<K: RadixKey, V: Carried> Warps<'_, K, V> {
    /// Sorts the warp's segments: at a time, as many adjacent ones as have at most 32 items together.
    #[inline(always)]
    unsafe fn run(self, lists: &Lists<'_>, num_segments: usize) {
        let lane = warp::lane_id() as usize;
        let first = thread::index_1d_u64() as usize / 32 * num_segments;
        let (mut begin, mut len) = (0, 0);
        if lane < num_segments && first + lane + 1 < self.sort.offsets.len() {
            (begin, len) = self.sort.segment(first + lane);
        }
        lists.add(first + lane, len);
        let mut longer = warp::warp_vote_ballot(warp::FULL_MASK, len > 32 && len <= SEGMENT_WARP_ITEMS);
        while longer != 0 {
            let owner = longer.trailing_zeros();
            longer &= longer - 1;
            let begin = warp::shuffle_idx(warp::FULL_MASK, begin as u64, owner) as usize;
            let len = warp::shuffle_idx(warp::FULL_MASK, len as u32, owner);
            if len <= 64 { self.sort_one::<2>(begin, len) } else { self.sort_one::<ITEMS>(begin, len) }
        }

        let own = if len <= 32 { len as u32 } else { 0 };
        let end = inclusive_sum(own);
        // Equal for adjacent segments with no longer segment between them.
        let shift = begin.wrapping_sub((end - own) as usize);
        let (mut done, mut items_done) = (0, 0);
        while done < num_segments {
            let open = warp::warp_vote_ballot(warp::FULL_MASK, lane >= done && own > 0);
            if open == 0 {
                break;
            }
            let from = warp::shuffle_idx(warp::FULL_MASK, shift as u64, open.trailing_zeros());
            let fits = own == 0 || (shift as u64 == from && end <= items_done + 32);
            let too_far = warp::warp_vote_ballot(warp::FULL_MASK, lane >= done && !fits);
            // Lanes without a segment count as fitting.
            let next = too_far.trailing_zeros() as usize;
            let is_sorted = (done..next).contains(&lane) && own > 0;
            let own_bit = if is_sorted { 1 << (end - own - items_done) } else { 0 };
            let begins = warp::warp_reduce(warp::FULL_MASK, own_bit, WarpReductionOp::Or);
            let items =
                warp::shuffle_idx(warp::FULL_MASK, end, (next as u32).wrapping_sub(1) & 31) - items_done;
            self.sort((from as usize).wrapping_add(items_done as usize), items, begins);
            (done, items_done) = (next, items_done + items);
        }
    }

    /// Sorts a segment of up to `32 * ITEMS` items. Each item is ranked by comparison with all.
    #[inline(always)]
    unsafe fn sort_one<const ITEMS: usize>(&self, begin: usize, len: u32) {
        let index = |item: usize| 32 * item as u32 + warp::lane_id();
        let (mut keys, mut compared, mut ranks) = ([K::ZERO; ITEMS], [K::ZERO; ITEMS], [0; ITEMS]);
        for item in 0..ITEMS {
            if index(item) < len {
                keys[item] = self.sort.source.keys.load(begin + index(item) as usize);
            }
            compared[item] = self.reader.compared(self.reader.loaded(keys[item]), self.sort.by);
        }
        let mut n = 0;
        while n < len {
            let mut of_lanes = compared[0];
            for item in 1..ITEMS {
                of_lanes = if n >= 32 * item as u32 { compared[item] } else { of_lanes };
            }
            let other = warp::shuffle_idx(warp::FULL_MASK, of_lanes, n & 31);
            for item in 0..ITEMS {
                let own = compared[item];
                ranks[item] += u32::from(other < own || (other == own && n < index(item)));
            }
            n += 1;
        }
        // Keys without values may be sorted in place: all have been loaded.
        warp::sync_warp(warp::FULL_MASK);
        for item in 0..ITEMS {
            if index(item) < len {
                let value = self.sort.source.value(begin + index(item) as usize);
                self.sort.target.store(begin + ranks[item] as usize, keys[item], value);
            }
        }
    }

    /// Sorts the `len` items from `begin` on. Bits of `begins` mark the first items of segments. Each item is ranked by
    /// comparison with all items of its segment.
    #[inline(always)]
    unsafe fn sort(&self, begin: usize, len: u32, begins: u32) {
        let lane = warp::lane_id();
        let i = begin + lane as usize;
        let (mut key, mut value) = (K::ZERO, V::ANY);
        if lane < len {
            key = self.sort.source.keys.load(i);
            value = self.sort.source.value(i);
        }
        let compared = self.reader.compared(self.reader.loaded(key), self.sort.by);
        let first = 31 - (begins & warp::lane_mask_le() | 1).leading_zeros();
        let behind = begins & warp::lane_mask_gt();
        let end = if behind == 0 { len } else { behind.trailing_zeros() };
        let own_len = if lane < len { end - first } else { 0 };
        let longest = warp::warp_reduce(warp::FULL_MASK, own_len, WarpReductionOp::Max);
        let mut rank = 0;
        let mut n = 0;
        while n < longest {
            // Several comparisons a round share the overhead of the loop.
            for _ in 0..4 {
                let other = first + n;
                let before = warp::shuffle_idx(warp::FULL_MASK, compared, other & 31);
                if n < own_len && (before < compared || (before == compared && other < lane)) {
                    rank += 1;
                }
                n += 1;
            }
        }
        // As in `sort_one`.
        warp::sync_warp(warp::FULL_MASK);
        if lane < len {
            let index = begin + (first + rank) as usize;
            self.sort.target.store(index, key, value);
        }
    }
}

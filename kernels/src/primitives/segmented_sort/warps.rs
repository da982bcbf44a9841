//! Segments of up to 32 items, by a warp several at a time; longer ones are put on lists.

use super::{SortBy, segment};
use crate::policy::{PER_ITEM_THREADS, SEGMENT_SHORT_ITEMS, SEGMENTS_OF_WARP};
use crate::thread::carried::*;
use crate::thread::radix_key::{DigitReader, KeyOrder, RadixKey};
use crate::warp::scan::inclusive_sum;
use cuda_std::prelude::*;
use cuda_std::warp::WarpReductionOp;

/// Sorts the segments of up to 32 items, and puts the others on the lists `short`, up to [`SEGMENT_SHORT_ITEMS`] items, and
/// `long`; a warp [`SEGMENTS_OF_WARP`] segments. Number of entries of each list in `num_listed`, zeroed before: in any order.
#[kernel(family = "primitives-segmented-sort", hot, block = PER_ITEM_THREADS)]
#[instances(K = [u32, u64], V = [NoValue, u32, u64])]
pub unsafe fn primitives_segmented_sort_warps<K: RadixKey, V: Carried>(
    keys: Slice<K>,
    values: Slice<V>,
    offsets: Slice<u64>,
    keys_out: SliceMut<K>,
    values_out: SliceMut<V>,
    short: SliceMut<u64>,
    long: SliceMut<u64>,
    num_listed: SliceMut<u64>,
    begin_bit: u32,
    end_bit: u32,
    order: u32,
) {
    let by = SortBy { begin_bit, end_bit, reader: DigitReader::new(KeyOrder::from_bits(order)) };
    let lists = Lists { short, long, num_listed };
    Warps { keys, values, keys_out, values_out, by }.run(offsets, &lists)
}

/// The lists of segments for which a warp is too small.
struct Lists<'a> {
    short: SliceMut<'a, u64>,
    long: SliceMut<'a, u64>,
    num_listed: SliceMut<'a, u64>,
}

impl Lists<'_> {
    /// Puts the lanes' segments on the lists on which they belong. All lanes call.
    #[inline(always)]
    unsafe fn add(&self, segment: usize, len: usize) {
        let is_long = len > SEGMENT_SHORT_ITEMS;
        self.add_to(self.short, 0, segment, len > 32 && !is_long);
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
        let place = begin + u64::from((lanes & warp::lane_mask_lt()).count_ones());
        // Only offsets that do not ascend can give more segments than there is room for.
        if belongs && place < list.len() as u64 {
            list.store(place as usize, segment as u64);
        }
    }
}

/// What a warp needs of the launch.
struct Warps<'a, K, V> {
    keys: Slice<'a, K>,
    values: Slice<'a, V>,
    keys_out: SliceMut<'a, K>,
    values_out: SliceMut<'a, V>,
    by: SortBy<K>,
}

impl<K: RadixKey, V: Carried> Warps<'_, K, V> {
    /// Sorts the warp's segments, as many at a time as side by side have a lane for each item.
    #[inline(always)]
    unsafe fn run(self, offsets: Slice<'_, u64>, lists: &Lists<'_>) {
        let lane = warp::lane_id() as usize;
        let first = thread::index_1d_u64() as usize / 32 * SEGMENTS_OF_WARP;
        let (mut begin, mut len) = (0, 0);
        if lane < SEGMENTS_OF_WARP && first + lane + 1 < offsets.len() {
            (begin, len) = segment(offsets, first + lane, self.keys.len());
        }
        lists.add(first + lane, len);

        let own = if len <= 32 { len as u32 } else { 0 };
        let end = inclusive_sum(own);
        // The same for segments that lie behind each other, but for those between them that are too long.
        let shift = begin.wrapping_sub((end - own) as usize);
        let (mut done, mut items_done) = (0, 0);
        while done < SEGMENTS_OF_WARP {
            let open = warp::warp_vote_ballot(warp::FULL_MASK, lane >= done && own > 0);
            if open == 0 {
                break;
            }
            let from = warp::shuffle_idx(warp::FULL_MASK, shift as u64, open.trailing_zeros());
            let fits = own == 0 || (shift as u64 == from && end <= items_done + 32);
            let too_far = warp::warp_vote_ballot(warp::FULL_MASK, lane >= done && !fits);
            // Lanes beyond the segments fit.
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

    /// Sorts the `len` items from item `begin` on, of which a segment begins where `begins` has a bit: ranks every item by
    /// comparing it with all others of its segment.
    #[inline(always)]
    unsafe fn sort(&self, begin: usize, len: u32, begins: u32) {
        let lane = warp::lane_id();
        let i = begin + lane as usize;
        let mut key = K::ZERO;
        if lane < len {
            key = self.keys.load(i);
        }
        let compared =
            self.by.reader.compared(self.by.reader.loaded(key), self.by.begin_bit, self.by.end_bit);
        let first = 31 - (begins & warp::lane_mask_le() | 1).leading_zeros();
        let behind = begins & warp::lane_mask_gt();
        let end = if behind == 0 { len } else { behind.trailing_zeros() };
        let own_len = if lane < len { end - first } else { 0 };
        let longest = warp::warp_reduce(warp::FULL_MASK, own_len, WarpReductionOp::Max);
        let mut rank = 0;
        let mut n = 0;
        while n < longest {
            let other = first + n;
            let before = warp::shuffle_idx(warp::FULL_MASK, compared, other & 31);
            if n < own_len && (before < compared || (before == compared && other < lane)) {
                rank += 1;
            }
            n += 1;
        }
        if lane < len {
            let place = begin + (first + rank) as usize;
            self.keys_out.store(place, key);
            if V::IS_CARRIED {
                self.values_out.store(place, self.values.load(i));
            }
        }
    }
}

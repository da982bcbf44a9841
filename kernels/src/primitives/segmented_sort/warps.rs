//! Segments of up to 32 items, by a warp each; longer ones are put on lists.

use super::{SortBy, segment};
use crate::policy::{PER_ITEM_THREADS, SEGMENT_SHORT_ITEMS};
use crate::thread::radix_key::{DigitReader, KeyOrder, NoValue, RadixKey, ValueBits};
use cuda_std::prelude::*;

/// Sorts the segments of up to 32 items, and puts the others on the lists `short`, up to [`SEGMENT_SHORT_ITEMS`] items, and
/// `long`. Number of entries of each list in `num_listed`, zeroed before: in any order.
#[kernel(family = "primitives-segmented-sort", hot, block = PER_ITEM_THREADS)]
#[instance(u32, NoValue)]
#[instance(u32, u32)]
#[instance(u32, u64)]
#[instance(u64, NoValue)]
#[instance(u64, u32)]
#[instance(u64, u64)]
pub unsafe fn primitives_segmented_sort_warps<K: RadixKey, V: ValueBits>(
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
    let reader = DigitReader::new(KeyOrder::from_bits(order));
    let s = thread::index_1d_u64() as usize / 32;
    // A warp has one segment, so that all of it goes the same way.
    if s + 1 < offsets.len() {
        let (begin, len) = segment(offsets, s, keys.len());
        let by = SortBy { begin_bit, end_bit, reader };
        let warps = Warps { keys, values, keys_out, values_out, by };
        if len <= 32 {
            warps.sort(begin, len as u32);
        } else if warp::lane_id() == 0 {
            let (list, which) = if len <= SEGMENT_SHORT_ITEMS { (short, 0) } else { (long, 1) };
            let place = num_listed.atomic_add(which, 1, Ordering::Relaxed, Scope::Device);
            // Only offsets that do not ascend can give more segments than there is room for.
            if place < list.len() as u64 {
                list.store(place as usize, s as u64);
            }
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

impl<K: RadixKey, V: ValueBits> Warps<'_, K, V> {
    /// Ranks every item by comparing it with all others.
    #[inline(always)]
    unsafe fn sort(self, begin: usize, len: u32) {
        let lane = warp::lane_id();
        let i = begin + lane as usize;
        let mut key = K::ZERO;
        if lane < len {
            key = self.keys.load(i);
        }
        let compared =
            self.by.reader.compared(self.by.reader.loaded(key), self.by.begin_bit, self.by.end_bit);
        let mut rank = 0;
        let mut other = 0;
        while other < len {
            let before = warp::shuffle_idx(warp::FULL_MASK, compared, other);
            if before < compared || (before == compared && other < lane) {
                rank += 1;
            }
            other += 1;
        }
        if lane < len {
            self.keys_out.store(begin + rank, key);
            if size_of::<V>() > size_of::<NoValue>() {
                self.values_out.store(begin + rank, self.values.load(i));
            }
        }
    }
}

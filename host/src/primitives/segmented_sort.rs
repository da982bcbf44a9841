//! Stable sort of many segments: segments of up to 128 items by a warp, longer ones by a radix sort of a block, in shared memory
//! if they fit, else tile by tile. Results have the same bits on every run.
//!
//! Segments are given by a buffer of offsets on the device: segment `s` has the items `offsets[s]..offsets[s + 1]`; the
//! first offset is 0, the last one the number of items. Offsets that do not ascend or exceed the number of items make
//! the output undefined, but have no other effect. One block sorts a segment: sort a few very long segments one by one
//! with [`radix_sort`](super::radix_sort) instead.
//!
//! Temporary memory: one copy of the items if a segment may not fit in shared memory, and up to 8 bytes per 129 items.

use super::pairs::{Pairs, Source, keys_to_sort, pairs_to_sort};
use super::planned::{bytes_of, carve};
use super::radix_sort::{RadixSortOptions, SortBy, SortKey, SortValue};
use crate::device::{Buffer, Layout, Region, Stream, Temp, Workspace};
use crate::error::Result;
use cuda_std::mem::{Slice, SliceMut};
use kauri_kernels::policy::{SEGMENT_MAX_BLOCKS, SEGMENT_SHORT_ITEMS, SEGMENT_WARP_ITEMS, segments_of_warp};
pub(crate) use kauri_kernels::primitives::segmented_sort::SegmentedSort;
use kauri_kernels::primitives::segmented_sort::blocks::primitives_segmented_sort_blocks;
use kauri_kernels::primitives::segmented_sort::warps::{Lists, primitives_segmented_sort_warps};
use kauri_kernels::thread::carried::{Carried, NoValue};
use kauri_kernels::thread::radix_key::{KeyOrder, RadixKey};

/// The items of a segment of 4-byte keys that fit in shared memory.
pub(crate) const SEGMENT_TILE_ITEMS: usize = 32 * 8 * 20;

/// Returns the bytes of temporary memory that [`sort_keys`] takes for `len` keys in `num_segments` segments.
///
/// # Errors
/// [`InvalidBits`](crate::Error::InvalidBits).
pub fn plan_keys<K: SortKey>(len: usize, num_segments: usize, options: &RadixSortOptions) -> Result<u64> {
    options.sort_by::<K>()?;
    Ok(bytes_of(|layout| SegmentLists::<K::Bits, NoValue>::plan_all(layout, len, num_segments)))
}

/// Returns the bytes of temporary memory that [`sort_pairs`] takes for `len` pairs in `num_segments` segments.
///
/// # Errors
/// [`InvalidBits`](crate::Error::InvalidBits).
pub fn plan_pairs<K: SortKey, V: SortValue>(
    len: usize,
    num_segments: usize,
    options: &RadixSortOptions,
) -> Result<u64> {
    options.sort_by::<K>()?;
    Ok(bytes_of(|layout| SegmentLists::<K::Bits, V::Bits>::plan_all(layout, len, num_segments)))
}

/// Sorts the `keys` of each segment into the same segment of `sorted`. Enqueues the work on the stream and returns.
///
/// # Errors
/// [`Shape`](crate::Error::Shape) if the lengths differ, [`InvalidBits`](crate::Error::InvalidBits),
/// [`WrongDevice`](crate::Error::WrongDevice), [`OutOfMemory`](crate::Error::OutOfMemory), and errors of the driver.
pub fn sort_keys<K: SortKey>(
    stream: &Stream,
    workspace: &mut Workspace,
    keys: &Buffer<K>,
    offsets: &Buffer<u64>,
    sorted: &mut Buffer<K>,
    options: &RadixSortOptions,
) -> Result<()> {
    offsets.check_device(stream)?;
    let (from, to) = keys_to_sort(stream, keys, sorted)?;
    // SAFETY: the buffers are of one length and borrowed, and wait for the device before they are freed.
    unsafe { sort::<K::Bits, NoValue>(stream, workspace, from, offsets.slice(), to, options.sort_by::<K>()?) }
}

/// Sorts the (key, value) pairs of each segment by their keys into the same segment of `sorted_keys` and
/// `sorted_values`. Enqueues the work on the stream and returns. Values have 4 or 8 bytes.
///
/// # Errors
/// Like [`sort_keys`].
#[expect(clippy::too_many_arguments, reason = "two arrays in, two out")]
pub fn sort_pairs<K: SortKey, V: SortValue>(
    stream: &Stream,
    workspace: &mut Workspace,
    keys: &Buffer<K>,
    values: &Buffer<V>,
    offsets: &Buffer<u64>,
    sorted_keys: &mut Buffer<K>,
    sorted_values: &mut Buffer<V>,
    options: &RadixSortOptions,
) -> Result<()> {
    offsets.check_device(stream)?;
    let (from, to) = pairs_to_sort(stream, (keys, values), (sorted_keys, sorted_values))?;
    // SAFETY: as in `sort_keys`.
    unsafe { sort::<K::Bits, V::Bits>(stream, workspace, from, offsets.slice(), to, options.sort_by::<K>()?) }
}

/// The temporary memory of sorts of segments from two lists: segments of up to [`SEGMENT_SHORT_ITEMS`] items, and
/// longer ones.
pub(crate) struct SegmentLists<K, V> {
    /// The numbers of entries of the two lists, then the numbers of entries that blocks have taken.
    counters: Region<u64>,
    lists: [Region<u64>; 2],
    /// The scratch buffer of segments that do not fit in shared memory.
    keys: Region<K>,
    values: Region<V>,
}

impl<K: RadixKey, V: Carried> SegmentLists<K, V> {
    /// Plans sorts of `len` items in `num_segments` segments of any length.
    pub(crate) fn plan_all(layout: &mut Layout, len: usize, num_segments: usize) -> Self {
        let max_segments = [len / (SEGMENT_WARP_ITEMS + 1), len / (SEGMENT_SHORT_ITEMS + 1)];
        let scratch_len = if max_segments[1] > 0 { len } else { 0 };
        Self::plan(layout, max_segments.map(|max| max.min(num_segments)), scratch_len)
    }

    /// Plans lists with capacities for `max_segments`, and a scratch buffer for `scratch_len` items (0 if all segments
    /// fit in shared memory).
    pub(crate) fn plan(layout: &mut Layout, max_segments: [usize; 2], scratch_len: usize) -> Self {
        const { assert!(size_of::<V>() <= 8, "segments are sorted with values of 4 or 8 bytes") };
        // Empty regions come last, because they share their begin with the next region.
        Self {
            counters: layout.reserve(4),
            lists: max_segments.map(|max| layout.reserve(max.max(1))),
            keys: layout.reserve(scratch_len),
            values: layout.reserve(if V::IS_CARRIED { scratch_len } else { 0 }),
        }
    }

    /// Empties the two lists. Returns them and their numbers of entries.
    pub(crate) fn clear<'a>(&self, temp: &Temp<'a>) -> Result<([SliceMut<'a, u64>; 2], SliceMut<'a, u64>)> {
        temp.clear(self.counters)?;
        // SAFETY: the plan has four counters.
        Ok((self.lists.map(|list| temp.view(list)), unsafe { temp.view(self.counters).part(0, 2) }))
    }

    /// Sorts all segments; none has more than `longest` items. Longer ones pass through the lists.
    ///
    /// # Safety
    /// Like [`sort`].
    pub(crate) unsafe fn sort(
        &self,
        temp: &Temp<'_>,
        sort: SegmentedSort<'_, K, V>,
        longest: usize,
    ) -> Result<()> {
        let ([short, long], num_listed) = self.clear(temp)?;
        let num_segments = sort.offsets.len() - 1;
        let of_warp = segments_of_warp(sort.source.keys.len(), num_segments);
        let args = (in_caller_form(sort), Lists { short, long, num_listed }, of_warp as u32);
        let num_warps = num_segments.div_ceil(of_warp) as u64;
        // SAFETY: passed on to the caller.
        unsafe {
            temp.stream.launch_items::<primitives_segmented_sort_warps<K, V>>(32 * num_warps, args)?;
            if longest > SEGMENT_WARP_ITEMS { self.sort_listed(temp, sort, longest) } else { Ok(()) }
        }
    }

    /// Sorts the segments of the lists; none has more than `longest` items.
    ///
    /// # Safety
    /// Like [`sort`].
    pub(crate) unsafe fn sort_listed(
        &self,
        temp: &Temp<'_>,
        sort: SegmentedSort<'_, K, V>,
        longest: usize,
    ) -> Result<()> {
        // SAFETY: passed on to the caller.
        unsafe {
            if longest > 32 {
                self.sort_list::<2>(temp, sort, 0)?;
            }
            match size_of::<K>().max(size_of::<V>()) {
                _ if longest <= SEGMENT_SHORT_ITEMS => Ok(()),
                4 => self.sort_list::<20>(temp, sort, 1),
                _ => self.sort_list::<12>(temp, sort, 1),
            }
        }
    }

    /// # Safety
    /// Like [`sort`].
    unsafe fn sort_list<const ITEMS: usize>(
        &self,
        temp: &Temp<'_>,
        sort: SegmentedSort<'_, K, V>,
        which: u32,
    ) -> Result<()> {
        let (counters, list) = (temp.view(self.counters), temp.view(self.lists[which as usize]));
        let scratch = Pairs { keys: temp.view(self.keys), values: temp.view(self.values) };
        let blocks = (list.len() as u64).min(SEGMENT_MAX_BLOCKS);
        // SAFETY: passed on to the caller; the plan has four counters.
        unsafe {
            let (num_listed, tickets) = (counters.part(0, 2).read_only(), counters.part(2, 2));
            let SegmentedSort { source, offsets, target, by } = in_caller_form(sort);
            // Not one argument: the assembler allocates registers by the order of the parameters, and with `by` before the lists, sorts
            // of segments of 5000 pairs are slower.
            let args = (source, offsets, target, scratch, list.read_only(), num_listed, tickets, which, by);
            temp.stream.launch::<primitives_segmented_sort_blocks<K, V, 8, ITEMS>>(blocks, args)
        }
    }
}

/// Returns a sort whose keys are in the caller's form, before and after.
fn in_caller_form<'a, K, V>(sort: SegmentedSort<'a, K, V>) -> SegmentedSort<'a, K, V> {
    SegmentedSort { by: sort.by.with(KeyOrder::FOLD).with(KeyOrder::UNFOLD), ..sort }
}

/// # Safety
/// The arrays have the same length and do not overlap. Nothing else uses them until the stream has done the work.
pub(crate) unsafe fn sort<K: RadixKey, V: Carried>(
    stream: &Stream,
    workspace: &mut Workspace,
    from: Source<'_, K, V>,
    offsets: Slice<'_, u64>,
    to: Pairs<'_, K, V>,
    by: SortBy,
) -> Result<()> {
    let (len, num_segments) = (from.keys.len(), offsets.len().saturating_sub(1));
    if len == 0 || num_segments == 0 {
        return Ok(());
    }
    if by.begin_bit == by.end_bit {
        // SAFETY: passed on to the caller.
        return unsafe {
            stream.copy(to.keys, from.keys)?;
            stream.copy(to.values, from.values)
        };
    }
    let plan = |layout: &mut _| SegmentLists::<K, V>::plan_all(layout, len, num_segments);
    let (lists, temp) = carve(stream, workspace, "segmented sort", plan)?;
    // SAFETY: only this plan uses the temporary memory; the rest is passed on to the caller.
    unsafe { lists.sort(&temp, SegmentedSort { source: from, offsets, target: to, by }, len) }
}

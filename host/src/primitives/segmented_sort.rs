//! Radix sort of many segments at once, each by itself: of up to 32 items by a warp, of more by a block, in shared memory
//! where they fit and tile by tile where they do not. Stable, and the same bits on every run.
//!
//! Segments are given by a buffer of offsets on the device: segment `s` is the items from `offsets[s]` up to
//! `offsets[s + 1]`, with 0 first and the number of items last. Offsets that do not ascend, or go beyond the items, leave
//! the output undefined, and nothing else. One block sorts a segment: a few very long ones are better sorted one by one, by
//! [`radix_sort`](super::radix_sort).
//!
//! Temporary memory: one copy of the items if there can be segments that do not fit in shared memory, and up to 8 bytes for
//! every 33 items.

use super::pairs::{Pairs, Source};
use super::radix_sort::{RadixSortOptions, SortBy, SortKey, SortValue};
use crate::device::{Buffer, Layout, Region, Stream, Temp, Workspace};
use crate::error::Result;
use cuda_std::mem::{Slice, SliceMut};
use kauri_kernels::policy::{SEGMENT_MAX_BLOCKS, SEGMENT_SHORT_ITEMS, SEGMENTS_OF_WARP};
use kauri_kernels::primitives::segmented_sort::blocks::primitives_segmented_sort_blocks;
use kauri_kernels::primitives::segmented_sort::warps::primitives_segmented_sort_warps;
use kauri_kernels::thread::carried::{Carried, NoValue};
use kauri_kernels::thread::radix_key::{KeyOrder, RadixKey};

/// Items of a segment of keys of 4 bytes that fit in shared memory.
pub(crate) const SEGMENT_TILE_ITEMS: usize = 32 * 8 * 8;

/// Bytes of temporary memory that [`sort_keys`] takes for `len` keys in `num_segments` segments.
///
/// # Errors
/// [`InvalidBits`](crate::Error::InvalidBits).
pub fn plan_keys<K: SortKey>(len: usize, num_segments: usize, options: &RadixSortOptions) -> Result<u64> {
    options.sort_by::<K>()?;
    Ok(Plan::<K::Bits, NoValue>::new(len, num_segments).layout.bytes())
}

/// Bytes of temporary memory that [`sort_pairs`] takes for `len` pairs in `num_segments` segments.
///
/// # Errors
/// [`InvalidBits`](crate::Error::InvalidBits).
pub fn plan_pairs<K: SortKey, V: SortValue>(
    len: usize,
    num_segments: usize,
    options: &RadixSortOptions,
) -> Result<u64> {
    options.sort_by::<K>()?;
    Ok(Plan::<K::Bits, V::Bits>::new(len, num_segments).layout.bytes())
}

/// Sorts the `keys` of each segment into the same segment of `sorted`, in the order of the stream; returns when the work is
/// on its way. Of the options, shapes and wide counts do not matter here.
///
/// # Errors
/// [`Shape`](crate::Error::Shape) if the lengths differ, [`InvalidBits`](crate::Error::InvalidBits), [`WrongDevice`](crate::Error::WrongDevice),
/// [`OutOfMemory`](crate::Error::OutOfMemory), or the driver's.
pub fn sort_keys<K: SortKey>(
    stream: &Stream,
    workspace: &mut Workspace,
    keys: &Buffer<K>,
    offsets: &Buffer<u64>,
    sorted: &mut Buffer<K>,
    options: &RadixSortOptions,
) -> Result<()> {
    keys.check(stream, "keys to sort", keys.len())?;
    offsets.check(stream, "offsets of segments", offsets.len())?;
    sorted.check(stream, "sorted keys", keys.len())?;
    let from = Source::of_keys(keys.bits());
    let to = Pairs::of_keys(sorted.bits_mut());
    // SAFETY: the buffers are of one length and borrowed, and wait for the device before they are freed.
    unsafe { sort::<K::Bits, NoValue>(stream, workspace, from, offsets.slice(), to, options.sort_by::<K>()?) }
}

/// Sorts the pairs of each segment by their keys into the same segment of `sorted_keys` and `sorted_values`, in the order of
/// the stream; returns when the work is on its way. Values have 4 or 8 bytes.
///
/// # Errors
/// As [`sort_keys`].
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
    keys.check(stream, "keys to sort", keys.len())?;
    values.check(stream, "values to sort with keys", keys.len())?;
    offsets.check(stream, "offsets of segments", offsets.len())?;
    sorted_keys.check(stream, "sorted keys", keys.len())?;
    sorted_values.check(stream, "sorted values", keys.len())?;
    let from = Source { keys: keys.bits(), values: values.bits() };
    let to = Pairs { keys: sorted_keys.bits_mut(), values: sorted_values.bits_mut() };
    // SAFETY: as in `sort_keys`.
    unsafe { sort::<K::Bits, V::Bits>(stream, workspace, from, offsets.slice(), to, options.sort_by::<K>()?) }
}

/// Temporary memory of a sort.
struct Plan<K, V> {
    layout: Layout,
    listed: Listed<K, V>,
}

impl<K: RadixKey, V: Carried> Plan<K, V> {
    fn new(len: usize, num_segments: usize) -> Self {
        let mut layout = Layout::new();
        let (shorts, longs) = (len / 33, len / (SEGMENT_SHORT_ITEMS + 1));
        let room = if longs > 0 { len } else { 0 };
        let listed = Listed::plan(&mut layout, [shorts, longs].map(|most| most.min(num_segments)), room);
        Self { layout, listed }
    }
}

/// Temporary memory of sorts of segments on two lists: of up to [`SEGMENT_SHORT_ITEMS`] items, and of more.
pub(crate) struct Listed<K, V> {
    /// Entries of the two lists, then how many of them blocks have taken.
    counters: Region<u64>,
    lists: [Region<u64>; 2],
    /// Where segments go that do not fit in shared memory.
    keys: Region<K>,
    values: Region<V>,
}

impl<K: RadixKey, V: Carried> Listed<K, V> {
    /// Plans lists of so many segments, and room for all items, or none if all segments fit in shared memory.
    pub(crate) fn plan(layout: &mut Layout, nums: [usize; 2], room: usize) -> Self {
        const { assert!(size_of::<V>() <= 8, "segments are sorted with values of 4 or 8 bytes") };
        // Regions without items come last, since they begin where others do.
        Self {
            counters: layout.reserve(4),
            lists: nums.map(|num| layout.reserve(num.max(1))),
            keys: layout.reserve(room),
            values: layout.reserve(if V::IS_CARRIED { room } else { 0 }),
        }
    }

    /// The two lists, and how many entries they have: none yet.
    pub(crate) fn empty<'a>(
        &self,
        stream: &Stream,
        temp: &Temp<'a>,
    ) -> Result<([SliceMut<'a, u64>; 2], SliceMut<'a, u64>)> {
        temp.clear(stream, self.counters)?;
        // SAFETY: the plan has twice as many.
        Ok((self.lists.map(|list| temp.view(list)), unsafe { temp.view(self.counters).part(0, 2) }))
    }

    /// Sorts all segments, of which none has more than `longest` items; the longer ones by way of the lists.
    ///
    /// # Safety
    /// As [`sort`].
    #[allow(clippy::too_many_arguments)]
    pub(crate) unsafe fn sort(
        &self,
        stream: &Stream,
        temp: &Temp<'_>,
        from: Source<'_, K, V>,
        offsets: Slice<'_, u64>,
        to: Pairs<'_, K, V>,
        by: SortBy,
        longest: usize,
    ) -> Result<()> {
        let ([short, long], listed) = self.empty(stream, temp)?;
        let order = by.order.with(KeyOrder::FOLD).with(KeyOrder::UNFOLD).to_bits();
        // SAFETY: passed on to the caller.
        unsafe {
            let (keys, values) = (from.keys, from.values);
            let args = (
                keys,
                values,
                offsets,
                to.keys,
                to.values,
                short,
                long,
                listed,
                by.begin_bit,
                by.end_bit,
                order,
            );
            let num_warps = (offsets.len() - 1).div_ceil(SEGMENTS_OF_WARP) as u64;
            stream.launch_items::<primitives_segmented_sort_warps<K, V>>(32 * num_warps, args)?;
            self.run(stream, temp, from, offsets, to, by, longest)
        }
    }

    /// Sorts the segments on the lists, of which none has more than `longest` items. Segment `s` begins at `offsets[s]` and ends at the
    /// next of them.
    ///
    /// # Safety
    /// As [`sort`].
    #[allow(clippy::too_many_arguments)]
    pub(crate) unsafe fn run(
        &self,
        stream: &Stream,
        temp: &Temp<'_>,
        from: Source<'_, K, V>,
        offsets: Slice<'_, u64>,
        to: Pairs<'_, K, V>,
        by: SortBy,
        longest: usize,
    ) -> Result<()> {
        let order = by.order.with(KeyOrder::FOLD).with(KeyOrder::UNFOLD).to_bits();
        let sort = Lists { stream, listed: self, temp, from, offsets, to, by, order };
        // SAFETY: passed on to the caller.
        unsafe {
            if longest > 32 {
                sort.sort::<2>(0)?;
            }
            match size_of::<K>().max(size_of::<V>()) {
                _ if longest <= SEGMENT_SHORT_ITEMS => Ok(()),
                4 => sort.sort::<8>(1),
                _ => sort.sort::<6>(1),
            }
        }
    }
}

/// # Safety
/// The arrays must be of one length and apart, and used by nothing else until the stream has done the work.
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
    let plan = Plan::<K, V>::new(len, num_segments);
    let temp = workspace.carve(stream, &plan.layout, "segmented sort")?;
    // SAFETY: the temporary memory is the plan's own; the rest is passed on to the caller.
    unsafe { plan.listed.sort(stream, &temp, from, offsets, to, by, len) }
}

/// Segments on lists, to be sorted by blocks.
struct Lists<'a, K, V> {
    stream: &'a Stream,
    listed: &'a Listed<K, V>,
    temp: &'a Temp<'a>,
    from: Source<'a, K, V>,
    offsets: Slice<'a, u64>,
    to: Pairs<'a, K, V>,
    by: SortBy,
    order: u32,
}

impl<K: RadixKey, V: Carried> Lists<'_, K, V> {
    /// # Safety
    /// As [`sort`].
    unsafe fn sort<const ITEMS: usize>(&self, which: u32) -> Result<()> {
        let Self { stream, listed, temp, from, offsets, to, by, order } = *self;
        let (counters, list) = (temp.view(listed.counters), temp.view(listed.lists[which as usize]));
        // SAFETY: passed on to the caller.
        unsafe {
            let args = (
                from.keys,
                from.values,
                offsets,
                to.keys,
                to.values,
                temp.view(listed.keys),
                temp.view(listed.values),
                list.read_only(),
                counters.part(0, 2).read_only(),
                counters.part(2, 2),
                which,
                by.begin_bit,
                by.end_bit,
                order,
            );
            let blocks = (list.len() as u64).min(SEGMENT_MAX_BLOCKS);
            stream.launch::<primitives_segmented_sort_blocks<K, V, 8, ITEMS>>(blocks, args)
        }
    }
}

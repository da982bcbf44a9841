//! Moves points between buckets and arrays.

use crate::device::{Buffer, Stream};
use crate::error::{Error, Result};
use crate::primitives::pairs::empty_view;
use crate::query::gpu::{BucketIndex, node_slots};
use cuda_std::mem::{Slice, SliceMut};
use kauri_kernels::dynamic::moves::{Moves, dynamic_move};
use kauri_kernels::query::buckets::{GAPS, slots_with_gaps};
use kauri_kernels::query::traversal::GROUP;
use kauri_kernels::thread::coord::Coord;

/// Words of a coordinate.
const fn words_of<C>() -> usize {
    size_of::<C>() / size_of::<u32>()
}

fn words<C: Coord>(coords: Slice<'_, C>) -> Slice<'_, u32> {
    // SAFETY: coordinates are whole words, so the view covers the same memory.
    unsafe { Slice::from_raw_parts(coords.as_ptr().cast(), coords.len() * words_of::<C>()) }
}

fn words_mut<C: Coord>(coords: SliceMut<'_, C>) -> SliceMut<'_, u32> {
    // SAFETY: as above.
    unsafe { SliceMut::from_raw_parts(coords.as_ptr().cast(), coords.len() * words_of::<C>()) }
}

/// Appends the points of an index to arrays, in any order. `ids` are those of its slots; `num_moved` counts the points in the arrays.
///
/// # Safety
/// The arrays have room for the points. Nothing else uses the memory until the stream has done the work.
pub(super) unsafe fn append_points<C: Coord>(
    stream: &Stream,
    index: &BucketIndex<C>,
    ids: Slice<'_, u32>,
    (to_coords, to_ids): (&mut Buffer<C>, &mut Buffer<u32>),
    num_moved: &mut Buffer<u32>,
) -> Result<()> {
    let args = (Moves {
        words: words(index.coords()),
        ids,
        bucket_len: index.bucket_len,
        num_words: (index.dims * words_of::<C>()) as u32,
        to_words: words_mut(to_coords.slice_mut()),
        to_ids: to_ids.slice_mut(),
        num_moved: num_moved.slice_mut(),
    },);
    if ids.is_empty() {
        return Ok(());
    }
    // SAFETY: passed on to the caller.
    unsafe { stream.launch_items::<dynamic_move>(1 << index.levels(), args) }
}

/// Returns an index with gaps of the same points.
///
/// # Safety
/// Nothing else uses the index until the stream has done the work.
pub(super) unsafe fn with_gaps<C: Coord>(stream: &Stream, index: BucketIndex<C>) -> Result<BucketIndex<C>> {
    let (dims, gpu) = (index.dims, &index.gpu);
    let num_slots = slots_with_gaps(index.ids.len() as u32);
    let too_many = Error::TooManyItems {
        what: "points at a time in an index whose points change",
        count: index.ids.len() as u64,
        max: u64::from(u32::MAX) / 3 * 2,
    };
    let num_slots = u32::try_from(num_slots).map_err(|_| too_many)? as usize;
    let num_coords = num_slots.next_multiple_of(GROUP) * dims;
    let mut padded_coords = Buffer::uninitialized(gpu, num_coords, "points of an index")?;
    let mut ids = Buffer::uninitialized(gpu, num_slots, "ids of an index")?;
    if num_slots > 0 {
        // SAFETY: passed on to the caller; the memory of the slots ends in padding.
        unsafe {
            let slots = node_slots(stream, dims, padded_coords.slice_mut(), ids.slice_mut())?;
            let args = (Moves {
                words: words(index.coords()),
                ids: index.ids.slice(),
                bucket_len: index.bucket_len,
                num_words: (dims * words_of::<C>()) as u32,
                to_words: words_mut(slots.coords),
                to_ids: slots.ids,
                num_moved: empty_view(),
            },);
            stream.launch_items::<dynamic_move>(1 << index.levels(), args)?;
        }
    }
    Ok(BucketIndex { padded_coords, ids, bucket_len: GAPS, ..index })
}

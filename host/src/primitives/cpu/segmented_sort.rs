//! Stable sorts of segments by key on the CPU; see [the GPU version](crate::primitives::segmented_sort).

use super::radix_sort::{unsorted, write_in_order};
use crate::error::{Error, Result, check_len};
use crate::memory;
use crate::primitives::radix_sort::{RadixSortOptions, SortKey, SortValue};
use rayon::prelude::*;

/// Sorts the `keys` of each segment into the same segment of `sorted`. Segment i has the items `offsets[i]..offsets[i +
/// 1]`. Takes 16 bytes of temporary memory per key.
///
/// # Errors
/// [`Shape`](crate::Error::Shape) if the lengths differ or the offsets do not ascend from 0 to the number of keys;
/// [`InvalidBits`](crate::Error::InvalidBits), [`OutOfMemory`](crate::Error::OutOfMemory).
pub fn sort_keys<K: SortKey>(
    keys: &[K],
    offsets: &[u64],
    sorted: &mut [K],
    options: &RadixSortOptions,
) -> Result<()> {
    check_len("sorted keys", keys.len(), sorted.len())?;
    write_in_order(&ranked(keys, offsets, options)?, keys, sorted);
    Ok(())
}

/// Sorts the (key, value) pairs of each segment by their keys. Takes 16 bytes of temporary memory per pair.
///
/// # Errors
/// Like [`sort_keys`].
pub fn sort_pairs<K: SortKey, V: SortValue>(
    keys: &[K],
    values: &[V],
    offsets: &[u64],
    sorted_keys: &mut [K],
    sorted_values: &mut [V],
    options: &RadixSortOptions,
) -> Result<()> {
    check_len("values to sort with keys", keys.len(), values.len())?;
    check_len("sorted keys", keys.len(), sorted_keys.len())?;
    check_len("sorted values", keys.len(), sorted_values.len())?;
    let ranked = ranked(keys, offsets, options)?;
    write_in_order(&ranked, keys, sorted_keys);
    write_in_order(&ranked, values, sorted_values);
    Ok(())
}

/// Returns the compared bits and the index of each key, in the order of segments and keys.
fn ranked<K: SortKey>(keys: &[K], offsets: &[u64], options: &RadixSortOptions) -> Result<Vec<(u64, usize)>> {
    let mut ranked = unsorted(keys, options)?;
    let mut segments = memory::vec_with_capacity(offsets.len(), "segments to sort")?;
    let (mut rest, mut begin) = (&mut ranked[..], 0);
    for &end in offsets {
        let len = usize::try_from(end).ok().and_then(|end| end.checked_sub(begin));
        let Some(len) = len.filter(|&len| len <= rest.len()) else {
            return Err(Error::Shape { what: "offsets of segments", expected: keys.len() as u64, got: end });
        };
        let (segment, others) = rest.split_at_mut(len);
        segments.push(segment);
        (rest, begin) = (others, begin + len);
    }
    // All pairs of a segment differ, so an unstable sort gives a stable order.
    segments.into_par_iter().for_each(|segment| segment.sort_unstable());
    Ok(ranked)
}

//! Stable sorts by key on the CPU; see [the GPU version](crate::primitives::radix_sort).

use crate::error::{Result, check_len};
use crate::memory;
use crate::primitives::radix_sort::{RadixSortOptions, SortKey, SortValue};
use kauri_kernels::thread::radix_key::sort_bits;
use rayon::prelude::*;

/// Sorts `keys` into `sorted`. Takes 16 bytes of temporary memory per key.
///
/// # Errors
/// [`Shape`](crate::Error::Shape) if the lengths differ, [`InvalidBits`](crate::Error::InvalidBits), [`OutOfMemory`](crate::Error::OutOfMemory).
pub fn sort_keys<K: SortKey>(keys: &[K], sorted: &mut [K], options: &RadixSortOptions) -> Result<()> {
    check_len("sorted keys", keys.len(), sorted.len())?;
    write_in_order(&ranked(keys, options)?, keys, sorted);
    Ok(())
}

/// Sorts (key, value) pairs by their keys. Takes 16 bytes of temporary memory per pair.
///
/// # Errors
/// Like [`sort_keys`].
pub fn sort_pairs<K: SortKey, V: SortValue>(
    keys: &[K],
    values: &[V],
    sorted_keys: &mut [K],
    sorted_values: &mut [V],
    options: &RadixSortOptions,
) -> Result<()> {
    check_len("values to sort with keys", keys.len(), values.len())?;
    check_len("sorted keys", keys.len(), sorted_keys.len())?;
    check_len("sorted values", keys.len(), sorted_values.len())?;
    let ranked = ranked(keys, options)?;
    write_in_order(&ranked, keys, sorted_keys);
    write_in_order(&ranked, values, sorted_values);
    Ok(())
}

/// Writes items in the order of ranked keys.
pub(super) fn write_in_order<T: Copy + Send + Sync>(ranked: &[(u64, usize)], items: &[T], sorted: &mut [T]) {
    sorted.par_iter_mut().zip(ranked).for_each(|(to, &(_, i))| *to = items[i]);
}

/// Returns the compared bits and the index of each key.
pub(super) fn unsorted<K: SortKey>(keys: &[K], options: &RadixSortOptions) -> Result<Vec<(u64, usize)>> {
    let by = options.sort_by::<K>()?;
    let mut ranked = memory::vec_with_capacity(keys.len(), "keys to sort")?;
    let bits = |(i, &key): (usize, &K)| (sort_bits(key, by), i);
    keys.par_iter().enumerate().map(bits).collect_into_vec(&mut ranked);
    Ok(ranked)
}

/// Returns the compared bits and the index of each key, in the order of the keys.
fn ranked<K: SortKey>(keys: &[K], options: &RadixSortOptions) -> Result<Vec<(u64, usize)>> {
    let mut ranked = unsorted(keys, options)?;
    // All pairs differ, so an unstable sort gives a stable order.
    ranked.par_sort_unstable();
    Ok(ranked)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;

    fn sorted<K: SortKey>(keys: &[K], options: &RadixSortOptions) -> Vec<u32> {
        let ids: Vec<u32> = (0..keys.len() as u32).collect();
        let (mut sorted_keys, mut sorted_ids) = (keys.to_vec(), ids.clone());
        sort_pairs(keys, &ids, &mut sorted_keys, &mut sorted_ids, options).unwrap();
        sorted_ids
    }

    fn ascending() -> RadixSortOptions {
        RadixSortOptions::default()
    }

    fn descending() -> RadixSortOptions {
        RadixSortOptions { descending: true, ..ascending() }
    }

    #[test]
    fn floats_by_total_order() {
        let keys = [f32::NAN, 1.0, -0.0, f32::NEG_INFINITY, 0.0, -1.0, f32::INFINITY, -f32::NAN];
        assert_eq!(sorted(&keys, &ascending()), [7, 3, 5, 2, 4, 1, 6, 0]);
        assert_eq!(sorted(&keys, &descending()), [0, 6, 1, 4, 2, 5, 3, 7]);
        // Equal zeros stay in the order of the input.
        let keys = [0.0, -0.0, 5.0, 0.0, -5.0, -0.0];
        assert_eq!(sorted(&keys, &RadixSortOptions { equal_zeros: true, ..ascending() }), [4, 0, 1, 3, 5, 2]);
        assert_eq!(
            sorted(&keys, &RadixSortOptions { equal_zeros: true, ..descending() }),
            [2, 0, 1, 3, 5, 4]
        );
    }

    #[test]
    fn integers_by_their_signs() {
        assert_eq!(sorted(&[0, -1, i32::MAX, i32::MIN], &ascending()), [3, 1, 0, 2]);
        assert_eq!(sorted(&[0, -1, i64::MAX, i64::MIN], &descending()), [2, 0, 1, 3]);
        assert_eq!(sorted(&[7, u64::MAX, 0], &ascending()), [2, 0, 1]);
        let some = |bits| RadixSortOptions { bits: Some(bits), ..ascending() };
        assert_eq!(sorted(&[0x12u32, 0x21, 0x11], &some(0..4)), [1, 2, 0]);
        assert_eq!(sorted(&[0x12u32, 0x21, 0x11], &some(4..8)), [0, 2, 1]);
        assert_eq!(sorted(&[2u64, 1, 3], &some(64..64)), [0, 1, 2]);
        assert!(matches!(
            sort_keys(&[1u32], &mut [0], &some(0..33)),
            Err(Error::InvalidBits { begin: 0, end: 33, bits: 32 })
        ));
    }
}

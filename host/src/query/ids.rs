//! Ids of points: checks that they are a permutation, and reorders rows by id.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use crate::error::Result;
use crate::memory;
use crate::parallel::Ranges;

/// Up to this many ids are checked on the calling thread.
const SEQUENTIAL: usize = 1 << 14;

/// Reorders rows of `row_len` items, of which row `i` belongs to `ids[i]`, by id; the ids are a permutation. Items after these rows are
/// dropped.
pub(crate) fn rows_by_id<T: Copy>(
    ids: &[u32],
    rows: &[T],
    row_len: usize,
    label: &'static str,
) -> Result<Vec<T>> {
    let rows = &rows[..ids.len() * row_len];
    let mut by_id = memory::copy(rows, label)?;
    for (row, &id) in rows.chunks_exact(row_len).zip(ids) {
        by_id[id as usize * row_len..][..row_len].copy_from_slice(row);
    }
    Ok(by_id)
}

/// Returns the first index whose id is out of range or occurred before, and what is wrong with it. O(n); memory: one bit per id.
pub(crate) fn first_invalid(ids: &[u32]) -> Result<Option<(usize, String)>> {
    let num_points = ids.len();
    let index = first_failing(ids, num_points, |id, is_new| (id as usize) < num_points && is_new)?;
    Ok(index.map(|index| {
        let id = ids[index];
        let what = match (id as usize) < num_points {
            true => format!("id {id} is also the id of another point"),
            false => format!("id {id}, but there are {num_points} points"),
        };
        (index, what)
    }))
}

/// Returns the first index whose id occurred before; ids of no point may occur any number of times.
pub(crate) fn first_duplicate(ids: &[u32], num_points: usize) -> Result<Option<usize>> {
    first_failing(ids, num_points, |id, is_new| id as usize >= num_points || is_new)
}

/// Returns the first index for which `is_right` is false. `is_right` gets the id, and whether it is an id of a point that did not occur
/// before.
fn first_failing(
    ids: &[u32],
    num_points: usize,
    is_right: impl Fn(u32, bool) -> bool + Sync,
) -> Result<Option<usize>> {
    let words = num_points.div_ceil(64);
    let mut seen: Vec<AtomicU64> = memory::vec_with_capacity(words, "ids seen")?;
    seen.resize_with(words, AtomicU64::default);
    let is_right = |&id: &u32| {
        let bit = 1 << (id % 64);
        let is_new = seen.get(id as usize / 64).is_some_and(|word| word.fetch_or(bit, Relaxed) & bit == 0);
        is_right(id, is_new)
    };
    if ids.len() > SEQUENTIAL {
        if !Ranges::new(ids.len(), SEQUENTIAL).any(&|range| !ids[range].iter().all(is_right)) {
            return Ok(None);
        }
        // Check again in order to find the first.
        seen.iter().for_each(|word| word.store(0, Relaxed));
    }
    Ok(ids.iter().position(|id| !is_right(id)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(ids: &[u32]) -> Option<(usize, String)> {
        first_invalid(ids).unwrap()
    }

    #[test]
    fn the_first_is_named() {
        assert_eq!(wrong(&[]), None);
        assert_eq!(wrong(&[2, 0, 1]), None);
        assert_eq!(wrong(&[2, 3, 1]), Some((1, "id 3, but there are 3 points".into())));
        assert_eq!(wrong(&[2, 1, 1]), Some((2, "id 1 is also the id of another point".into())));
        for n in [SEQUENTIAL, SEQUENTIAL + 1, 5 * SEQUENTIAL + 3] {
            let mut ids: Vec<u32> = (0..n as u32).rev().collect();
            assert_eq!(wrong(&ids), None);
            ids[n - 1] = n as u32 - 1;
            assert_eq!(wrong(&ids).unwrap().0, n - 1);
            ids[n / 2] = u32::MAX;
            assert_eq!(wrong(&ids).unwrap().0, n / 2);
        }
    }

    #[cfg(feature = "io")]
    #[test]
    fn others_than_ids_may_be_there_twice() {
        assert_eq!(first_duplicate(&[0, u32::MAX, 1, u32::MAX, 9], 2).unwrap(), None);
        assert_eq!(first_duplicate(&[0, u32::MAX, 1, 0], 2).unwrap(), Some(3));
    }
}

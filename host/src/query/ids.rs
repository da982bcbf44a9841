//! Whether ids are those of points, each once.

use rayon::prelude::*;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use crate::error::Result;
use crate::memory;

/// Up to so many ids are looked at on the calling thread.
const SEQUENTIAL: usize = 1 << 14;

/// The first place whose id is not below the number of ids, or that of a place before it, and what is wrong with it. O(n); takes a bit
/// an id.
pub(crate) fn first_wrong(ids: &[u32]) -> Result<Option<(usize, String)>> {
    let num_points = ids.len();
    let place = first_unlike(ids, num_points, |id, is_new| (id as usize) < num_points && is_new)?;
    Ok(place.map(|place| {
        let id = ids[place];
        let what = match (id as usize) < num_points {
            true => format!("id {id} is also the id of another point"),
            false => format!("id {id}, but there are {num_points} points"),
        };
        (place, what)
    }))
}

/// The first place whose id is that of a place before it; what is no id of a point may be there any number of times.
pub(crate) fn first_twice(ids: &[u32], num_points: usize) -> Result<Option<usize>> {
    first_unlike(ids, num_points, |id, is_new| id as usize >= num_points || is_new)
}

/// The first place that `is_right` is false of, which is told its id, and whether that is one of a point and of no place before it.
fn first_unlike(
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
        if ids.par_iter().with_min_len(SEQUENTIAL).all(is_right) {
            return Ok(None);
        }
        // Again, in order, to find the first.
        seen.iter().for_each(|word| word.store(0, Relaxed));
    }
    Ok(ids.iter().position(|id| !is_right(id)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(ids: &[u32]) -> Option<(usize, String)> {
        first_wrong(ids).unwrap()
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
        assert_eq!(first_twice(&[0, u32::MAX, 1, u32::MAX, 9], 2).unwrap(), None);
        assert_eq!(first_twice(&[0, u32::MAX, 1, 0], 2).unwrap(), Some(3));
    }
}

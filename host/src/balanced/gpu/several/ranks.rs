//! Where ranks cut sorted lists that lie on several devices.
//!
//! Each round looks at some points of every list, evenly spread over where a cut may still be, and compares those alone: so few rounds
//! do, and no device has to read another's memory. Of two lists, and the rank that is the length of the first, the cut is Robinson's
//! pivot: as many of the first list's largest lie behind it as of the second list's smallest before it.

use std::cmp::Ordering;
use std::ops::Range;

use crate::error::{Error, Result};

/// Points of a list that are looked at in a round, for a rank.
pub(crate) const LOOKS: usize = 256;

/// How two points compare, which are given by their coordinates.
pub(crate) trait Compare<C>: Fn(&[C], &[C]) -> Ordering {}
impl<C, F: Fn(&[C], &[C]) -> Ordering> Compare<C> for F {}

/// Points of a list that have been looked at, in order.
struct Seen<C> {
    places: Vec<u32>,
    coords: Vec<C>,
}

impl<C> Seen<C> {
    fn point(&self, i: usize) -> &[C] {
        let dims = self.coords.len() / self.places.len();
        &self.coords[i * dims..(i + 1) * dims]
    }

    /// The first of the points that something is not true of; of those before it it is.
    fn partition_point(&self, is_true: impl Fn(usize) -> bool) -> usize {
        let (mut low, mut high) = (0, self.places.len());
        while low < high {
            let middle = low + (high - low) / 2;
            if is_true(middle) { low = middle + 1 } else { high = middle }
        }
        low
    }
}

/// For each rank how many of each list's points are among the first so many of all. Of equal points those of the first list come first.
/// `look` gives the coordinates of points of a list by their places, in order.
pub(crate) fn cuts<C>(
    lens: &[usize],
    ranks: &[usize],
    compare: &impl Compare<C>,
    mut look: impl FnMut(usize, &[u32]) -> Result<Vec<C>>,
) -> Result<Vec<Vec<usize>>> {
    let whole: Vec<_> = lens.iter().map(|&len| 0..len).collect();
    let mut bounds = vec![whole; ranks.len()];
    let undecided = |bounds: &[Vec<Range<usize>>]| bounds.iter().flatten().map(Range::len).sum::<usize>();
    while undecided(&bounds) > 0 {
        let seen = (0..lens.len()).map(|list| {
            let of_rank = |bounds: &Vec<Range<usize>>| spread(bounds[list].clone());
            let mut places: Vec<_> = bounds.iter().flat_map(of_rank).collect();
            places.sort_unstable();
            places.dedup();
            let coords = if places.is_empty() { Vec::new() } else { look(list, &places)? };
            Ok(Seen { places, coords })
        });
        let seen = seen.collect::<Result<Vec<_>>>()?;
        let before = undecided(&bounds);
        for (bounds, &rank) in bounds.iter_mut().zip(ranks) {
            narrow(bounds, rank, &seen, compare);
        }
        if undecided(&bounds) == before {
            let what = "the points of a part are not in order".into();
            return Err(Error::Corrupt { node: 0, what });
        }
    }
    Ok(bounds.into_iter().map(|bounds| bounds.into_iter().map(|range| range.start).collect()).collect())
}

/// Some places of a range; all, if they are few.
fn spread(range: Range<usize>) -> impl Iterator<Item = u32> {
    let step = range.len().div_ceil(LOOKS).max(1);
    range.step_by(step).map(|place| place as u32)
}

/// Narrows for each list where a rank may cut it.
///
/// A point is among the first if fewer than so many come before it. How many these are of a list is known up to the points that were
/// seen on both sides of it, and no more than its bounds count: a point that comes before one that is certainly among the first is
/// so itself, and if of each list at most as many come before it as are among the first, so does their sum.
fn narrow<C>(bounds: &mut [Range<usize>], rank: usize, seen: &[Seen<C>], compare: &impl Compare<C>) {
    let at_least_and_most = |list: usize, i: usize| {
        let mut sums = [0, 0];
        for (other, bound) in bounds.iter().enumerate() {
            let counts = if other == list {
                [seen[list].places[i] as usize; 2]
            } else {
                let is_before = |j: usize| {
                    let order = compare(seen[other].point(j), seen[list].point(i));
                    order.is_lt() || (order.is_eq() && other < list)
                };
                let before = seen[other].partition_point(is_before);
                let last = before.checked_sub(1).map_or(0, |last| seen[other].places[last] as usize + 1);
                let next = seen[other].places.get(before).map_or(bound.end, |&next| next as usize);
                [last, next]
            };
            for (sum, count) in sums.iter_mut().zip(counts) {
                *sum += count.clamp(bound.start, bound.end);
            }
        }
        sums
    };
    let narrowed = bounds.iter().enumerate().map(|(list, bound)| {
        if bound.is_empty() {
            return bound.clone();
        }
        let places = &seen[list].places;
        let first = seen[list].partition_point(|i| at_least_and_most(list, i)[1] < rank);
        let last = seen[list].partition_point(|i| at_least_and_most(list, i)[0] < rank);
        let begin = first.checked_sub(1).map_or(0, |first| places[first] as usize + 1);
        let end = places.get(last).map_or(bound.end, |&last| last as usize);
        let begin = begin.clamp(bound.start, bound.end);
        // Of lists that are not sorted it might lie before.
        begin..end.clamp(begin, bound.end)
    });
    let narrowed: Vec<_> = narrowed.collect();
    bounds.clone_from_slice(&narrowed);
}

/// Moves a cut so that all points equal to the last one before it are before it. A list has no two equal points.
pub(crate) fn whole<C>(
    lens: &[usize],
    cut: &mut [usize],
    compare: &impl Compare<C>,
    mut look: impl FnMut(usize, &[u32]) -> Result<Vec<C>>,
) -> Result<()> {
    let mut last: Option<Vec<C>> = None;
    for (list, &end) in cut.iter().enumerate().filter(|&(_, &end)| end > 0) {
        let point = look(list, &[end as u32 - 1])?;
        if last.as_ref().is_none_or(|last| compare(last, &point).is_lt()) {
            last = Some(point);
        }
    }
    let Some(last) = last else { return Ok(()) };
    for (list, end) in cut.iter_mut().enumerate().filter(|&(list, &mut end)| end < lens[list]) {
        if compare(&look(list, &[*end as u32])?, &last).is_eq() {
            *end += 1;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by_value(a: &[u64], b: &[u64]) -> Ordering {
        a.cmp(b)
    }

    /// How many of each list are among the first of all, by a sort of all.
    fn expected(lists: &[Vec<u64>], rank: usize) -> Vec<usize> {
        let of_list = |(list, values): (usize, &Vec<u64>)| {
            values.iter().map(|&value| (value, list)).collect::<Vec<_>>()
        };
        let mut all: Vec<_> = lists.iter().enumerate().flat_map(of_list).collect();
        all.sort_unstable();
        (0..lists.len()).map(|list| all[..rank].iter().filter(|item| item.1 == list).count()).collect()
    }

    /// Numbers that look random and are always the same, in order.
    fn list(len: usize, values: u64, seed: u64) -> Vec<u64> {
        let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state % values
        };
        let mut list: Vec<_> = (0..len).map(|_| next()).collect();
        list.sort_unstable();
        list
    }

    fn cuts_of(lists: &[Vec<u64>], ranks: &[usize]) -> (Vec<Vec<usize>>, usize) {
        let lens: Vec<_> = lists.iter().map(Vec::len).collect();
        let mut looks = 0;
        let look = |list: usize, places: &[u32]| {
            looks += 1;
            Ok(places.iter().map(|&place| lists[list][place as usize]).collect())
        };
        let cuts = cuts(&lens, ranks, &by_value, look).unwrap();
        (cuts, looks)
    }

    #[test]
    fn cuts_are_those_of_a_sort() {
        let lens: [&[usize]; 7] =
            [&[0, 0], &[1, 0], &[3, 5], &[700, 1], &[5000, 4000, 0], &[999, 3000, 10, 2000], &[300; 8]];
        for (seed, lens) in lens.into_iter().enumerate() {
            for values in [1, 3, 1000, u64::MAX] {
                let of_len = |(i, &len): (usize, &usize)| list(len, values, (10 * seed + i) as u64);
                let lists: Vec<_> = lens.iter().enumerate().map(of_len).collect();
                let all = lens.iter().sum::<usize>();
                let ranks = [0, 1.min(all), all / 3, all / 2, all];
                let (cuts, _) = cuts_of(&lists, &ranks);
                for (cut, rank) in cuts.into_iter().zip(ranks) {
                    assert_eq!(cut, expected(&lists, rank), "rank {rank} of {lens:?}, {values} values");
                }
            }
        }
    }

    #[test]
    fn few_looks_do() {
        // Apart, alternating, and mixed.
        let long = |begin: u64, step: u64| (0..1 << 20).map(|i| begin + i * step).collect::<Vec<_>>();
        for lists in [
            [long(0, 1), long(1 << 20, 1)],
            [long(1 << 20, 1), long(0, 1)],
            [long(0, 2), long(1, 2)],
            [long(0, 1), list(1 << 20, 1 << 22, 5)],
        ] {
            let (cuts, looks) = cuts_of(&lists, &[1 << 20, 77]);
            assert_eq!(cuts, [expected(&lists, 1 << 20), expected(&lists, 77)]);
            assert!(looks <= 2 * 5, "{looks} looks");
        }
    }

    #[test]
    fn lists_that_are_not_sorted_are_no_endless_work() {
        for seed in 0..100 {
            let mut lists = [list(600, 50, seed), list(300, 50, seed + 1)];
            lists[0].rotate_left(seed as usize * 5);
            lists[1].reverse();
            let lens = [600, 300];
            let look = |list: usize, places: &[u32]| {
                Ok(places.iter().map(|&place| lists[list][place as usize]).collect())
            };
            match cuts(&lens, &[seed as usize * 9], &by_value, look) {
                Ok(cuts) => assert!(cuts[0][0] <= 600 && cuts[0][1] <= 300),
                Err(error) => assert!(matches!(error, Error::Corrupt { .. }), "{error}"),
            }
        }
    }

    /// The smallest number of the first list's largest that are not greater when they change places with as many of the second's smallest.
    #[test]
    fn of_two_lists_it_is_the_pivot_of_robinson() {
        for seed in 0..200 {
            let lists = [list(seed % 23, 40, 3 * seed as u64), list(seed % 17, 40, 3 * seed as u64 + 1)];
            let [a, b] = &lists;
            let fits = |p: &usize| *p == a.len() || *p == b.len() || a[a.len() - p - 1] <= b[*p];
            let pivot = (0..=a.len().min(b.len())).find(fits).unwrap();
            assert_eq!(cuts_of(&lists, &[a.len()]).0, [[a.len() - pivot, pivot]]);
        }
    }

    #[test]
    fn equal_points_stay_together() {
        let lists = [vec![1, 4, 5], vec![4, 6], vec![2, 4]];
        let lens = [3, 2, 2];
        let look = |list: usize, places: &[u32]| Ok(vec![lists[list][places[0] as usize]]);
        for (rank, together) in
            [(0, [0, 0, 0]), (2, [1, 0, 1]), (3, [2, 1, 2]), (5, [2, 1, 2]), (7, [3, 2, 2])]
        {
            let mut cut = expected(&lists, rank);
            whole(&lens, &mut cut, &by_value, look).unwrap();
            assert_eq!(cut, together, "rank {rank}");
        }
    }
}

//! Multi-way selection: the cuts of sorted lists on several devices at given ranks of the merged order.
//!
//! Each round reads sample points of every list, evenly spread over the range that may still contain a cut, and compares only these samples
//! on the host. A few rounds suffice, and no device reads the memory of another. For two lists, and the length of the first one as the
//! rank, the cut is Robinson's pivot: it exchanges the largest points of the first list for as many of the smallest points of the second
//! list.

use std::cmp::Ordering;
use std::ops::Range;

use crate::error::{Error, Result};

/// Number of samples per list, rank and round.
pub(crate) const SAMPLES: usize = 256;

/// Compares two points, given by their coordinates.
pub(crate) trait Compare<C>: Fn(&[C], &[C]) -> Ordering {}
impl<C, F: Fn(&[C], &[C]) -> Ordering> Compare<C> for F {}

/// Sample points of a list, in order.
struct Samples<C> {
    positions: Vec<u32>,
    coords: Vec<C>,
}

impl<C> Samples<C> {
    fn point(&self, i: usize) -> &[C] {
        let dims = self.coords.len() / self.positions.len();
        &self.coords[i * dims..(i + 1) * dims]
    }

    /// Returns the index of the first sample for which the predicate is false. It is true for all samples before that one.
    fn partition_point(&self, is_true: impl Fn(usize) -> bool) -> usize {
        let (mut low, mut high) = (0, self.positions.len());
        while low < high {
            let middle = low + (high - low) / 2;
            if is_true(middle) { low = middle + 1 } else { high = middle }
        }
        low
    }
}

/// Returns for each rank the number of points of each list among the first `rank` points of the merged order. Equal points are ordered by
/// list. `read_points` returns the coordinates of the points of a list at given positions.
pub(crate) fn cuts<C>(
    lens: &[usize],
    ranks: &[usize],
    compare: &impl Compare<C>,
    mut read_points: impl FnMut(usize, &[u32]) -> Result<Vec<C>>,
) -> Result<Vec<Vec<usize>>> {
    let whole: Vec<_> = lens.iter().map(|&len| 0..len).collect();
    let mut bounds = vec![whole; ranks.len()];
    let undecided = |bounds: &[Vec<Range<usize>>]| bounds.iter().flatten().map(Range::len).sum::<usize>();
    while undecided(&bounds) > 0 {
        let samples = (0..lens.len()).map(|list| {
            let of_rank = |bounds: &Vec<Range<usize>>| spread(bounds[list].clone());
            let mut positions: Vec<_> = bounds.iter().flat_map(of_rank).collect();
            positions.sort_unstable();
            positions.dedup();
            let coords = if positions.is_empty() { Vec::new() } else { read_points(list, &positions)? };
            Ok(Samples { positions, coords })
        });
        let samples = samples.collect::<Result<Vec<_>>>()?;
        let before = undecided(&bounds);
        for (bounds, &rank) in bounds.iter_mut().zip(ranks) {
            narrow(bounds, rank, &samples, compare);
        }
        if undecided(&bounds) == before {
            return Err(Error::corrupt(0, "the points of a part are not in order"));
        }
    }
    Ok(bounds.into_iter().map(|bounds| bounds.into_iter().map(|range| range.start).collect()).collect())
}

/// Returns at most [`SAMPLES`] evenly spread positions of a range.
fn spread(range: Range<usize>) -> impl Iterator<Item = u32> {
    let step = range.len().div_ceil(SAMPLES).max(1);
    range.step_by(step).map(|position| position as u32)
}

/// Narrows the range of each list that contains its cut at a rank.
///
/// A point is before the cut if fewer than `rank` points of the merged order precede it. For every sample, the samples of another list
/// bound the number of its points that precede it from below and above; the counts are clamped to the current bounds of that list. Clamping
/// is safe: a point before another one that is before the cut is itself before the cut, and if in each list at most as many points precede
/// a point as are before the cut, the same holds for the sum.
fn narrow<C>(bounds: &mut [Range<usize>], rank: usize, samples: &[Samples<C>], compare: &impl Compare<C>) {
    let at_least_and_most = |list: usize, i: usize| {
        let mut sums = [0, 0];
        for (other, bound) in bounds.iter().enumerate() {
            let counts = if other == list {
                [samples[list].positions[i] as usize; 2]
            } else {
                let is_before = |j: usize| {
                    let order = compare(samples[other].point(j), samples[list].point(i));
                    order.is_lt() || (order.is_eq() && other < list)
                };
                let before = samples[other].partition_point(is_before);
                let last =
                    before.checked_sub(1).map_or(0, |last| samples[other].positions[last] as usize + 1);
                let next = samples[other].positions.get(before).map_or(bound.end, |&next| next as usize);
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
        let positions = &samples[list].positions;
        let first = samples[list].partition_point(|i| at_least_and_most(list, i)[1] < rank);
        let last = samples[list].partition_point(|i| at_least_and_most(list, i)[0] < rank);
        let begin = first.checked_sub(1).map_or(0, |first| positions[first] as usize + 1);
        let end = positions.get(last).map_or(bound.end, |&last| last as usize);
        let begin = begin.clamp(bound.start, bound.end);
        // If a list is not sorted, the end might be less than the begin.
        begin..end.clamp(begin, bound.end)
    });
    let narrowed: Vec<_> = narrowed.collect();
    bounds.clone_from_slice(&narrowed);
}

/// Moves a cut after all points that equal the last point before it. No list has two equal points.
pub(crate) fn extend_to_equal_points<C>(
    lens: &[usize],
    cut: &mut [usize],
    compare: &impl Compare<C>,
    mut read_points: impl FnMut(usize, &[u32]) -> Result<Vec<C>>,
) -> Result<()> {
    let mut last: Option<Vec<C>> = None;
    for (list, &end) in cut.iter().enumerate().filter(|&(_, &end)| end > 0) {
        let point = read_points(list, &[end as u32 - 1])?;
        if last.as_ref().is_none_or(|last| compare(last, &point).is_lt()) {
            last = Some(point);
        }
    }
    let Some(last) = last else { return Ok(()) };
    for (list, end) in cut.iter_mut().enumerate().filter(|&(list, &mut end)| end < lens[list]) {
        if compare(&read_points(list, &[*end as u32])?, &last).is_eq() {
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

    /// Returns the number of values of each list among the first `rank` values of a sort of all.
    fn expected(lists: &[Vec<u64>], rank: usize) -> Vec<usize> {
        let of_list = |(list, values): (usize, &Vec<u64>)| {
            values.iter().map(|&value| (value, list)).collect::<Vec<_>>()
        };
        let mut all: Vec<_> = lists.iter().enumerate().flat_map(of_list).collect();
        all.sort_unstable();
        (0..lists.len()).map(|list| all[..rank].iter().filter(|item| item.1 == list).count()).collect()
    }

    /// Returns sorted pseudorandom numbers.
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
        let mut reads = 0;
        let read_points = |list: usize, positions: &[u32]| {
            reads += 1;
            Ok(positions.iter().map(|&position| lists[list][position as usize]).collect())
        };
        let cuts = cuts(&lens, ranks, &by_value, read_points).unwrap();
        (cuts, reads)
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
    fn few_rounds_suffice() {
        // Disjoint ranges, alternating values, and random values.
        let long = |begin: u64, step: u64| (0..1 << 20).map(|i| begin + i * step).collect::<Vec<_>>();
        for lists in [
            [long(0, 1), long(1 << 20, 1)],
            [long(1 << 20, 1), long(0, 1)],
            [long(0, 2), long(1, 2)],
            [long(0, 1), list(1 << 20, 1 << 22, 5)],
        ] {
            let (cuts, reads) = cuts_of(&lists, &[1 << 20, 77]);
            assert_eq!(cuts, [expected(&lists, 1 << 20), expected(&lists, 77)]);
            assert!(reads <= 2 * 5, "{reads} reads");
        }
    }

    #[test]
    fn unsorted_lists_end() {
        for seed in 0..100 {
            let mut lists = [list(600, 50, seed), list(300, 50, seed + 1)];
            lists[0].rotate_left(seed as usize * 5);
            lists[1].reverse();
            let lens = [600, 300];
            let read_points = |list: usize, positions: &[u32]| {
                Ok(positions.iter().map(|&position| lists[list][position as usize]).collect())
            };
            match cuts(&lens, &[seed as usize * 9], &by_value, read_points) {
                Ok(cuts) => assert!(cuts[0][0] <= 600 && cuts[0][1] <= 300),
                Err(error) => assert!(matches!(error, Error::Corrupt { .. }), "{error}"),
            }
        }
    }

    /// Robinson's pivot is the smallest number of points to exchange: the largest of the first list for the smallest of the second.
    #[test]
    fn the_cut_of_two_lists_is_the_pivot_of_robinson() {
        for seed in 0..200 {
            let lists = [list(seed % 23, 40, 3 * seed as u64), list(seed % 17, 40, 3 * seed as u64 + 1)];
            let [a, b] = &lists;
            let fits = |p: &usize| *p == a.len() || *p == b.len() || a[a.len() - p - 1] <= b[*p];
            let pivot = (0..=a.len().min(b.len())).find(fits).unwrap();
            assert_eq!(cuts_of(&lists, &[a.len()]).0, [[a.len() - pivot, pivot]]);
        }
    }

    #[test]
    fn a_cut_keeps_equal_points_together() {
        let lists = [vec![1, 4, 5], vec![4, 6], vec![2, 4]];
        let lens = [3, 2, 2];
        let read_points = |list: usize, positions: &[u32]| Ok(vec![lists[list][positions[0] as usize]]);
        for (rank, together) in
            [(0, [0, 0, 0]), (2, [1, 0, 1]), (3, [2, 1, 2]), (5, [2, 1, 2]), (7, [3, 2, 2])]
        {
            let mut cut = expected(&lists, rank);
            extend_to_equal_points(&lens, &mut cut, &by_value, read_points).unwrap();
            assert_eq!(cut, together, "rank {rank}");
        }
    }
}

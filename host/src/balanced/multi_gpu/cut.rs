//! The cut of the points of a group of parts at their median, by the super key of the first column.

use bytemuck::AnyBitPattern;
use std::cmp::Ordering;
use std::ops::Range;

use kauri_kernels::balanced::Run;
use kauri_kernels::policy::{CUT_BITS, CUT_MAX_CANDIDATES};
use kauri_kernels::thread::coord::Float;
use kauri_kernels::thread::radix_key::RadixKey;

use crate::balanced::multi_gpu::part::{Part, Pending};
use crate::balanced::multi_gpu::ranks::cuts;
use crate::balanced::super_key::compare;
use crate::error::Result;

/// The cut of the points of a group at their median. The points of each part are in order as far as the cut, and have the columns of the
/// next level.
pub(super) struct Cut<C> {
    /// The number of points of each part that come before the median.
    num_less: Vec<usize>,
    /// The part that holds the median, behind those points.
    holder: usize,
    /// The id and the coordinates of the median; `None` if there are no points.
    pub(super) median: Option<(u32, Vec<C>)>,
}

/// Returns the number of points of a group that come before the median.
fn rank_of_median<C: Float>(parts: &[Part<C>]) -> usize {
    let len = parts.iter().map(Part::len).sum::<usize>();
    Run { begin: 0, len: len as u32 }.num_less() as usize
}

/// Compares two points of the next level by the super key of this one.
fn compare_before<C: Float>(a: &[C], b: &[C]) -> Ordering {
    compare(a, b, a.len() - 1)
}

impl<C: Float> Cut<C> {
    /// Returns the range of the points before the median in each part.
    pub(super) fn less(&self) -> Vec<Range<usize>> {
        self.num_less.iter().map(|&end| 0..end).collect()
    }

    /// Returns the range of the points after the median in each part.
    pub(super) fn greater(&self, parts: &[Part<C>]) -> Vec<Range<usize>> {
        let begin =
            |part: usize| self.num_less[part] + usize::from(self.median.is_some() && part == self.holder);
        parts.iter().enumerate().map(|(i, part)| begin(i)..part.len()).collect()
    }

    /// Cuts sorted parts, whose columns are those of the next level.
    pub(super) fn of_sorted(parts: &mut [Part<C>]) -> Result<Self> {
        let lens: Vec<_> = parts.iter().map(Part::len).collect();
        let rank = rank_of_median(parts);
        let read_points = |part: usize, positions: &[u32]| parts[part].read_points(positions);
        let cut = cuts(&lens, &[rank], &compare_before, read_points)?;
        let num_less = cut.into_iter().next().unwrap_or_default();
        let mut median: Option<(usize, Vec<C>)> = None;
        for (part, &position) in num_less.iter().enumerate().filter(|&(part, &end)| end < lens[part]) {
            let point = parts[part].read_points(&[position as u32])?;
            if median.as_ref().is_none_or(|(_, least)| compare_before(&point, least).is_lt()) {
                median = Some((part, point));
            }
        }
        Ok(match median {
            None => Self { num_less, holder: 0, median: None },
            Some((holder, coords)) => {
                let id = parts[holder].read_id(num_less[holder])?;
                Self { num_less, holder, median: Some((id, coords)) }
            }
        })
    }

    /// Cuts parts in any order, by a radix selection over all of them: the devices count the digits of the first coordinates, until few
    /// points may be the median; the host selects among these. (Alabi et al. 2012, *Fast k-Selection Algorithms for Graphics Processing
    /// Units*, section 3.2, for one device.) `None` if another point equals the median, or if too many have its first coordinate: then the
    /// points have to be sorted.
    pub(super) fn by_selection(parts: &mut [Part<C>]) -> Result<Option<Self>> {
        let rank = rank_of_median(parts);
        let Some(Candidates { mut num_less, coords }) = candidates(parts, rank)? else { return Ok(None) };
        let dims = parts[0].dims;
        let by_point = |a: &&[C], b: &&[C]| compare(a, b, 0);
        let mut points: Vec<_> = coords.iter().flat_map(|coords| coords.chunks_exact(dims)).collect();
        if points.is_empty() {
            return Ok(Some(Self { num_less, holder: 0, median: None }));
        }
        let nth = rank - num_less.iter().sum::<usize>();
        let (_, &mut median, _) = points.select_nth_unstable_by(nth, by_point);
        let count = |coords: &[C], order| {
            let orders = coords.chunks_exact(dims).map(|point| compare(point, median, 0));
            orders.filter(|&found| found == order).count()
        };
        let num_equal: Vec<_> = coords.iter().map(|coords| count(coords, Ordering::Equal)).collect();
        let Some(holder) = num_equal.iter().position(|&len| len > 0) else {
            unreachable!("a median is a point")
        };
        if num_equal.iter().sum::<usize>() > 1 {
            return Ok(None);
        }
        for (num_less, coords) in num_less.iter_mut().zip(&coords) {
            *num_less += count(coords, Ordering::Less);
        }
        // All devices work before the first one is waited for.
        let lens = num_less.iter().zip(num_equal);
        let cuts = parts
            .iter_mut()
            .zip(lens)
            .map(|(part, (&num_less, num_equal))| part.cut(median, num_less, num_equal));
        let cuts = cuts.collect::<Result<Vec<_>>>()?;
        parts.iter_mut().zip(cuts).try_for_each(|(part, points)| part.finish(points))?;
        let id = parts[holder].read_id(num_less[holder])?;
        let mut median = median.to_vec();
        median.rotate_left(1);
        Ok(Some(Self { num_less, holder, median: Some((id, median)) }))
    }
}

/// The points of a group that may have a rank: those with the same bits of the first coordinate.
struct Candidates<C> {
    /// The number of points of each part that come before all candidates.
    num_less: Vec<usize>,
    /// The coordinates of the candidates of each part.
    coords: Vec<Vec<C>>,
}

/// Returns at most [`CUT_MAX_CANDIDATES`] points that may have a rank; `None` if too many have the first coordinate of that point.
fn candidates<C: Float>(parts: &mut [Part<C>], rank: usize) -> Result<Option<Candidates<C>>> {
    let mut num_less = vec![0; parts.len()];
    let mut lens: Vec<_> = parts.iter().map(Part::len).collect();
    let (mut prefix, mut end) = (0u64, C::Key::BITS);
    while lens.iter().sum::<usize>() > CUT_MAX_CANDIDATES {
        if end == 0 {
            return Ok(None);
        }
        let begin = end.saturating_sub(CUT_BITS);
        let counts = read_all(parts.iter_mut().map(|part| part.count_digits(prefix, begin..end)))?;
        let count = |digit: usize| counts.iter().map(|counts| counts[digit] as usize).sum::<usize>();
        let (mut digit, mut before) = (0, num_less.iter().sum::<usize>() + count(0));
        while before <= rank {
            digit += 1;
            before += count(digit);
        }
        for ((num_less, len), counts) in num_less.iter_mut().zip(&mut lens).zip(&counts) {
            *num_less += counts[..digit].iter().map(|&count| count as usize).sum::<usize>();
            *len = counts[digit] as usize;
        }
        (prefix, end) = (prefix | (digit as u64) << begin, begin);
    }
    let sizes = parts.iter_mut().zip(lens);
    let coords = read_all(sizes.map(|(part, len)| part.candidates(prefix, end, len)))?;
    Ok(Some(Candidates { num_less, coords }))
}

/// Returns the results of all parts. All devices work before the first one is waited for.
fn read_all<'a, T: AnyBitPattern>(
    pending: impl Iterator<Item = Result<Pending<'a, T>>>,
) -> Result<Vec<Vec<T>>> {
    pending.collect::<Result<Vec<_>>>()?.into_iter().map(Pending::read).collect()
}

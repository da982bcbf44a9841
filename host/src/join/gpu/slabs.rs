//! Sets cut into slabs across an axis, with about as many points each: a right point is in one of them, a left point in all that a right
//! point near it may be in. These are ranges of the linear curve of cells with the border that Løvik 2020 left open.

use crate::error::Result;
use crate::memory;
use kauri_kernels::thread::coord::Coord;
use rayon::prelude::*;
use std::ops::RangeInclusive;

/// Points that are looked at to say where slabs begin.
const SAMPLE: usize = 1 << 16;
/// Points that one thread sorts at a time.
const SHARE: usize = 1 << 20;

/// Some points of a set, by their ids, which rise.
#[derive(Clone, Debug)]
pub(super) enum Ids {
    /// So many, from the first on.
    First(usize),
    Some(Vec<u32>),
}

impl Ids {
    pub(super) fn len(&self) -> usize {
        match self {
            Self::First(len) => *len,
            Self::Some(ids) => ids.len(),
        }
    }

    pub(super) fn get(&self, i: usize) -> usize {
        match self {
            Self::First(_) => i,
            Self::Some(ids) => ids[i] as usize,
        }
    }

    /// Those from one on, `len` of them.
    pub(super) fn part(&self, begin: usize, len: usize) -> Self {
        Self::Some((begin..begin + len).map(|i| self.get(i) as u32).collect())
    }

    /// Those that are wanted.
    pub(super) fn filter(&self, is_wanted: impl Fn(usize) -> bool + Sync) -> Self {
        let all = (0..self.len()).into_par_iter().map(|i| self.get(i));
        Self::Some(all.filter(|&id| is_wanted(id)).map(|id| id as u32).collect())
    }
}

/// Points of each slab, by parts of the set.
pub(super) struct Lists(Vec<Vec<Vec<u32>>>);

impl Lists {
    /// The points of a slab.
    pub(super) fn ids(&self, slab: usize) -> Ids {
        Ids::Some(self.0.par_iter().flat_map_iter(|lists| lists[slab].iter().copied()).collect())
    }
}

/// Where slabs begin.
#[derive(Debug)]
pub(super) struct Slabs {
    axis: usize,
    begins: Vec<f64>,
    /// So far are points at most that are near each other.
    reach: f64,
}

impl Slabs {
    /// About `num` slabs across the axis that a sample of the points has the largest extent on.
    pub(super) fn new<C: Coord>(
        num: usize,
        dims: usize,
        coords: [&[C]; 2],
        ids: [&Ids; 2],
        reach: f64,
    ) -> Self {
        let stride = (ids[0].len() + ids[1].len()).div_ceil(SAMPLE).max(1);
        let sample = |axis: usize| {
            let of = |set: usize| {
                let places = (0..ids[set].len()).step_by(stride);
                places.map(move |i| coords[set][ids[set].get(i) * dims + axis].to_f64())
            };
            let mut sample: Vec<f64> = of(0).chain(of(1)).collect();
            sample.sort_unstable_by(f64::total_cmp);
            sample
        };
        let extent = |sample: &[f64]| sample.last().map_or(0.0, |last| last - sample[0]);
        let samples = (0..dims).map(|axis| (axis, sample(axis)));
        let longest = samples.max_by(|(_, a), (_, b)| extent(a).total_cmp(&extent(b)));
        let (axis, sample) = longest.unwrap_or_default();
        let mut begins: Vec<f64> = (1..num).map(|slab| sample[slab * sample.len() / num]).collect();
        begins.dedup();
        Self { axis, begins, reach }
    }

    /// Number of slabs.
    pub(super) fn len(&self) -> usize {
        self.begins.len() + 1
    }

    /// The slab of a coordinate on the axis.
    fn slab(&self, x: f64) -> usize {
        self.begins.partition_point(|&begin| begin <= x)
    }

    /// Sorts the points of the right set, or of the left one.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`](crate::Error::OutOfMemory).
    pub(super) fn sort<C: Coord>(
        &self,
        dims: usize,
        coords: &[C],
        ids: &Ids,
        is_left: bool,
    ) -> Result<Lists> {
        memory::check((ids.len() * size_of::<u32>()) as u64, "points of parts of a join")?;
        let slabs = |x: f64| -> RangeInclusive<usize> {
            // A little more than that, for what is rounded.
            let beyond = if is_left { self.reach * (1.0 + 1e-6) } else { 0.0 };
            let [low, high] =
                if is_left { [(x - beyond).next_down(), (x + beyond).next_up()] } else { [x; 2] };
            self.slab(low)..=self.slab(high)
        };
        let shares = (0..ids.len().div_ceil(SHARE)).into_par_iter();
        let sorted = shares.map(|share| {
            // With room for a quarter more than each slab has on average.
            let room = SHARE.min(ids.len()) / self.len() * 5 / 4;
            let mut lists: Vec<_> = (0..self.len()).map(|_| Vec::with_capacity(room)).collect();
            for i in share * SHARE..ids.len().min((share + 1) * SHARE) {
                let id = ids.get(i);
                for slab in slabs(coords[id * dims + self.axis].to_f64()) {
                    lists[slab].push(id as u32);
                }
            }
            lists
        });
        Ok(Lists(sorted.collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_points_share_the_slab_of_the_right_one() {
        let x = |i: usize| (i * 7919 % 1000) as f32 / 10.0;
        let coords: Vec<f32> = (0..1000).flat_map(|i| [0.5, x(i)]).collect();
        let (ids, coords) = (Ids::First(1000), [&coords[..]; 2]);
        for reach in [0.0, 0.05, 3.0, 1e9] {
            let slabs = Slabs::new(7, 2, coords, [&ids, &ids], reach);
            assert_eq!((slabs.axis, slabs.len()), (1, 7));
            let [left, right] = [true, false].map(|is_left| slabs.sort(2, coords[0], &ids, is_left).unwrap());
            let mut seen = 0;
            for slab in 0..7 {
                let [left, right] = [left.ids(slab), right.ids(slab)];
                seen += right.len();
                assert!((100..200).contains(&right.len()), "slabs have as many points: {}", right.len());
                for r in (0..right.len()).map(|i| right.get(i)) {
                    let near = |&l: &usize| f64::from((x(l) - x(r)).abs()) <= reach;
                    let found = (0..left.len()).map(|i| left.get(i)).filter(near).count();
                    assert_eq!(found, (0..1000).filter(near).count());
                }
            }
            assert_eq!(seen, 1000);
        }
    }

    #[test]
    fn points_in_one_place_are_in_one_slab() {
        let (ids, coords) = (Ids::First(10), [&[1.0_f64; 10][..]; 2]);
        let slabs = Slabs::new(4, 1, coords, [&ids, &ids], 0.5);
        let lists = slabs.sort(1, coords[1], &ids, false).unwrap();
        assert_eq!((0..slabs.len()).map(|slab| lists.ids(slab).len()).max(), Some(10));
    }
}

//! Splits two sets of points or boxes into slabs across an axis, with about equal numbers of items. A right item belongs to the slab of its
//! low end, a left item to every slab that may have a right item near it. Slabs are ranges of the linear curve of cells with the border
//! that Løvik 2020 left open.

use crate::error::Result;
use crate::memory;
use kauri_kernels::thread::coord::Float;
use rayon::prelude::*;
use std::ops::{Range, RangeInclusive};

/// Most points of the sample that determines the borders of slabs.
const SAMPLE: usize = 1 << 16;
/// Points that one task distributes to slabs.
const CHUNK: usize = 1 << 20;

/// Some points of a set, by ascending ids.
#[derive(Clone, Debug)]
pub(super) enum Ids {
    /// Consecutive points of the set.
    Range(Range<usize>),
    /// Any points.
    List(Vec<u32>),
}

impl Ids {
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Range(range) => range.len(),
            Self::List(ids) => ids.len(),
        }
    }

    pub(super) fn get(&self, i: usize) -> usize {
        match self {
            Self::Range(range) => range.start + i,
            Self::List(ids) => ids[i] as usize,
        }
    }

    /// Returns the points of a range of indices.
    pub(super) fn part(&self, range: Range<usize>) -> Self {
        match self {
            Self::Range(all) => Self::Range(all.start + range.start..all.start + range.end),
            Self::List(ids) => Self::List(ids[range].to_vec()),
        }
    }

    /// Returns the points that `accepts` accepts.
    pub(super) fn filter(&self, accepts: impl Fn(usize) -> bool + Sync) -> Self {
        let all = (0..self.len()).into_par_iter().map(|i| self.get(i));
        Self::List(all.filter(|&id| accepts(id)).map(|id| id as u32).collect())
    }
}

/// The points of each slab, in a list for each chunk of the set.
pub(super) struct SlabLists(Vec<Vec<Vec<u32>>>);

impl SlabLists {
    /// Returns the number of slabs, or 0 if the set is empty.
    pub(super) fn num_slabs(&self) -> usize {
        self.0.first().map_or(0, Vec::len)
    }

    /// Returns the number of points of a slab.
    pub(super) fn len(&self, slab: usize) -> usize {
        self.0.iter().map(|lists| lists[slab].len()).sum()
    }

    /// Returns the points of a slab.
    pub(super) fn ids(&self, slab: usize) -> Ids {
        Ids::List(self.0.par_iter().flat_map_iter(|lists| lists[slab].iter().copied()).collect())
    }
}

/// Whether slabs share items.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Borders {
    /// A left item belongs to all slabs within reach.
    Overlap,
    /// A right item belongs to one slab.
    Disjoint,
}

/// The borders of slabs along an axis.
#[derive(Debug)]
pub(super) struct Slabs {
    sizes: ItemSizes,
    axis: usize,
    begins: Vec<f64>,
    /// The largest gap of a pair along the axis.
    reach: f64,
    /// The longest extent of a right item along the axis.
    longest_right: f64,
}

/// The coordinates of an item: those of its low corner come first, those of its high corner last. Both are the same for a point.
#[derive(Clone, Copy, Debug)]
pub(super) struct ItemSizes {
    /// Number of dimensions.
    pub(super) dims: usize,
    /// Number of coordinates.
    pub(super) width: usize,
}

impl ItemSizes {
    /// Returns the ends of item `id` along an axis.
    fn ends<C: Float>(self, coords: &[C], id: usize, axis: usize) -> [f64; 2] {
        let Self { dims, width } = self;
        [0, width - dims].map(|corner| coords[id * width + corner + axis].to_f64())
    }
}

impl Slabs {
    /// Makes about `num` slabs across the axis along which a sample of the items has the largest extent.
    pub(super) fn new<C: Float>(
        num: usize,
        sizes: ItemSizes,
        coords: [&[C]; 2],
        ids: [&Ids; 2],
        reach: f64,
    ) -> Self {
        let stride = (ids[0].len() + ids[1].len()).div_ceil(SAMPLE).max(1);
        let sample = |axis: usize| {
            let of = |set: usize| {
                let indices = (0..ids[set].len()).step_by(stride);
                indices.map(move |i| sizes.ends(coords[set], ids[set].get(i), axis)[0])
            };
            let mut sample: Vec<f64> = of(0).chain(of(1)).collect();
            sample.sort_unstable_by(f64::total_cmp);
            sample
        };
        let extent = |sample: &[f64]| sample.last().map_or(0.0, |last| last - sample[0]);
        let samples = (0..sizes.dims).map(|axis| (axis, sample(axis)));
        let longest = samples.max_by(|(_, a), (_, b)| extent(a).total_cmp(&extent(b)));
        let (axis, sample) = longest.unwrap_or_default();
        let mut begins: Vec<f64> = (1..num).map(|slab| sample[slab * sample.len() / num]).collect();
        begins.dedup();
        let longest_right = if sizes.width == sizes.dims {
            0.0
        } else {
            let extents = (0..ids[1].len()).into_par_iter().map(|i| {
                let [low, high] = sizes.ends(coords[1], ids[1].get(i), axis);
                high - low
            });
            extents.reduce(|| 0.0, f64::max)
        };
        Self { sizes, axis, begins, reach, longest_right }
    }

    /// Returns the number of slabs.
    pub(super) fn len(&self) -> usize {
        self.begins.len() + 1
    }

    /// Returns the slab of a coordinate along the axis.
    fn slab(&self, x: f64) -> usize {
        self.begins.partition_point(|&begin| begin <= x)
    }

    /// Distributes the items of the left and the right set to slabs, so that each pair is in one slab.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`](crate::Error::OutOfMemory).
    pub(super) fn distribute_both<C: Float>(
        &self,
        coords: [&[C]; 2],
        ids: [&Ids; 2],
    ) -> Result<[SlabLists; 2]> {
        Ok([
            self.distribute(coords[0], ids[0], Borders::Overlap)?,
            self.distribute(coords[1], ids[1], Borders::Disjoint)?,
        ])
    }

    /// Distributes the items of one set to slabs.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`](crate::Error::OutOfMemory).
    fn distribute<C: Float>(&self, coords: &[C], ids: &Ids, borders: Borders) -> Result<SlabLists> {
        memory::check((ids.len() * size_of::<u32>()) as u64, "points of parts of a join")?;
        let slabs = |[low, high]: [f64; 2]| -> RangeInclusive<usize> {
            // A little more than the reach, because of rounding.
            let margin = 1.0 + 1e-6;
            match borders {
                Borders::Overlap => {
                    let low = low - (self.reach + self.longest_right) * margin;
                    self.slab(low.next_down())..=self.slab((high + self.reach * margin).next_up())
                }
                Borders::Disjoint => self.slab(low)..=self.slab(low),
            }
        };
        let chunks = (0..ids.len().div_ceil(CHUNK)).into_par_iter();
        let lists = chunks.map(|chunk| {
            // A quarter more than the average length.
            let capacity = CHUNK.min(ids.len()) / self.len() * 5 / 4;
            let mut lists: Vec<_> = (0..self.len()).map(|_| Vec::with_capacity(capacity)).collect();
            for i in chunk * CHUNK..ids.len().min((chunk + 1) * CHUNK) {
                let id = ids.get(i);
                for slab in slabs(self.sizes.ends(coords, id, self.axis)) {
                    lists[slab].push(id as u32);
                }
            }
            lists
        });
        Ok(SlabLists(lists.collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_points_share_the_slab_of_the_right_one() {
        let x = |i: usize| (i * 7919 % 1000) as f32 / 10.0;
        let coords: Vec<f32> = (0..1000).flat_map(|i| [0.5, x(i)]).collect();
        let (ids, coords) = (Ids::Range(0..1000), [&coords[..]; 2]);
        for reach in [0.0, 0.05, 3.0, 1e9] {
            let slabs = Slabs::new(7, ItemSizes { dims: 2, width: 2 }, coords, [&ids, &ids], reach);
            assert_eq!((slabs.axis, slabs.len()), (1, 7));
            let [left, right] = [Borders::Overlap, Borders::Disjoint]
                .map(|borders| slabs.distribute(coords[0], &ids, borders).unwrap());
            let mut seen = 0;
            for slab in 0..7 {
                let [left, right] = [left.ids(slab), right.ids(slab)];
                seen += right.len();
                assert!(
                    (100..200).contains(&right.len()),
                    "slabs have about equal numbers of points: {}",
                    right.len()
                );
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
    fn boxes_within_reach_share_the_slab_of_the_right_one() {
        let ends = |i: usize| {
            let low = (i * 7919 % 1000) as f64 / 10.0;
            [low, low + (i % 9) as f64]
        };
        let coords: Vec<f64> = (0..1000).flat_map(ends).collect();
        let (ids, coords) = (Ids::Range(0..1000), [&coords[..]; 2]);
        for reach in [0.0, 3.0] {
            let slabs = Slabs::new(7, ItemSizes { dims: 1, width: 2 }, coords, [&ids, &ids], reach);
            let [left, right] = [Borders::Overlap, Borders::Disjoint]
                .map(|borders| slabs.distribute(coords[0], &ids, borders).unwrap());
            let is_near = |l: usize, r: usize| {
                let [left, right] = [ends(l), ends(r)];
                left[0] - right[1] <= reach && right[0] - left[1] <= reach
            };
            let mut num_pairs = 0;
            for slab in 0..slabs.len() {
                let [left, right] = [left.ids(slab), right.ids(slab)];
                for r in (0..right.len()).map(|i| right.get(i)) {
                    num_pairs += (0..left.len()).filter(|&i| is_near(left.get(i), r)).count();
                }
            }
            let all = (0..1000).map(|r| (0..1000).filter(|&l| is_near(l, r)).count()).sum::<usize>();
            assert_eq!(num_pairs, all);
        }
    }

    #[test]
    fn equal_points_are_in_one_slab() {
        let (ids, coords) = (Ids::Range(0..10), [&[1.0_f64; 10][..]; 2]);
        let slabs = Slabs::new(4, ItemSizes { dims: 1, width: 1 }, coords, [&ids, &ids], 0.5);
        let lists = slabs.distribute(coords[1], &ids, Borders::Disjoint).unwrap();
        assert_eq!((0..slabs.len()).map(|slab| lists.ids(slab).len()).max(), Some(10));
    }
}

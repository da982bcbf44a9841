//! Build by tags: one sort per level (Wald 2022, section 4).

use crate::device::{Layout, Region, Temp};
use crate::error::Result;
use crate::kdtree::gpu::{Algorithm, Build};
use crate::kdtree::options::BuildAlgorithm;
use crate::primitives::generate::iota_on;
use crate::primitives::pairs::{Pairs, empty_view};
use crate::primitives::permute::{Direction, permute_parts};
use crate::primitives::radix_sort::{RadixSort, Shape, SortBy};
use cuda_std::mem::{Slice, SliceMut};
use kauri_kernels::kdtree::tags::{
    kdtree_coordinate_keys, kdtree_first_tags, kdtree_place, kdtree_ranks, kdtree_update_tags,
    kdtree_widest_axes_by_tags,
};
use kauri_kernels::query::left_balanced::{full_tree, num_levels};
use kauri_kernels::thread::coord::Coord;
use std::marker::PhantomData;
use std::mem;

/// The scratch memory of a build.
pub(super) struct Tags<C> {
    num_points: usize,
    dims: usize,
    /// Sorts leave out the nodes that are finished.
    skips_finished: bool,
    /// The lower halves of the sort keys are coordinates, and each level sorts from the order of the ids.
    by_coordinates: bool,
    /// The rank or the coordinate key of each point on each axis, axis by axis.
    ranks: Region<u32>,
    /// Sort keys: coordinates, or tags with ranks. Double-buffered.
    keys: [Region<u64>; 2],
    ids: [Region<u32>; 2],
    sort_axis: RadixSort,
    sort_tags: RadixSort,
    coords: PhantomData<C>,
}

impl<C: Coord> Tags<C> {
    /// Plans a build. Coordinates of 64 bits have no room beside a tag, so their points are ranked.
    pub(super) fn plan(
        layout: &mut Layout,
        num_points: usize,
        dims: usize,
        algorithm: BuildAlgorithm,
    ) -> Self {
        let shapes = [Shape::of::<C::Key, u32>(num_points), Shape::of::<u64, u32>(num_points)];
        let [sort_axis, sort_tags] = RadixSort::plan(layout, num_points, shapes);
        Self {
            num_points,
            dims,
            skips_finished: algorithm == BuildAlgorithm::TagsOfUnfinished,
            by_coordinates: algorithm == BuildAlgorithm::TagsAboveCoordinates
                && size_of::<C::Key>() == size_of::<u32>(),
            ranks: layout.reserve(num_points * dims),
            keys: [layout.reserve(num_points), layout.reserve(num_points)],
            ids: [layout.reserve(num_points), layout.reserve(num_points)],
            sort_axis,
            sort_tags,
            coords: PhantomData,
        }
    }

    /// Returns the two buffers of a sort by keys of type `K`.
    fn pairs<'a, K>(&self, temp: &Temp<'a>) -> [Pairs<'a, K, u32>; 2] {
        [0, 1].map(|i| Pairs { keys: temp.view(self.keys[i].of_type()), values: temp.view(self.ids[i]) })
    }

    /// Returns the ranks of one axis.
    fn axis_ranks<'a>(&self, temp: &Temp<'a>, axis: usize) -> SliceMut<'a, u32> {
        // SAFETY: the plan has ranks for every axis.
        unsafe { temp.view(self.ranks).part(axis * self.num_points, self.num_points) }
    }

    /// Ranks the points on every axis by (coordinate, id), or writes their coordinate keys.
    ///
    /// # Safety
    /// As [`run`](Algorithm::run).
    unsafe fn rank_axes(&self, build: Build<'_, C>) -> Result<()> {
        let Build { temp, coords, .. } = build;
        let num_points = self.num_points;
        let by = SortBy::low_bits(8 * size_of::<C::Key>() as u32);
        for axis in 0..self.dims {
            let [mut pairs, other] = self.pairs::<C::Key>(temp);
            let ranks = self.axis_ranks(temp, axis);
            if self.by_coordinates {
                // SAFETY: these keys have the size of ranks.
                pairs.keys = unsafe { SliceMut::from_raw_parts(ranks.as_ptr().cast(), num_points) };
            }
            let args = (coords, pairs.keys, pairs.values, self.dims as u32, axis as u32);
            // SAFETY: passed on to the caller; all other arrays belong to the plan.
            unsafe {
                temp.stream.launch_items::<kdtree_coordinate_keys<C>>(num_points as u64, args)?;
                if self.by_coordinates {
                    continue;
                }
                let [sorted, _] = self.sort_axis.run(temp, by, pairs.read_only(), [other, pairs])?;
                temp.stream
                    .launch_items::<kdtree_ranks>(num_points as u64, (sorted.values.read_only(), ranks))?;
            }
        }
        Ok(())
    }

    /// Sorts by tag and rank, or by tag, coordinate and id, once per level, and updates every tag to the child. At the end the tag of a point
    /// is its node.
    ///
    /// # Safety
    /// As [`run`](Algorithm::run). The ranks are written.
    unsafe fn sort_levels(&self, build: Build<'_, C>) -> Result<()> {
        let Build { temp, coords, nodes, splits, .. } = build;
        let n = self.num_points;
        let (ranks, axes) = (temp.view(self.ranks).read_only(), splits.read_only());
        let [mut pairs, mut other] = self.pairs::<u64>(temp);
        // SAFETY: passed on to the caller; all other arrays belong to the plan.
        unsafe {
            write_level_axes(build, empty_view().read_only(), 0)?;
            let args = (ranks, axes, pairs.keys, pairs.values);
            temp.stream.launch_items::<kdtree_first_tags>(n as u64, args)?;
            // The last level needs no sort: each of its subtrees is one point.
            for level in 0..num_levels(n as u32) - 1 {
                // Tags of this level are below 2^(level + 1).
                let by = SortBy::low_bits(u32::BITS + level + 1);
                if self.by_coordinates && level > 0 {
                    // The sort is stable, so equal coordinates stay in the order of the ids.
                    let (keys, ids) = (pairs.keys.read_only(), pairs.values.read_only());
                    permute_parts(&temp.stream, Direction::Scatter, 1, keys, ids, other.keys)?;
                    iota_on(&temp.stream, 0, other.values)?;
                    mem::swap(&mut pairs, &mut other);
                }
                // The nodes of the level above are still among the points of their subtrees; the nodes before are at the front.
                let from = if self.skips_finished { full_tree(level.saturating_sub(1)) as usize } else { 0 };
                let [unsorted, to] = [pairs, other].map(|pairs| pairs.part(from, n - from));
                self.sort_tags.run(temp, by, unsorted.read_only(), [to, unsorted])?;
                if by.num_passes() % 2 == 1 {
                    let [to, finished] = [other, pairs].map(|pairs| pairs.part(0, from));
                    temp.stream.copy(to.keys, finished.keys.read_only())?;
                    temp.stream.copy(to.values, finished.values.read_only())?;
                    mem::swap(&mut pairs, &mut other);
                }
                let ids = pairs.values.read_only();
                write_level_axes(build, ids, level + 1)?;
                let args = (pairs.keys, ids, ranks, axes, level);
                temp.stream.launch_items::<kdtree_update_tags>(n as u64, args)?;
            }
            let (keys, ids) = (pairs.keys.read_only(), pairs.values.read_only());
            let args = (keys, ids, coords, nodes, self.dims as u32);
            temp.stream.launch_items::<kdtree_place<C>>(n as u64, args)
        }
    }
}

impl<C: Coord> Algorithm<C> for Tags<C> {
    fn is_in_place(&self) -> bool {
        false
    }

    unsafe fn run(&self, build: Build<'_, C>) -> Result<()> {
        // SAFETY: passed on to the caller.
        unsafe {
            self.rank_axes(build)?;
            self.sort_levels(build)
        }
    }
}

/// Writes the axes of the nodes of a level if nodes split on the widest axis of their cell. The points are sorted by the tags of the level
/// above. Position `i` of that order is point `ids[i]`, or point `i` if `ids` is empty.
///
/// # Safety
/// As [`run`](Algorithm::run).
pub(super) unsafe fn write_level_axes<C: Coord>(
    build: Build<'_, C>,
    ids: Slice<'_, u32>,
    level: u32,
) -> Result<()> {
    let Build { temp, coords, splits, .. } = build;
    let Some(bounds) = splits.bounds else { return Ok(()) };
    let args = (bounds, coords, ids, splits.dims as u32, full_tree(level), splits.axes);
    // SAFETY: passed on to the caller.
    unsafe { temp.stream.launch_items::<kdtree_widest_axes_by_tags<C>>(1 << level, args) }
}

//! Wald's builder: tags and sorting (Wald 2022, section 4).

use crate::device::{Layout, Region, Stream, Temp};
use crate::error::Result;
use crate::kdtree::gpu::Splits;
use crate::primitives::pairs::{Pairs, empty_view};
use crate::primitives::radix_sort::{RadixSort, Shape, SortBy};
use crate::query::gpu::NodesMut;
use cuda_std::mem::{Slice, SliceMut};
use kauri_kernels::kdtree::tags::{
    kdtree_coordinate_keys, kdtree_first_tags, kdtree_place, kdtree_ranks, kdtree_update_tags,
};
use kauri_kernels::query::left_balanced::num_levels;
use kauri_kernels::thread::coord::Coord;
use std::marker::PhantomData;

/// Temporary memory of a build.
pub(crate) struct Tags<C> {
    num_points: usize,
    dims: usize,
    /// For each axis the rank of each point.
    ranks: Region<u32>,
    /// Keys, wide enough for coordinates and for tags with ranks; twice, since sorting moves them to and fro.
    keys: [Region<u64>; 2],
    ids: [Region<u32>; 2],
    sort_axis: RadixSort,
    sort_tags: RadixSort,
    coords: PhantomData<C>,
}

impl<C: Coord> Tags<C> {
    pub(crate) fn plan(layout: &mut Layout, num_points: usize, dims: usize) -> Self {
        let shapes = [Shape::of::<C::Key, u32>(num_points), Shape::of::<u64, u32>(num_points)];
        let [sort_axis, sort_tags] = RadixSort::plan(layout, num_points, shapes);
        Self {
            num_points,
            dims,
            ranks: layout.reserve(num_points * dims),
            keys: [layout.reserve(num_points), layout.reserve(num_points)],
            ids: [layout.reserve(num_points), layout.reserve(num_points)],
            sort_axis,
            sort_tags,
            coords: PhantomData,
        }
    }

    /// The two pairs of arrays for sorting by keys of a type.
    fn pairs<'a, K>(&self, temp: &Temp<'a>) -> [Pairs<'a, K, u32>; 2] {
        [0, 1].map(|i| Pairs { keys: temp.view(self.keys[i].of_type()), values: temp.view(self.ids[i]) })
    }

    /// The ranks of one axis.
    fn axis_ranks<'a>(&self, temp: &Temp<'a>, axis: usize) -> SliceMut<'a, u32> {
        // SAFETY: `axis` is one of the points, and the plan has ranks for each.
        unsafe { temp.view(self.ranks).part(axis * self.num_points, self.num_points) }
    }

    /// Builds the tree over as many points as planned.
    ///
    /// # Safety
    /// Points and nodes are apart, and used by nothing else until the stream has done the work.
    pub(crate) unsafe fn run(
        &self,
        stream: &Stream,
        temp: &Temp<'_>,
        coords: Slice<'_, C>,
        nodes: NodesMut<'_, C>,
        splits: Splits<'_, C>,
    ) -> Result<()> {
        // SAFETY: passed on to the caller.
        unsafe {
            self.rank_axes(stream, temp, coords)?;
            self.sort_and_send_down(stream, temp, coords, nodes, splits)
        }
    }

    /// Ranks the points on every axis by (coordinate, id).
    ///
    /// # Safety
    /// As [`run`](Self::run).
    unsafe fn rank_axes(&self, stream: &Stream, temp: &Temp<'_>, coords: Slice<'_, C>) -> Result<()> {
        let num_points = self.num_points;
        let by = SortBy::low_bits(8 * size_of::<C::Key>() as u32);
        for axis in 0..self.dims {
            let [pairs, room] = self.pairs::<C::Key>(temp);
            let args = (coords, pairs.keys, pairs.values, self.dims as u32, axis as u32);
            // SAFETY: passed on to the caller; all other arrays are the plan's own.
            unsafe {
                stream.launch_items::<kdtree_coordinate_keys<C>>(num_points as u64, args)?;
                let [sorted, _] = self.sort_axis.run(stream, temp, by, pairs.read_only(), [room, pairs])?;
                let ranks = self.axis_ranks(temp, axis);
                stream.launch_items::<kdtree_ranks>(num_points as u64, (sorted.values.read_only(), ranks))?;
            }
        }
        Ok(())
    }

    /// The rounds: sort by tag and rank, send every point one level down; at the end each tag is a place.
    ///
    /// # Safety
    /// As [`run`](Self::run), when points have ranks.
    unsafe fn sort_and_send_down(
        &self,
        stream: &Stream,
        temp: &Temp<'_>,
        coords: Slice<'_, C>,
        nodes: NodesMut<'_, C>,
        splits: Splits<'_, C>,
    ) -> Result<()> {
        let (n, dims) = (self.num_points, self.dims as u32);
        let (ranks, axes) = (temp.view(self.ranks).read_only(), splits.axes);
        let [mut pairs, mut room] = self.pairs::<u64>(temp);
        // SAFETY: passed on to the caller; all other arrays are the plan's own.
        unsafe {
            splits.find_by_tags(stream, coords, empty_view().read_only(), dims, 0)?;
            let args = (ranks, axes.read_only(), dims, pairs.keys, pairs.values);
            stream.launch_items::<kdtree_first_tags>(n as u64, args)?;
            // The last level needs no round: its points are alone in their subtrees.
            for level in 0..num_levels(n as u32) - 1 {
                // Tags of this level are below 2^(level + 1).
                let by = SortBy::low_bits(u32::BITS + level + 1);
                [pairs, room] = self.sort_tags.run(stream, temp, by, pairs.read_only(), [room, pairs])?;
                let ids = pairs.values.read_only();
                splits.find_by_tags(stream, coords, ids, dims, level + 1)?;
                let args = (pairs.keys, ids, ranks, axes.read_only(), dims, level);
                stream.launch_items::<kdtree_update_tags>(n as u64, args)?;
            }
            let (keys, ids) = (pairs.keys.read_only(), pairs.values.read_only());
            let args = (keys, ids, coords, nodes.ids, nodes.coords, dims);
            stream.launch_items::<kdtree_place<C>>(n as u64, args)
        }
    }
}

//! Build by tags in place: a bitonic sort by swaps (Wald 2022; Batcher 1968).

use crate::device::{Layout, Region, Stream, Temp};
use crate::error::Result;
use crate::kdtree::gpu::axes::SplitAxes;
use crate::primitives::pairs::empty_view;
use crate::query::gpu::NodesMut;
use cuda_std::mem::SliceMut;
use kauri_kernels::kdtree::swaps::{
    TILE, kdtree_begin_swaps, kdtree_send_down, kdtree_swap, kdtree_swap_in_tiles, kdtree_tags_to_places,
};
use kauri_kernels::query::left_balanced::num_levels;
use kauri_kernels::thread::coord::Coord;

/// The scratch memory of a build.
pub(crate) struct Swaps {
    tags: Region<u32>,
}

impl Swaps {
    pub(crate) fn plan(layout: &mut Layout, num_points: usize) -> Self {
        Self { tags: layout.reserve(num_points) }
    }

    /// Builds the tree over the points in the memory of the nodes.
    ///
    /// # Safety
    /// The number of points is the planned one, and nothing else uses them until the stream has done the work.
    pub(crate) unsafe fn run<C: Coord>(
        &self,
        stream: &Stream,
        temp: &Temp<'_>,
        dims: usize,
        nodes: NodesMut<'_, C>,
        splits: SplitAxes<'_, C>,
    ) -> Result<()> {
        let tags = temp.view(self.tags);
        let (n, coords, no_ids) = (tags.len() as u64, nodes.coords.read_only(), empty_view().read_only());
        let points = Tagged { nodes, tags, dims: dims as u32, splits };
        // SAFETY: passed on to the caller.
        unsafe {
            stream.launch_items::<kdtree_begin_swaps>(n, (nodes.ids, tags))?;
            splits.write_level_by_tags(stream, coords, no_ids, dims as u32, 0)?;
            // The last level needs no sort: each of its subtrees is one point.
            for level in 0..num_levels(n as u32) - 1 {
                points.sort(stream)?;
                splits.write_level_by_tags(stream, coords, no_ids, dims as u32, level + 1)?;
                stream.launch_items::<kdtree_send_down>(n, (tags, level))?;
            }
            stream.launch_items::<kdtree_tags_to_places>(n, (tags,))?;
            points.sort(stream)
        }
    }
}

/// Points and their tags.
struct Tagged<'a, C> {
    nodes: NodesMut<'a, C>,
    tags: SliceMut<'a, u32>,
    dims: u32,
    splits: SplitAxes<'a, C>,
}

impl<C: Coord> Tagged<'_, C> {
    /// Sorts the points by tag, coordinate and id.
    ///
    /// # Safety
    /// Nodes, tags and axes do not overlap and have one number of points. Nothing else uses them until the stream has done the work.
    unsafe fn sort(&self, stream: &Stream) -> Result<()> {
        let NodesMut { coords, ids } = self.nodes;
        let (tags, axes, dims) = (self.tags, self.splits.axes.read_only(), self.dims);
        let (n, tile) = (tags.len() as u64, TILE as u64);
        let in_tiles = |first: bool| {
            let args = (coords, ids, tags, axes, dims, u32::from(first));
            // SAFETY: passed on to the caller.
            unsafe { stream.launch::<kdtree_swap_in_tiles<C>>(n.div_ceil(tile), args) }
        };
        let swap = |stride: u64, mirrors: bool| {
            let args = (coords, ids, tags, axes, dims, stride, u32::from(mirrors));
            // SAFETY: passed on to the caller.
            unsafe { stream.launch_items::<kdtree_swap<C>>(n.div_ceil(2 * stride) * stride, args) }
        };
        in_tiles(true)?;
        // Merges two sorted halves: the first step compares with the mirrored second half, the others halve the stride.
        let mut half = tile;
        while half < n {
            swap(half, true)?;
            let mut stride = half / 2;
            while stride >= tile {
                swap(stride, false)?;
                stride /= 2;
            }
            in_tiles(false)?;
            half *= 2;
        }
        Ok(())
    }
}

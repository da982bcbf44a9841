//! Wald's builder in the memory of the points: sorts by swaps alone.

use crate::device::{Layout, Region, Stream, Temp};
use crate::error::Result;
use crate::kdtree::gpu::Splits;
use crate::primitives::pairs::empty_view;
use crate::query::gpu::NodesMut;
use cuda_std::mem::SliceMut;
use kauri_kernels::kdtree::swaps::{
    TILE, kdtree_begin_swaps, kdtree_send_down, kdtree_swap, kdtree_swap_in_tiles, kdtree_tags_to_places,
};
use kauri_kernels::query::left_balanced::num_levels;
use kauri_kernels::thread::coord::Coord;

/// Temporary memory of a build.
pub(crate) struct Swaps {
    tags: Region<u32>,
}

impl Swaps {
    pub(crate) fn plan(layout: &mut Layout, num_points: usize) -> Self {
        Self { tags: layout.reserve(num_points) }
    }

    /// Builds the tree over points that are where the nodes will be.
    ///
    /// # Safety
    /// There are as many as planned, and nothing else uses them until the stream has done the work.
    pub(crate) unsafe fn run<C: Coord>(
        &self,
        stream: &Stream,
        temp: &Temp<'_>,
        dims: usize,
        nodes: NodesMut<'_, C>,
        splits: Splits<'_, C>,
    ) -> Result<()> {
        let tags = temp.view(self.tags);
        let (n, coords, no_ids) = (tags.len() as u64, nodes.coords.read_only(), empty_view().read_only());
        let points = Tagged { nodes, tags, dims: dims as u32, splits };
        // SAFETY: passed on to the caller.
        unsafe {
            stream.launch_items::<kdtree_begin_swaps>(n, (nodes.ids, tags))?;
            splits.find_by_tags(stream, coords, no_ids, dims as u32, 0)?;
            // The last level needs no round: its points are alone in their subtrees.
            for level in 0..num_levels(n as u32) - 1 {
                points.sort(stream)?;
                splits.find_by_tags(stream, coords, no_ids, dims as u32, level + 1)?;
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
    splits: Splits<'a, C>,
}

impl<C: Coord> Tagged<'_, C> {
    /// Sorts them by tag, coordinate and id.
    ///
    /// # Safety
    /// Nodes, tags and axes are apart, of one number of points, and used by nothing else until the stream has done the work.
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
        // Two sorted halves at a time: mirrored the second, then by shorter and shorter strides.
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

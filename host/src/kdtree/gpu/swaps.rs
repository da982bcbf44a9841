//! Build by tags in place: a bitonic sort by swaps (Wald 2022; Batcher 1968).

use crate::device::{Layout, Region, Stream};
use crate::error::Result;
use crate::kdtree::gpu::tags::write_level_axes;
use crate::kdtree::gpu::{Algorithm, Build};
use crate::primitives::generate::iota_on;
use crate::primitives::pairs::empty_view;
use kauri_kernels::kdtree::swaps::{
    TILE, Tagged, kdtree_send_down, kdtree_swap, kdtree_swap_in_tiles, kdtree_tags_to_places,
};
use kauri_kernels::query::left_balanced::num_levels;
use kauri_kernels::thread::coord::Coord;

/// The scratch memory of a build.
pub(super) struct Swaps {
    tags: Region<u32>,
}

impl Swaps {
    pub(super) fn plan(layout: &mut Layout, num_points: usize) -> Self {
        Self { tags: layout.reserve(num_points) }
    }
}

impl<C: Coord> Algorithm<C> for Swaps {
    fn is_in_place(&self) -> bool {
        true
    }

    unsafe fn run(&self, build: Build<'_, C>) -> Result<()> {
        let Build { temp, nodes, splits, .. } = build;
        let tags = temp.view(self.tags);
        let (n, no_ids) = (tags.len() as u64, empty_view().read_only());
        let points = Tagged { coords: nodes.coords, ids: nodes.ids, tags, axes: splits.read_only() };
        // SAFETY: passed on to the caller.
        unsafe {
            // All points are in the subtree of the root.
            iota_on(&temp.stream, 0, nodes.ids)?;
            temp.clear(self.tags)?;
            write_level_axes(build, no_ids, 0)?;
            // The last level needs no sort: each of its subtrees is one point.
            for level in 0..num_levels(n as u32) - 1 {
                sort(&temp.stream, points)?;
                write_level_axes(build, no_ids, level + 1)?;
                temp.stream.launch_items::<kdtree_send_down>(n, (tags, level))?;
            }
            temp.stream.launch_items::<kdtree_tags_to_places>(n, (tags,))?;
            sort(&temp.stream, points)
        }
    }
}

/// Sorts points by tag, coordinate and id.
///
/// # Safety
/// Points and tags have one number of points. Nothing else uses them until the stream has done the work.
unsafe fn sort<C: Coord>(stream: &Stream, points: Tagged<'_, C>) -> Result<()> {
    let (n, tile) = (points.tags.len() as u64, TILE as u64);
    let in_tiles = |first: bool| {
        // SAFETY: passed on to the caller.
        unsafe { stream.launch::<kdtree_swap_in_tiles<C>>(n.div_ceil(tile), (points, u32::from(first))) }
    };
    let swap = |stride: u64, mirrors: bool| {
        let args = (points, stride, u32::from(mirrors));
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

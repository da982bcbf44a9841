//! On which axes nodes split.

use crate::device::{Layout, Region, Stream, Temp};
use crate::error::Result;
use crate::kdtree::SplitRule;
use crate::point::with_dims;
use crate::primitives::bounds::Bounds;
use cuda_std::mem::{Slice, SliceMut};
use kauri_kernels::kdtree::axes::kdtree_widest_axes_by_tags;
use kauri_kernels::query::left_balanced::full_tree;
use kauri_kernels::thread::coord::Coord;

/// What a builder goes by.
#[derive(Clone, Copy)]
pub(crate) struct Splits<'a, C> {
    /// The box of all points, if nodes split on the widest axis of their cell.
    pub(crate) corners: Option<Slice<'a, C>>,
    /// Then room for the axes of nodes that have children.
    pub(crate) axes: SliceMut<'a, u8>,
}

impl<C: Coord> Splits<'_, C> {
    /// Finds the axes of the nodes of a level, if they are the widest of cells, of points sorted by tags on the level above;
    /// coordinates are in the order of `ids`, or if there are none of the points.
    ///
    /// # Safety
    /// Nothing else uses points and axes until the stream has done the work.
    pub(crate) unsafe fn find_by_tags(
        self,
        stream: &Stream,
        coords: Slice<'_, C>,
        ids: Slice<'_, u32>,
        dims: u32,
        level: u32,
    ) -> Result<()> {
        let Some(corners) = self.corners else { return Ok(()) };
        let args = (corners, coords, ids, dims, full_tree(level), self.axes);
        // SAFETY: passed on to the caller.
        unsafe { stream.launch_items::<kdtree_widest_axes_by_tags<C>>(1 << level, args) }
    }
}

/// The box of all points.
pub(crate) struct Corners<C: Coord> {
    bounds: Bounds<C>,
    corners: Region<C>,
}

impl<C: Coord> Corners<C> {
    /// Plans it if the rule needs it.
    pub(crate) fn plan(layout: &mut Layout, dims: usize, rule: SplitRule) -> Option<Self> {
        match rule {
            SplitRule::RoundRobin => None,
            SplitRule::Widest => {
                Some(Self { bounds: Bounds::plan(layout, dims), corners: layout.reserve(2 * dims) })
            }
        }
    }

    /// Finds the corners.
    ///
    /// # Safety
    /// The points have as many dimensions as planned and are used by nothing else until the stream has done the work.
    pub(crate) unsafe fn run<'a>(
        &self,
        stream: &Stream,
        temp: &Temp<'a>,
        coords: Slice<'_, C>,
        dims: usize,
    ) -> Result<Slice<'a, C>> {
        let corners = temp.view(self.corners);
        // SAFETY: passed on to the caller.
        with_dims!(dims, D => unsafe { self.bounds.run::<D>(stream, temp, coords, corners) })?;
        Ok(corners.read_only())
    }
}

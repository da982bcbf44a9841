//! Split axes of the nodes.

use crate::device::{Layout, Region, Stream, Temp};
use crate::error::Result;
use crate::kdtree::options::SplitRule;
use crate::point::with_dims;
use crate::primitives::bounds::Bounds;
use cuda_std::mem::{Slice, SliceMut};
use kauri_kernels::kdtree::axes::kdtree_widest_axes_by_tags;
use kauri_kernels::query::left_balanced::full_tree;
use kauri_kernels::thread::coord::Coord;

/// The split axes that a build reads and writes.
#[derive(Clone, Copy)]
pub(crate) struct SplitAxes<'a, C> {
    /// The low and the high corner of the bounding box of all points, if nodes split on the widest axis of their cell.
    pub(crate) bounds: Option<Slice<'a, C>>,
    /// The axes of the inner nodes; empty if the axis follows from the level.
    pub(crate) axes: SliceMut<'a, u8>,
}

impl<C: Coord> SplitAxes<'_, C> {
    /// Writes the axes of the nodes of a level if nodes split on the widest axis of their cell. The points are sorted by the tags of the
    /// level above. Position `i` of that order is point `ids[i]`, or point `i` if `ids` is empty.
    ///
    /// # Safety
    /// Nothing else uses points and axes until the stream has done the work.
    pub(crate) unsafe fn write_level_by_tags(
        self,
        stream: &Stream,
        coords: Slice<'_, C>,
        ids: Slice<'_, u32>,
        dims: u32,
        level: u32,
    ) -> Result<()> {
        let Some(bounds) = self.bounds else { return Ok(()) };
        let args = (bounds, coords, ids, dims, full_tree(level), self.axes);
        // SAFETY: passed on to the caller.
        unsafe { stream.launch_items::<kdtree_widest_axes_by_tags<C>>(1 << level, args) }
    }
}

/// The reduction that computes the bounding box of all points.
pub(crate) struct PointBounds<C: Coord> {
    bounds: Bounds<C>,
    corners: Region<C>,
}

impl<C: Coord> PointBounds<C> {
    /// Reserves scratch memory if the split rule needs the bounding box.
    pub(crate) fn plan(layout: &mut Layout, dims: usize, rule: SplitRule) -> Option<Self> {
        match rule {
            SplitRule::RoundRobin => None,
            SplitRule::Widest => {
                Some(Self { bounds: Bounds::plan(layout, dims), corners: layout.reserve(2 * dims) })
            }
        }
    }

    /// Computes the low and the high corner.
    ///
    /// # Safety
    /// `dims` is the planned number of dimensions, and nothing else uses the points until the stream has done the work.
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

//! Split axes of the nodes.

use crate::device::{Layout, Region, Stream, Temp};
use crate::error::Result;
use crate::kdtree::options::SplitRule;
use crate::primitives::bounds::Bounds;
use cuda_std::mem::{Slice, SliceMut};
use kauri_kernels::kdtree::axes::kdtree_varying_axes;
use kauri_kernels::policy::{PER_ITEM_THREADS, VARYING_MAX_BLOCKS};
use kauri_kernels::query::axes::Axes;
use kauri_kernels::thread::coord::Coord;

/// The split axes that a build reads and writes.
#[derive(Clone, Copy)]
pub(crate) struct SplitAxes<'a, C> {
    pub(crate) dims: usize,
    /// The low and the high corner of the bounding box of all points, if nodes split on the widest axis of their cell.
    pub(crate) bounds: Option<Slice<'a, C>>,
    /// The axes of the inner nodes; empty if levels split on axes in turn.
    pub(crate) axes: SliceMut<'a, u8>,
    /// The bit mask of the axes that levels split on in turn; empty for all axes.
    pub(crate) varying: Slice<'a, u32>,
}

impl<'a, C: Coord> SplitAxes<'a, C> {
    /// Returns the axes for kernels that read them.
    pub(crate) fn read_only(self) -> Axes<'a> {
        Axes { axes: self.axes.read_only(), varying: self.varying, dims: self.dims as u32 }
    }
}

/// Writes the bit mask of the axes on which the points are not all equal, unless `varying` is empty.
///
/// # Safety
/// Nothing else uses points and mask until the stream has done the work.
pub(crate) unsafe fn write_varying_axes<C: Coord>(
    stream: &Stream,
    coords: Slice<'_, C>,
    dims: usize,
    varying: SliceMut<'_, u32>,
) -> Result<()> {
    if varying.is_empty() {
        return Ok(());
    }
    let num_blocks = (coords.len() / dims).div_ceil(PER_ITEM_THREADS).min(VARYING_MAX_BLOCKS);
    // SAFETY: passed on to the caller.
    unsafe {
        stream.fill_bytes(varying, 0)?;
        let args = (coords, dims as u32, varying);
        stream.launch::<kdtree_varying_axes<C>>(num_blocks as u64, args)
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
        temp: &Temp<'a>,
        coords: Slice<'_, C>,
        dims: usize,
    ) -> Result<Slice<'a, C>> {
        let corners = temp.view(self.corners);
        // SAFETY: passed on to the caller.
        unsafe { self.bounds.run(temp, coords, dims, corners)? };
        Ok(corners.read_only())
    }
}

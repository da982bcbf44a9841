//! Queries and results in device memory.

use crate::device::{Buffer, Stream};
use crate::error::{Result, check_count, check_len};
use crate::point::{DistanceOf, MAX_POINTS, PerCoordinate, Point, dims};
use crate::query::gpu::device_options::DeviceOptions;
use kauri_kernels::thread::coord::Coord;
use std::marker::PhantomData;
use std::sync::Arc;

/// Queries in device memory, for [`nearest_on`](crate::query::DeviceIndex::nearest_on) and the other calls of [`DeviceIndex`](crate::query::DeviceIndex).
///
/// ```
/// use kauri::device::{Buffer, Stream, Workspace};
/// use kauri::query::{DeviceIndex, DeviceQueries, QueryOptions};
/// use kauri::{Device, KdTree, KdTreeOptions};
/// # fn main() -> kauri::Result<()> {
/// let device = Device::best()?;
/// let Some(gpu) = device.gpu() else { return Ok(()) }; // only GPUs have device memory
/// let (stream, mut workspace) = (Stream::new(gpu)?, Workspace::new(gpu));
/// let coords = Buffer::from_slice(&stream, &[0.0f32, 0.0, 3.0, 4.0, 1.0, 0.0], "points")?;
/// let tree = KdTree::<[f32; 2]>::build_on(&stream, &mut workspace, &coords, &KdTreeOptions::default())?;
///
/// // The two nearest points of every point, in device memory.
/// let prepared = tree.prepare(&stream, &QueryOptions::default())?;
/// let mut ids = Buffer::uninitialized(gpu, 3 * 2, "ids")?;
/// let mut dist2 = Buffer::uninitialized(gpu, 3 * 2, "distances")?;
/// let queries = DeviceQueries::Coordinates(&coords);
/// tree.nearest_on(&stream, &mut workspace, queries, 2, &prepared, &mut ids, &mut dist2)?;
/// assert_eq!(ids.to_vec(&stream)?, [0, 2, 1, 2, 2, 0]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug)]
pub enum DeviceQueries<'a, C> {
    /// The coordinates of points, point after point; each has a row of the result.
    Coordinates(&'a Buffer<C>),
    /// All points of the tree; the row of a point is its id. The first such query after a change of a
    /// [`DynamicKdTree`](crate::DynamicKdTree) copies the points to the order of their ids, and waits for the device.
    SelfQuery {
        /// A point is its own neighbor; otherwise it is excluded from its row.
        include_self: bool,
    },
}

/// [`QueryOptions`](crate::QueryOptions) that were validated for a tree and copied to its GPU: what
/// [`prepare`](crate::query::DeviceIndex::prepare) returns. [`DeviceQueries`] has an example.
///
/// Other trees refuse them with [`Error::OtherTree`](crate::Error::OtherTree). A k-d tree and a balanced tree still accept them after
/// [`KdTree::rebuild_on`](crate::KdTree::rebuild_on) and [`BalancedKdTree::rebuild_on`](crate::BalancedKdTree::rebuild_on), which keep the
/// number of points; a [`DynamicKdTree`](crate::DynamicKdTree) refuses them after a change, and a quadtree after [`CellTree::rebuild_on`](crate::quadtree::CellTree::rebuild_on).
pub struct PreparedQuery<P: Point> {
    pub(crate) options: DeviceOptions<DistanceOf<P>>,
    /// The identity of the index.
    pub(crate) index: Arc<()>,
    pub(crate) points: PhantomData<fn() -> P>,
}

impl<P: Point> std::fmt::Debug for PreparedQuery<P> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PreparedQuery").finish_non_exhaustive()
    }
}

/// The result of a range query in device memory, within a distance or in boxes: what
/// [`all_within_on`](crate::query::DeviceIndex::all_within_on) and [`all_in_boxes_on`](crate::query::DeviceIndex::all_in_boxes_on) return. [`Rows`](crate::Rows) is the same result in host memory.
#[derive(Debug)]
#[non_exhaustive]
pub struct DeviceWithin<C> {
    /// Where each row begins, and where the last one ends: one more than rows.
    pub offsets: Buffer<u64>,
    /// The ids of all rows, row after row; within a row in the order of the tree.
    pub ids: Buffer<u32>,
    /// The distances of all rows, as [`Neighbor::dist2`](crate::Neighbor::dist2); empty for boxes.
    pub dist2: Buffer<C>,
}

/// Returns the number of points that a call found, the last of its offsets. Waits for the stream.
///
/// If it exceeds the capacity of the ids that the call was given, the points beyond were not written: allocate that many ids and call
/// again.
///
/// # Errors
/// [`Error::Shape`](crate::Error::Shape) for no offsets at all; [`Error::WrongDevice`](crate::Error::WrongDevice); the driver's.
pub fn num_found(stream: &Stream, offsets: &Buffer<u64>) -> Result<u64> {
    let end = offsets.len().max(1);
    Ok(offsets.part_to_vec(stream, end - 1..end)?[0])
}

/// Coordinates in device memory, for each type of coordinates.
pub(crate) struct BufferRef<'a>(PhantomData<&'a ()>);

impl<'a> PerCoordinate for BufferRef<'a> {
    type Of<C: Coord> = &'a Buffer<C>;
}

/// Returns the number of points with these coordinates.
pub(crate) fn num_points<P: Point>(coords: &Buffer<P::Coord>) -> Result<usize> {
    let num_points = coords.len() / dims::<P>();
    check_len("coordinates of the points", num_points * P::DIMS, coords.len())?;
    check_count("points", num_points as u64, MAX_POINTS)?;
    Ok(num_points)
}

/// A range query in device memory: a row of points for each query or box.
#[derive(Clone, Copy)]
pub(crate) enum DeviceRangeQuery<'a, C: Coord> {
    /// The points within the options' bound of each query.
    Within(&'a DeviceOptions<C::Distance>, DeviceQueries<'a, C>),
    /// The points of the options' mask in each box, which is its least and then its greatest corner.
    InBoxes(&'a DeviceOptions<C::Distance>, &'a Buffer<C>),
}

//! Queries and results in device memory.

use crate::device::{Buffer, Stream};
use crate::error::Result;
use crate::point::Point;
use crate::query::gpu::device_options::DeviceOptions;
use std::marker::PhantomData;
use std::sync::Arc;

/// Queries in device memory.
#[derive(Clone, Copy, Debug)]
pub enum DeviceQueries<'a, C> {
    /// The coordinates of these points, point after point, a row of the result each.
    Coordinates(&'a Buffer<C>),
    /// The points of the tree, each of which is a query: the row of a point is that of its id.
    Own {
        /// A point is a neighbor of its own; otherwise it is left out of its row.
        itself: bool,
    },
}

/// [`QueryOptions`](crate::QueryOptions) checked for a tree, with what a GPU reads of them in its memory. Another tree refuses them; the tree itself takes
/// them also after [`KdTree::rebuild_on`](crate::KdTree::rebuild_on), which keeps the number of points.
pub struct PreparedQuery<P: Point> {
    pub(crate) asked: DeviceOptions<P::Coord>,
    pub(crate) tree: Identity,
    pub(crate) points: PhantomData<fn() -> P>,
}

/// Tells a tree from all others, dropped ones included.
#[derive(Clone)]
pub(crate) struct Identity(pub(crate) Arc<()>);

impl Identity {
    pub(crate) fn new() -> Self {
        Self(Arc::new(()))
    }
}

impl<P: Point> std::fmt::Debug for PreparedQuery<P> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PreparedQuery").finish_non_exhaustive()
    }
}

/// The points found by each query or in each box, in device memory, as [`Rows`](crate::Rows) has them in host memory.
#[derive(Debug)]
#[non_exhaustive]
pub struct DeviceWithin<C> {
    /// Where each row begins, and where the last ends: one more than rows.
    pub offsets: Buffer<u64>,
    /// All ids, row after row; those of a row are in the order of the tree.
    pub ids: Buffer<u32>,
    /// All distances, as [`Neighbors::dist2`](crate::Neighbors::dist2) has them; none of points in boxes.
    pub dist2: Buffer<C>,
}

/// The number of points that a call found, for which there was room or not: the last of its offsets. Above the number of ids
/// that there was room for, some are missing: give room for as many, and call again. Waits for the stream.
///
/// # Errors
/// [`Error::Shape`](crate::Error::Shape) for no offsets at all; [`Error::WrongDevice`](crate::Error::WrongDevice); the driver's.
pub fn num_found(stream: &Stream, offsets: &Buffer<u64>) -> Result<u64> {
    let end = offsets.len().max(1);
    Ok(offsets.part_to_vec(stream, end - 1..end)?[0])
}

/// What points are looked for by, a row each.
#[derive(Clone, Copy)]
pub(crate) enum DeviceRangeQuery<'a, C> {
    /// A distance from queries, by options.
    Within(&'a DeviceOptions<C>, DeviceQueries<'a, C>),
    /// Boxes: the least and then the greatest coordinates of each, and of the options the mask.
    InBoxes(&'a DeviceOptions<C>, &'a Buffer<C>),
}

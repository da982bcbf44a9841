//! Range queries in device memory: the points within a distance of queries, and the points in boxes. The caller chooses the capacity of
//! the result buffers, or the call allocates buffers of the exact size.

use crate::device::{Buffer, Stream, Workspace};
use crate::error::Result;
use crate::kdtree::KdTree;
use crate::point::{DistanceOf, Point};
use crate::query::backend::{DeviceRange, DeviceRows};
use crate::query::on_device::{DeviceQueries, DeviceRangeQuery, DeviceWithin, PreparedQuery};
use kauri_kernels::thread::coord::Coord;

/// The prepared options hold the radius ([`QueryOptions::radius`](crate::QueryOptions::radius), required), the mask, the norm and the
/// periods. Rows are in the order of the tree, even if the options are `sorted`.
impl<P: Point> KdTree<P> {
    /// Counts the points within the radius of every query (inclusive), as
    /// [`SpatialIndex::count_within`](crate::SpatialIndex::count_within) does, in device memory. `counts` has one item per query.
    ///
    /// The call does not wait for the host. It allocates nothing if the workspace was used for that many queries before.
    ///
    /// # Errors
    /// [`Error::NotOnGpu`](crate::Error::NotOnGpu); [`Error::OtherTree`](crate::Error::OtherTree) if the options were prepared for another
    /// tree; [`Error::NoRadius`](crate::Error::NoRadius); [`Error::Shape`](crate::Error::Shape) if lengths do not agree;
    /// [`Error::WrongDevice`](crate::Error::WrongDevice); [`Error::OutOfMemory`](crate::Error::OutOfMemory); errors of the driver.
    pub fn count_within_on(
        &self,
        stream: &Stream,
        workspace: &mut Workspace,
        queries: DeviceQueries<'_, P::Coord>,
        prepared: &PreparedQuery<P>,
        counts: &mut Buffer<u32>,
    ) -> Result<()> {
        let query = DeviceRangeQuery::Within(&prepared.options, queries);
        self.prepared_tree(prepared)?.count_on(DeviceRange { stream, workspace, query }, counts)
    }

    /// Finds the points within the radius of every query (inclusive), up to the capacity of `ids`, as
    /// [`SpatialIndex::within`](crate::SpatialIndex::within) does, in device memory.
    ///
    /// - `offsets` has one item more than there are queries. Row `i` is `offsets[i]..offsets[i + 1]`, whatever the capacity is; the last
    ///   offset is the number of points found ([`num_found`](crate::query::num_found)).
    /// - `ids` may have any length. Result `i`, counted over all rows, is written to `ids[i]` if `i` is less than that length, and
    ///   dropped otherwise. Items after the last result are unchanged.
    /// - `dist2` receives the squared distances. It has the length of `ids`.
    ///
    /// The call does not wait for the host. It allocates nothing if the workspace was used for that many queries before. Scratch memory:
    /// 4 bytes per query, and 16 more to sort the queries, unless they are coherent or are the points of the tree.
    ///
    /// # Errors
    /// The errors of [`count_within_on`](KdTree::count_within_on).
    #[allow(clippy::too_many_arguments)]
    pub fn within_on(
        &self,
        stream: &Stream,
        workspace: &mut Workspace,
        queries: DeviceQueries<'_, P::Coord>,
        prepared: &PreparedQuery<P>,
        offsets: &mut Buffer<u64>,
        ids: &mut Buffer<u32>,
        dist2: Option<&mut Buffer<DistanceOf<P>>>,
    ) -> Result<()> {
        let query = DeviceRangeQuery::Within(&prepared.options, queries);
        let rows = DeviceRows { offsets, ids, dist2 };
        self.prepared_tree(prepared)?.find_on(DeviceRange { stream, workspace, query }, rows)
    }

    /// Finds the points within the radius of every query with their distances, in buffers of the exact size. The call waits for the number
    /// of points found, and then allocates. The result is complete when the stream has done the work.
    ///
    /// Memory: 4 bytes and one coordinate per point found, 8 bytes per query, and the scratch memory of [`within_on`](KdTree::within_on).
    ///
    /// # Errors
    /// The errors of [`count_within_on`](KdTree::count_within_on); [`Error::ResultTooLarge`](crate::Error::ResultTooLarge), with the number
    /// of points found, if the device has no memory for them.
    pub fn all_within_on(
        &self,
        stream: &Stream,
        workspace: &mut Workspace,
        queries: DeviceQueries<'_, P::Coord>,
        prepared: &PreparedQuery<P>,
    ) -> Result<DeviceWithin<DistanceOf<P>>> {
        let query = DeviceRangeQuery::Within(&prepared.options, queries);
        self.prepared_tree(prepared)?.find_all_on(DeviceRange { stream, workspace, query })
    }
}

/// `boxes` has the low and then the high corner of each box, one box after another; boxes include their borders. The host does not check
/// them. A box with a NaN coordinate contains no points. Only the mask of the prepared options is used.
/// [`LonLat`](crate::LonLat) points have no box queries.
impl<C: Coord, const D: usize> KdTree<[C; D]>
where
    [C; D]: Point<Coord = C>,
{
    /// Counts the points in every box, as [`SpatialIndex::count_in_boxes`](crate::SpatialIndex::count_in_boxes) does, in device memory.
    /// `counts` has one item per box.
    ///
    /// # Errors
    /// The errors of [`count_within_on`](KdTree::count_within_on), except for the radius.
    pub fn count_in_boxes_on(
        &self,
        stream: &Stream,
        workspace: &mut Workspace,
        boxes: &Buffer<C>,
        prepared: &PreparedQuery<[C; D]>,
        counts: &mut Buffer<u32>,
    ) -> Result<()> {
        let query = DeviceRangeQuery::InBoxes(&prepared.options, boxes);
        self.prepared_tree(prepared)?.count_on(DeviceRange { stream, workspace, query }, counts)
    }

    /// Finds the points in every box, up to the capacity of `ids`, as [`SpatialIndex::in_boxes`](crate::SpatialIndex::in_boxes) does, in
    /// device memory. [`within_on`](KdTree::within_on) describes `offsets` and `ids`. Scratch memory: 4 bytes per box.
    ///
    /// # Errors
    /// The errors of [`count_in_boxes_on`](KdTree::count_in_boxes_on).
    pub fn in_boxes_on(
        &self,
        stream: &Stream,
        workspace: &mut Workspace,
        boxes: &Buffer<C>,
        prepared: &PreparedQuery<[C; D]>,
        offsets: &mut Buffer<u64>,
        ids: &mut Buffer<u32>,
    ) -> Result<()> {
        let query = DeviceRangeQuery::InBoxes(&prepared.options, boxes);
        let rows = DeviceRows { offsets, ids, dist2: None };
        self.prepared_tree(prepared)?.find_on(DeviceRange { stream, workspace, query }, rows)
    }

    /// Finds the points in every box, in buffers of the exact size. The call waits for the number of points found, and then allocates. The
    /// result is complete when the stream has done the work.
    ///
    /// # Errors
    /// The errors of [`count_in_boxes_on`](KdTree::count_in_boxes_on); [`Error::ResultTooLarge`](crate::Error::ResultTooLarge), with the
    /// number of points found, if the device has no memory for them.
    pub fn all_in_boxes_on(
        &self,
        stream: &Stream,
        workspace: &mut Workspace,
        boxes: &Buffer<C>,
        prepared: &PreparedQuery<[C; D]>,
    ) -> Result<DeviceWithin<C::Distance>> {
        let query = DeviceRangeQuery::InBoxes(&prepared.options, boxes);
        self.prepared_tree(prepared)?.find_all_on(DeviceRange { stream, workspace, query })
    }
}

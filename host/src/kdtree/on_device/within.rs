//! The points within a distance of queries and in boxes, in buffers: of the caller's size, or of the size of what is found.

use crate::device::{Buffer, Stream, Workspace};
use crate::error::Result;
use crate::kdtree::KdTree;
use crate::point::Point;
use crate::query::on_device::{DeviceQueries, DeviceRangeQuery, DeviceWithin, PreparedQuery};
use kauri_kernels::thread::coord::Coord;

/// The prepared options hold the query: the radius of [`QueryOptions::radius`](crate::QueryOptions::radius), which
/// there has to be, the mask, norm and periods. Rows are in the order of the tree, also of options that are `sorted`.
impl<P: Point> KdTree<P> {
    /// The number of points within the radius of every query, its border included: as [`SpatialIndex::count_within`](crate::SpatialIndex::count_within), in device memory.
    /// One of `counts` a query.
    ///
    /// Nothing waits for the host, and once the workspace has been used for as many queries nothing is allocated.
    ///
    /// # Errors
    /// [`Error::NotOnGpu`](crate::Error::NotOnGpu); [`Error::OtherTree`](crate::Error::OtherTree) if the options were prepared for another
    /// tree; [`Error::NoRadius`](crate::Error::NoRadius); [`Error::Shape`](crate::Error::Shape) if lengths do not agree;
    /// [`Error::WrongDevice`](crate::Error::WrongDevice); [`Error::OutOfMemory`](crate::Error::OutOfMemory); the driver's.
    pub fn count_within_on(
        &self,
        stream: &Stream,
        workspace: &mut Workspace,
        queries: DeviceQueries<'_, P::Coord>,
        prepared: &PreparedQuery<P>,
        counts: &mut Buffer<u32>,
    ) -> Result<()> {
        let (tree, options) = (self.prepared_tree(prepared)?, &prepared.options);
        tree.count_on(stream, workspace, DeviceRangeQuery::Within(options, queries), counts)
    }

    /// The points within the radius of every query, its border included, as far as there is room: as [`SpatialIndex::within`](crate::SpatialIndex::within), in
    /// device memory.
    ///
    /// - `offsets`, one more than queries, are set to where each row begins and the last ends, whatever there is room for: the
    ///   last is the number of points found ([`num_found`](crate::query::num_found)).
    /// - `ids` may have any length. Point `i` of all rows goes to `ids[i]` if there is that item, and is left out otherwise; items
    ///   behind the last point are not touched.
    /// - `dist2`, if distances are wanted, has the length of `ids`.
    ///
    /// Nothing waits for the host, and once the workspace has been used for as many queries nothing is allocated. Memory beside
    /// the buffers: 4 bytes a query, and 16 more to put queries in the order of the tree unless they are coherent or its own.
    ///
    /// # Errors
    /// Those of [`count_within_on`](KdTree::count_within_on).
    #[allow(clippy::too_many_arguments)]
    pub fn within_on(
        &self,
        stream: &Stream,
        workspace: &mut Workspace,
        queries: DeviceQueries<'_, P::Coord>,
        prepared: &PreparedQuery<P>,
        offsets: &mut Buffer<u64>,
        ids: &mut Buffer<u32>,
        dist2: Option<&mut Buffer<P::Coord>>,
    ) -> Result<()> {
        let (tree, options) = (self.prepared_tree(prepared)?, &prepared.options);
        tree.find_on(stream, workspace, DeviceRangeQuery::Within(options, queries), offsets, ids, dist2)
    }

    /// The same in buffers of exactly as much room as the points take, with their distances: waits for their number, and then
    /// allocates. The points are there when the stream has done the work.
    ///
    /// Memory: 4 bytes and a coordinate a point found, 8 bytes a query, and what [`within_on`](KdTree::within_on) takes.
    ///
    /// # Errors
    /// Those of [`count_within_on`](KdTree::count_within_on); [`Error::ResultTooLarge`](crate::Error::ResultTooLarge), with the number
    /// of points found, if the device has no memory for them.
    pub fn all_within_on(
        &self,
        stream: &Stream,
        workspace: &mut Workspace,
        queries: DeviceQueries<'_, P::Coord>,
        prepared: &PreparedQuery<P>,
    ) -> Result<DeviceWithin<P::Coord>> {
        let (tree, options) = (self.prepared_tree(prepared)?, &prepared.options);
        tree.find_all_on(stream, workspace, DeviceRangeQuery::Within(options, queries))
    }
}

/// Boxes are given by their least and then their greatest coordinates, box after box, borders included; the host does not look at
/// them, and one with a coordinate that is NaN has no points. Of the prepared options only the mask counts. For [`LonLat`](crate::LonLat) there is no such thing.
impl<C: Coord, const D: usize> KdTree<[C; D]>
where
    [C; D]: Point<Coord = C>,
{
    /// The number of points in every box: as [`SpatialIndex::count_in_boxes`](crate::SpatialIndex::count_in_boxes), in device memory. One of `counts` a box.
    ///
    /// # Errors
    /// Those of [`count_within_on`](KdTree::count_within_on), but for the radius.
    pub fn count_in_boxes_on(
        &self,
        stream: &Stream,
        workspace: &mut Workspace,
        boxes: &Buffer<C>,
        prepared: &PreparedQuery<[C; D]>,
        counts: &mut Buffer<u32>,
    ) -> Result<()> {
        let (tree, options) = (self.prepared_tree(prepared)?, &prepared.options);
        tree.count_on(stream, workspace, DeviceRangeQuery::InBoxes(options, boxes), counts)
    }

    /// The points in every box, as far as there is room: as [`SpatialIndex::in_boxes`](crate::SpatialIndex::in_boxes), in device memory; `offsets` and `ids` are those
    /// of [`within_on`](KdTree::within_on). Memory beside the buffers: 4 bytes a box.
    ///
    /// # Errors
    /// Those of [`count_in_boxes_on`](KdTree::count_in_boxes_on).
    pub fn in_boxes_on(
        &self,
        stream: &Stream,
        workspace: &mut Workspace,
        boxes: &Buffer<C>,
        prepared: &PreparedQuery<[C; D]>,
        offsets: &mut Buffer<u64>,
        ids: &mut Buffer<u32>,
    ) -> Result<()> {
        let (tree, options) = (self.prepared_tree(prepared)?, &prepared.options);
        tree.find_on(stream, workspace, DeviceRangeQuery::InBoxes(options, boxes), offsets, ids, None)
    }

    /// The same in buffers of exactly as much room as the points take: waits for their number, and then allocates. The points
    /// are there when the stream has done the work.
    ///
    /// # Errors
    /// Those of [`count_in_boxes_on`](KdTree::count_in_boxes_on); [`Error::ResultTooLarge`](crate::Error::ResultTooLarge), with the
    /// number of points found, if the device has no memory for them.
    pub fn all_in_boxes_on(
        &self,
        stream: &Stream,
        workspace: &mut Workspace,
        boxes: &Buffer<C>,
        prepared: &PreparedQuery<[C; D]>,
    ) -> Result<DeviceWithin<C>> {
        let (tree, options) = (self.prepared_tree(prepared)?, &prepared.options);
        tree.find_all_on(stream, workspace, DeviceRangeQuery::InBoxes(options, boxes))
    }
}

//! The queries of indexes on device buffers, on the caller's stream.
//!
//! No call waits for the host. A call allocates nothing if its workspace was used for a call of the same size before, so calls can be
//! captured in a graph. Only the calls that return buffers of the exact size of the result wait and allocate.

use crate::device::{Buffer, Stream, Workspace};
use crate::error::{Error, Result};
use crate::point::{Cartesian, DistanceOf, Point};
use crate::query::backend::{DeviceNearest, DeviceQueryBackend, DeviceRange, DeviceRows, DeviceVisit};
use crate::query::index::SpatialIndex;
use crate::query::on_device::{DeviceQueries, DeviceRangeQuery, DeviceWithin, PreparedQuery};
use crate::query::options::{QueryOptions, ValidatedOptions};
use kauri_kernels::query::visit::Visits;
use std::marker::PhantomData;
use std::sync::Arc;

type CoordOf<I> = <I as SpatialIndex>::StoredCoord;

/// A [`SpatialIndex`] whose queries also take device buffers: [`KdTree`](crate::KdTree), [`BalancedKdTree`](crate::BalancedKdTree), [`RTree`](crate::RTree),
/// [`Quadtree`](crate::Quadtree), [`Octree`](crate::Octree). Results equal the results of the calls on slices.
///
/// The coordinates of queries and boxes have the type that the index stores ([`SpatialIndex::StoredCoord`]). An index on the CPU returns
/// [`Error::NotOnGpu`], and so do a quadtree that was built [out of core](crate::quadtree::OutOfCore) and a balanced tree that was built
/// [over several GPUs](crate::BalancedKdTree::build_over). Import the trait to call its methods. [`DeviceQueries`] has an example.
///
/// Range queries within a distance take the radius from the prepared options ([`QueryOptions::radius`], required), with the mask, the
/// norm and the periods. Rows are in the order of the tree, even if the options are `sorted`.
///
/// Boxes are the low and then the high corner of each box, one box after another; boxes include their borders. The host does not check
/// them. A box with a NaN coordinate contains no points. Only the mask of the prepared options is used. [`LonLat`](crate::LonLat) points
/// have no box queries.
pub trait DeviceIndex: SpatialIndex {
    /// Returns the backend that answers queries on device buffers, and the identity of the index.
    #[doc(hidden)]
    fn on_device(&self) -> Result<OnDevice<'_, CoordOf<Self>>>;

    /// Validates query options for this index, and copies their data to its device. The first call to a quadtree or a balanced tree builds
    /// its buckets, and waits for the device.
    ///
    /// # Errors
    /// The errors of [`SpatialIndex::nearest_with`] for options; [`Error::NotOnGpu`]; [`Error::OutOfMemory`]; errors of the driver.
    fn prepare(
        &self,
        stream: &Stream,
        options: &QueryOptions<Self::Point>,
    ) -> Result<PreparedQuery<Self::Point>> {
        let validated = ValidatedOptions::new(options, self.num_ids())?;
        let OnDevice { backend, identity } = self.on_device()?;
        let options = backend.prepare(stream, validated)?;
        Ok(PreparedQuery { options, index: identity.clone(), points: PhantomData })
    }

    /// Finds the `k` nearest points of every query, as [`SpatialIndex::nearest_with`] does, in device memory. `ids` and `dist2` have `k`
    /// items per query. The host does not check the queries: a query that is more than a period away from a point or has a NaN coordinate
    /// causes no error, and its row is wrong.
    ///
    /// # Errors
    /// [`Error::NotOnGpu`]; [`Error::OtherTree`] if the options were prepared for another tree; [`Error::Shape`] if lengths do not
    /// agree; [`Error::WrongDevice`]; [`Error::OutOfMemory`]; errors of the driver.
    #[allow(clippy::too_many_arguments)]
    fn nearest_on(
        &self,
        stream: &Stream,
        workspace: &mut Workspace,
        queries: DeviceQueries<'_, CoordOf<Self>>,
        k: usize,
        prepared: &PreparedQuery<Self::Point>,
        ids: &mut Buffer<u32>,
        dist2: &mut Buffer<DistanceOf<Self::Point>>,
    ) -> Result<()> {
        let (backend, options) = (self.on_device()?.accepts(prepared)?, &prepared.options);
        backend.nearest_on(DeviceNearest { stream, workspace, queries, k, options, ids, dist2 })
    }

    /// Visits the points around every query in a kernel of your own, which `launch` launches: it gets the number of blocks and the first
    /// argument of the kernel, and passes results and payloads as further ones. The kernel calls [`Visits::run`] with a
    /// [`Visit`](crate::query::Visit); [`kauri_kernels::query::visit`] has an example. [`SpatialIndex::visit`] takes the same
    /// visitor on the CPU.
    ///
    /// The radius of the prepared options is the first bound; masks, norms and periods hold, and with
    /// [`DeviceQueries::SelfQuery`] excluded points are not visited. No ids are written, so there is no memory for them. Scratch
    /// memory: 16 bytes per query, unless they are coherent or are the points of the tree.
    ///
    /// # Errors
    /// [`Error::NotOnGpu`]; [`Error::OtherTree`] if the options were prepared for another tree; [`Error::Shape`] if the coordinates are
    /// not whole points; [`Error::WrongDevice`]; [`Error::OutOfMemory`]; errors of `launch` and of the driver. Without queries nothing is
    /// launched.
    fn visit_on(
        &self,
        stream: &Stream,
        workspace: &mut Workspace,
        queries: DeviceQueries<'_, CoordOf<Self>>,
        prepared: &PreparedQuery<Self::Point>,
        mut launch: impl FnMut(u64, Visits<'_, CoordOf<Self>>) -> Result<()>,
    ) -> Result<()> {
        let (backend, options) = (self.on_device()?.accepts(prepared)?, &prepared.options);
        backend.visit_on(DeviceVisit { stream, workspace, queries, options }, &mut launch)
    }

    /// Counts the points within the radius of every query (inclusive), as [`SpatialIndex::count_within`] does, in device memory. `counts`
    /// has one item per query.
    ///
    /// The call does not wait for the host. It allocates nothing if the workspace was used for that many queries before.
    ///
    /// # Errors
    /// [`Error::NotOnGpu`]; [`Error::OtherTree`] if the options were prepared for another tree; [`Error::NoRadius`]; [`Error::Shape`] if
    /// lengths do not agree; [`Error::WrongDevice`]; [`Error::OutOfMemory`]; errors of the driver.
    fn count_within_on(
        &self,
        stream: &Stream,
        workspace: &mut Workspace,
        queries: DeviceQueries<'_, CoordOf<Self>>,
        prepared: &PreparedQuery<Self::Point>,
        counts: &mut Buffer<u32>,
    ) -> Result<()> {
        let query = DeviceRangeQuery::Within(&prepared.options, queries);
        self.on_device()?.accepts(prepared)?.count_on(DeviceRange { stream, workspace, query }, counts)
    }

    /// Finds the points within the radius of every query (inclusive), up to the capacity of `ids`, as [`SpatialIndex::within`] does, in
    /// device memory.
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
    /// The errors of [`count_within_on`](DeviceIndex::count_within_on).
    #[allow(clippy::too_many_arguments)]
    fn within_on(
        &self,
        stream: &Stream,
        workspace: &mut Workspace,
        queries: DeviceQueries<'_, CoordOf<Self>>,
        prepared: &PreparedQuery<Self::Point>,
        offsets: &mut Buffer<u64>,
        ids: &mut Buffer<u32>,
        dist2: Option<&mut Buffer<DistanceOf<Self::Point>>>,
    ) -> Result<()> {
        let query = DeviceRangeQuery::Within(&prepared.options, queries);
        let rows = DeviceRows { offsets, ids, dist2 };
        self.on_device()?.accepts(prepared)?.find_on(DeviceRange { stream, workspace, query }, rows)
    }

    /// Finds the points within the radius of every query with their distances, in buffers of the exact size. The call waits for the number
    /// of points found, and then allocates. The result is complete when the stream has done the work.
    ///
    /// Memory: 4 bytes and one coordinate per point found, 8 bytes per query, and the scratch memory of
    /// [`within_on`](DeviceIndex::within_on).
    ///
    /// # Errors
    /// The errors of [`count_within_on`](DeviceIndex::count_within_on); [`Error::ResultTooLarge`], with the number of points found, if the
    /// device has no memory for them.
    fn all_within_on(
        &self,
        stream: &Stream,
        workspace: &mut Workspace,
        queries: DeviceQueries<'_, CoordOf<Self>>,
        prepared: &PreparedQuery<Self::Point>,
    ) -> Result<DeviceWithin<DistanceOf<Self::Point>>> {
        let query = DeviceRangeQuery::Within(&prepared.options, queries);
        self.on_device()?.accepts(prepared)?.find_all_on(DeviceRange { stream, workspace, query })
    }

    /// Counts the points in every box, as [`SpatialIndex::count_in_boxes`] does, in device memory. `counts` has one item per box.
    ///
    /// # Errors
    /// The errors of [`count_within_on`](DeviceIndex::count_within_on), except for the radius.
    fn count_in_boxes_on(
        &self,
        stream: &Stream,
        workspace: &mut Workspace,
        boxes: &Buffer<CoordOf<Self>>,
        prepared: &PreparedQuery<Self::Point>,
        counts: &mut Buffer<u32>,
    ) -> Result<()>
    where
        Self::Point: Cartesian,
    {
        let query = DeviceRangeQuery::InBoxes(&prepared.options, boxes);
        self.on_device()?.accepts(prepared)?.count_on(DeviceRange { stream, workspace, query }, counts)
    }

    /// Finds the points in every box, up to the capacity of `ids`, as [`SpatialIndex::in_boxes`] does, in device memory.
    /// [`within_on`](DeviceIndex::within_on) describes `offsets` and `ids`. Scratch memory: 4 bytes per box.
    ///
    /// # Errors
    /// The errors of [`count_in_boxes_on`](DeviceIndex::count_in_boxes_on).
    fn in_boxes_on(
        &self,
        stream: &Stream,
        workspace: &mut Workspace,
        boxes: &Buffer<CoordOf<Self>>,
        prepared: &PreparedQuery<Self::Point>,
        offsets: &mut Buffer<u64>,
        ids: &mut Buffer<u32>,
    ) -> Result<()>
    where
        Self::Point: Cartesian,
    {
        let query = DeviceRangeQuery::InBoxes(&prepared.options, boxes);
        let rows = DeviceRows { offsets, ids, dist2: None };
        self.on_device()?.accepts(prepared)?.find_on(DeviceRange { stream, workspace, query }, rows)
    }

    /// Finds the points in every box, in buffers of the exact size. The call waits for the number of points found, and then allocates. The
    /// result is complete when the stream has done the work.
    ///
    /// # Errors
    /// The errors of [`count_in_boxes_on`](DeviceIndex::count_in_boxes_on); [`Error::ResultTooLarge`], with the number of points found, if
    /// the device has no memory for them.
    fn all_in_boxes_on(
        &self,
        stream: &Stream,
        workspace: &mut Workspace,
        boxes: &Buffer<CoordOf<Self>>,
        prepared: &PreparedQuery<Self::Point>,
    ) -> Result<DeviceWithin<DistanceOf<Self::Point>>>
    where
        Self::Point: Cartesian,
    {
        let query = DeviceRangeQuery::InBoxes(&prepared.options, boxes);
        self.on_device()?.accepts(prepared)?.find_all_on(DeviceRange { stream, workspace, query })
    }
}

/// An index in device memory.
#[derive(Clone, Copy)]
pub struct OnDevice<'a, C> {
    pub(crate) backend: &'a dyn DeviceQueryBackend<C>,
    /// Its address distinguishes the index from all others, including dropped ones that have prepared queries.
    pub(crate) identity: &'a Arc<()>,
}

impl<'a, C> OnDevice<'a, C> {
    /// Returns the backend if the options were prepared for this index.
    fn accepts<P: Point>(self, prepared: &PreparedQuery<P>) -> Result<&'a dyn DeviceQueryBackend<C>> {
        if Arc::ptr_eq(self.identity, &prepared.index) { Ok(self.backend) } else { Err(Error::OtherTree) }
    }
}

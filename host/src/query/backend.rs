//! Backend traits: the queries that every index answers on its device. Arguments are already validated.
//!
//! Indexes are generic over their points, so their methods are compiled in every crate that uses them. The code behind these traits is
//! generic over coordinates alone and compiled once.
//!
//! | backend | serves |
//! |---|---|
//! | every [`CpuTree`](crate::query::cpu::backend::CpuTree) | trees in host memory: `CpuIndex` of k-d trees and balanced trees, `HostTree` of quadtrees |
//! | [`BucketIndex`](crate::query::gpu::BucketIndex) | every tree on one GPU |
//! | [`UnionIndex`](crate::query::union::UnionIndex) | a balanced tree on several GPUs; a quadtree that was built out of core, on one GPU |
//!
//! A range query ([`RangeQuery`]) of another shape is a variant of [`Regions`]; a query with a result of another form is a method of
//! [`QueryBackend`].

use crate::batches::Delivery;
use crate::device::{Buffer, Stream, Workspace};
use crate::error::{Error, Result};
use crate::query::batches::{VisitNearest, VisitRange, deliver_nearest, deliver_range};
use crate::query::gpu::device_options::DeviceOptions;
use crate::query::on_device::{DeviceQueries, DeviceRangeQuery, DeviceWithin};
use crate::query::options::ValidatedOptions;
use crate::query::within::RangeResult;
use crate::query::{item_bytes, result_rows};
use kauri_kernels::query::visit::{Visit, Visits};
use kauri_kernels::thread::coord::Coord;
use std::borrow::Cow;
use std::ops::{ControlFlow, Range};

/// Validated queries.
#[derive(Clone, Copy)]
pub struct ValidatedQueries<'a, C> {
    /// The coordinates, point after point; `None` for all points of the index in the order of their ids.
    pub(crate) coords: Option<&'a [C]>,
    /// Query `i` excludes the point with this id plus `i`.
    pub(crate) first_excluded: Option<u32>,
    /// The id that counts as number `i` for `first_excluded`; empty if that is `i`.
    pub(crate) own_ids: &'a [u32],
    /// Number of queries.
    pub(crate) len: usize,
    /// Number of dimensions.
    pub(crate) dims: usize,
}

impl<'a, C: Coord> ValidatedQueries<'a, C> {
    /// Returns the coordinates that a self-query needs; `None` for other queries, and where the backend reads its own points.
    pub(crate) fn self_coords<'b>(&self, backend: &'b dyn QueryBackend<C>) -> Result<Option<Cow<'b, [C]>>> {
        if self.coords.is_some() { Ok(None) } else { backend.self_coords() }
    }

    /// Turns a self-query into a query of these coordinates, the index's points by id, if there are any.
    pub(crate) fn with_self_coords(self, coords: &'a Option<Cow<'_, [C]>>) -> Self {
        Self { coords: self.coords.or(coords.as_deref()), ..self }
    }

    /// Returns a range of the queries, which are not a self-query.
    pub(crate) fn part(self, range: Range<usize>) -> Self {
        let Self { coords, first_excluded, own_ids, dims, .. } = self;
        Self {
            coords: coords.map(|coords| &coords[range.start * dims..range.end * dims]),
            first_excluded: first_excluded.map(|first| first + range.start as u32),
            own_ids,
            len: range.len(),
            dims,
        }
    }
}

/// A query for the `k` nearest points of each of some queries.
#[derive(Clone, Copy)]
pub struct NearestQuery<'a, C: Coord> {
    pub(crate) queries: ValidatedQueries<'a, C>,
    pub(crate) k: usize,
    pub(crate) options: &'a ValidatedOptions<C::Distance>,
}

/// Rows of `k` nearest points, one behind the other: ids and distances.
pub(crate) type NearestRows<C> = (Vec<u32>, Vec<C>);

/// A range query: a row of points for each query or box.
#[derive(Clone, Copy)]
pub struct RangeQuery<'a, C: Coord> {
    pub(crate) regions: Regions<'a, C>,
    /// Only their mask is used for boxes.
    pub(crate) options: &'a ValidatedOptions<C::Distance>,
}

/// The region of each row of a range query.
#[derive(Clone, Copy)]
pub(crate) enum Regions<'a, C> {
    /// The points within the options' bound of each query.
    Within(ValidatedQueries<'a, C>),
    /// The points in each box: the least and then the greatest corner of each box, and the number of dimensions.
    InBoxes(&'a [C], usize),
}

impl<'a, C: Coord> RangeQuery<'a, C> {
    /// Number of rows.
    pub(crate) fn num_rows(&self) -> usize {
        match self.regions {
            Regions::Within(queries) => queries.len,
            Regions::InBoxes(corners, dims) => corners.len() / (2 * dims),
        }
    }

    /// Returns a range of the rows. The queries are not a self-query.
    pub(crate) fn part(self, rows: Range<usize>) -> Self {
        let regions = match self.regions {
            Regions::Within(queries) => Regions::Within(queries.part(rows)),
            Regions::InBoxes(corners, dims) => {
                Regions::InBoxes(&corners[rows.start * 2 * dims..rows.end * 2 * dims], dims)
            }
        };
        Self { regions, ..self }
    }

    /// Bytes of a found point.
    pub(crate) fn item_bytes(&self) -> u64 {
        match self.regions {
            Regions::Within(_) => item_bytes::<C::Distance>(),
            Regions::InBoxes(..) => size_of::<u32>() as u64,
        }
    }
}

/// The queries of one index on its device.
pub trait QueryBackend<C: Coord>: Send + Sync {
    /// Checks that all queries are within a period of the points; called before any query with periods runs.
    fn check_queries(
        &self,
        queries: ValidatedQueries<'_, C>,
        options: &ValidatedOptions<C::Distance>,
    ) -> Result<()>;
    /// Returns the coordinates of all points by id, which the caller passes as the queries of a self-query; `None` if the backend reads
    /// its own points instead.
    fn self_coords(&self) -> Result<Option<Cow<'_, [C]>>> {
        Ok(None)
    }
    /// Returns the id of the point of each row of a self-query, where the caller passes the queries; empty if that is the row.
    fn own_ids(&self) -> &[u32] {
        &[]
    }
    /// Appends the rows of the nearest points to `rows`, which are empty and have the capacity.
    fn nearest(
        &self,
        query: NearestQuery<'_, C>,
        rows: NearestRows<C::Distance>,
    ) -> Result<NearestRows<C::Distance>>;
    /// Writes the nearest points of one query over padding, as many as there are entries, at least one.
    fn nearest_of_one(
        &self,
        query: NearestQuery<'_, C>,
        ids: &mut [u32],
        dist2: &mut [C::Distance],
    ) -> Result<()> {
        let row = self.nearest(query, result_rows(1, query.k)?)?;
        ids.copy_from_slice(&row.0);
        dist2.copy_from_slice(&row.1);
        Ok(())
    }
    /// Counts the points of each row.
    fn count(&self, query: RangeQuery<'_, C>) -> Result<Vec<u32>>;
    /// Finds the points of each row in the order of the tree; [`count`](Self::count) returns their number. Rows of boxes have no distances.
    fn find(&self, query: RangeQuery<'_, C>) -> Result<RangeResult<C::Distance>>;
    /// Visits the points around the queries on the CPU; `visit` is called once for each query.
    fn visit(
        &self,
        _queries: ValidatedQueries<'_, C>,
        _options: &ValidatedOptions<C::Distance>,
        _visit: &VisitQuery<'_, C::Distance>,
    ) -> Result<()> {
        Err(Error::NotOnCpu)
    }
    /// Delivers the result of a range query in batches; returns `Break` if `visit` stopped it.
    fn range_batches(
        &self,
        query: RangeQuery<'_, C>,
        delivery: &mut Delivery<'_, '_>,
        visit: &mut VisitRange<'_, C::Distance>,
    ) -> Result<ControlFlow<()>> {
        deliver_range(self, query, delivery, visit)
    }
    /// Delivers the rows of the nearest points in batches; returns `Break` if `visit` stopped it.
    fn nearest_batches(
        &self,
        query: NearestQuery<'_, C>,
        delivery: &mut Delivery<'_, '_>,
        visit: &mut VisitNearest<'_, C::Distance>,
    ) -> Result<ControlFlow<()>> {
        deliver_nearest(self, query, delivery, visit)
    }
}

/// A nearest query with input and result in device memory.
pub(crate) struct DeviceNearest<'a, C: Coord> {
    pub(crate) stream: &'a Stream,
    pub(crate) workspace: &'a mut Workspace,
    pub(crate) queries: DeviceQueries<'a, C>,
    pub(crate) k: usize,
    pub(crate) options: &'a DeviceOptions<C::Distance>,
    pub(crate) ids: &'a mut Buffer<u32>,
    pub(crate) dist2: &'a mut Buffer<C::Distance>,
}

/// Visits the points around the query of this number: makes its visitor, calls the given traversal with it, and keeps its result.
pub(crate) type VisitQuery<'a, C> = dyn Fn(usize, &mut dyn FnMut(&mut dyn Visit<C>)) + Sync + 'a;

/// Launches a kernel that visits, with a number of blocks.
pub(crate) type LaunchVisits<'a, C> = dyn FnMut(u64, Visits<'_, C>) -> Result<()> + 'a;

/// A visit of the points around queries in device memory.
pub(crate) struct DeviceVisit<'a, C: Coord> {
    pub(crate) stream: &'a Stream,
    pub(crate) workspace: &'a mut Workspace,
    pub(crate) queries: DeviceQueries<'a, C>,
    pub(crate) options: &'a DeviceOptions<C::Distance>,
}

/// A range query with input in device memory.
pub(crate) struct DeviceRange<'a, C: Coord> {
    pub(crate) stream: &'a Stream,
    pub(crate) workspace: &'a mut Workspace,
    pub(crate) query: DeviceRangeQuery<'a, C>,
}

/// The arrays of a range query's result: the begin of each row, and up to their capacity the points.
pub(crate) struct DeviceRows<'a, C> {
    pub(crate) offsets: &'a mut Buffer<u64>,
    pub(crate) ids: &'a mut Buffer<u32>,
    pub(crate) dist2: Option<&'a mut Buffer<C>>,
}

/// Queries with input and result in device memory. The host checks lengths and devices, not coordinates.
pub(crate) trait DeviceQueryBackend<C: Coord>: Send + Sync {
    /// Copies options to the device.
    fn prepare(
        &self,
        stream: &Stream,
        options: ValidatedOptions<C::Distance>,
    ) -> Result<DeviceOptions<C::Distance>>;
    /// Writes the `k` nearest points of each query.
    fn nearest_on(&self, query: DeviceNearest<'_, C>) -> Result<()>;
    /// Launches a kernel of the caller that visits the points around each query.
    fn visit_on(&self, visit: DeviceVisit<'_, C>, launch: &mut LaunchVisits<'_, C>) -> Result<()>;
    /// Counts the points of each row.
    fn count_on(&self, range: DeviceRange<'_, C>, counts: &mut Buffer<u32>) -> Result<()>;
    /// Finds the points of each row, up to the capacity of the arrays.
    fn find_on(&self, range: DeviceRange<'_, C>, rows: DeviceRows<'_, C::Distance>) -> Result<()>;
    /// Finds the points of each row in buffers of exactly their size; waits for the device.
    fn find_all_on(&self, range: DeviceRange<'_, C>) -> Result<DeviceWithin<C::Distance>>;
}

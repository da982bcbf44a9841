//! Backend traits: the queries that every index implements on its device. Arguments are already validated.
//!
//! Indexes are generic over their points, so their methods are compiled in every crate that uses them. The code behind this trait is
//! generic over coordinates alone and compiled once.

use crate::batches::Delivery;
use crate::device::{Buffer, Stream, Workspace};
use crate::error::Result;
use crate::query::batches::{RangeQuery, VisitNearest, VisitRange};
use crate::query::gpu::device_options::DeviceOptions;
use crate::query::on_device::{DeviceQueries, DeviceRangeQuery, DeviceWithin};
use crate::query::options::ValidatedOptions;
use crate::query::within::RangeResult;
use crate::query::{PointMask, result_rows};
use kauri_kernels::thread::coord::Coord;
use std::ops::{ControlFlow, Range};

/// Validated queries.
#[derive(Clone, Copy)]
pub enum ValidatedQueries<'a, C> {
    /// Points in host memory.
    Points {
        /// The coordinates, point after point.
        coords: &'a [C],
        /// Query `i` excludes the point with this id plus `i`.
        first_excluded: Option<u32>,
    },
    /// All points of the index.
    SelfQuery {
        /// A point is its own neighbor; otherwise it is excluded from its row.
        include_self: bool,
    },
}

impl<'a, C> ValidatedQueries<'a, C> {
    /// Queries that exclude no point.
    pub(crate) fn points(coords: &'a [C]) -> Self {
        Self::Points { coords, first_excluded: None }
    }

    /// Turns a self-query into a query of `coords`, the coordinates of the index's points by id.
    pub(crate) fn with_self_coords(self, coords: &'a [C]) -> Self {
        match self {
            Self::SelfQuery { include_self } => {
                Self::Points { coords, first_excluded: (!include_self).then_some(0) }
            }
            points => points,
        }
    }

    /// Returns a range of the queries; a self-query stays whole.
    pub(crate) fn part(self, range: Range<usize>, dims: usize) -> Self {
        match self {
            Self::Points { coords, first_excluded } => Self::Points {
                coords: &coords[range.start * dims..range.end * dims],
                first_excluded: first_excluded.map(|first| first + range.start as u32),
            },
            self_query => self_query,
        }
    }

    /// Number of queries to an index of `num_points` points.
    pub(crate) fn len(&self, dims: usize, num_points: usize) -> usize {
        match self {
            Self::Points { coords, .. } => coords.len() / dims,
            Self::SelfQuery { .. } => num_points,
        }
    }
}

/// The queries of one index on its device.
pub trait QueryBackend<C: Coord>: Send + Sync {
    /// Checks that all queries are within a period of the points; called before any query runs.
    fn check_queries(&self, queries: ValidatedQueries<'_, C>, options: &ValidatedOptions<C>) -> Result<()>;
    /// Appends rows of the `k` nearest points to `ids` and `dist2`, which are empty and have the capacity.
    fn nearest(
        &self,
        queries: ValidatedQueries<'_, C>,
        k: usize,
        options: ValidatedOptions<C>,
        ids: Vec<u32>,
        dist2: Vec<C>,
    ) -> Result<(Vec<u32>, Vec<C>)>;
    /// Writes the nearest points of one query over padding, as many as there are entries, at least one.
    fn nearest_of_one(
        &self,
        query: ValidatedQueries<'_, C>,
        options: ValidatedOptions<C>,
        ids: &mut [u32],
        dist2: &mut [C],
    ) -> Result<()> {
        let (no_ids, no_dist2) = result_rows(1, ids.len())?;
        let row = self.nearest(query, ids.len(), options, no_ids, no_dist2)?;
        ids.copy_from_slice(&row.0);
        dist2.copy_from_slice(&row.1);
        Ok(())
    }
    /// Counts the points within the options' bound of each query.
    fn count_within(
        &self,
        queries: ValidatedQueries<'_, C>,
        options: ValidatedOptions<C>,
    ) -> Result<Vec<u32>>;
    /// Finds the points within the options' bound of each query.
    fn within(
        &self,
        queries: ValidatedQueries<'_, C>,
        options: ValidatedOptions<C>,
    ) -> Result<RangeResult<C>>;
    /// Counts the points in each box. `corners` holds the least and then the greatest corner of each box.
    fn count_in_boxes(&self, corners: &[C], mask: Option<&PointMask>) -> Result<Vec<u32>>;
    /// Finds the points in each box, without distances.
    fn in_boxes(&self, corners: &[C], mask: Option<&PointMask>) -> Result<RangeResult<C>>;
    /// Delivers the result of a range query in batches; returns `Break` if `visit` stopped it.
    fn range_batches(
        &self,
        query: RangeQuery<'_, C>,
        delivery: &mut Delivery<'_, '_>,
        visit: &mut VisitRange<'_, C>,
    ) -> Result<ControlFlow<()>>;
    /// Delivers rows of the `k` nearest points in batches; returns `Break` if `visit` stopped it.
    fn nearest_batches(
        &self,
        queries: ValidatedQueries<'_, C>,
        k: usize,
        options: ValidatedOptions<C>,
        delivery: &mut Delivery<'_, '_>,
        visit: &mut VisitNearest<'_, C>,
    ) -> Result<ControlFlow<()>>;
}

/// Queries with input and result in device memory.
pub(crate) trait DeviceQueryBackend<C: Coord>: Send + Sync {
    /// Copies options to the device.
    fn prepare(&self, stream: &Stream, options: ValidatedOptions<C>) -> Result<DeviceOptions<C>>;
    /// Writes the `k` nearest points of each query.
    #[allow(clippy::too_many_arguments)]
    fn nearest_on(
        &self,
        stream: &Stream,
        workspace: &mut Workspace,
        queries: DeviceQueries<'_, C>,
        k: usize,
        options: &DeviceOptions<C>,
        ids: &mut Buffer<u32>,
        dist2: &mut Buffer<C>,
    ) -> Result<()>;
    /// Counts the points of each row.
    fn count_on(
        &self,
        stream: &Stream,
        workspace: &mut Workspace,
        query: DeviceRangeQuery<'_, C>,
        counts: &mut Buffer<u32>,
    ) -> Result<()>;
    /// Finds the points of each row, up to the capacity of the buffers.
    fn find_on(
        &self,
        stream: &Stream,
        workspace: &mut Workspace,
        query: DeviceRangeQuery<'_, C>,
        offsets: &mut Buffer<u64>,
        ids: &mut Buffer<u32>,
        dist2: Option<&mut Buffer<C>>,
    ) -> Result<()>;
    /// Finds the points of each row in buffers of exactly their size; waits for the device.
    fn find_all_on(
        &self,
        stream: &Stream,
        workspace: &mut Workspace,
        query: DeviceRangeQuery<'_, C>,
    ) -> Result<DeviceWithin<C>>;
}

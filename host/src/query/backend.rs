//! The query interface of every index. Arguments are already validated.
//!
//! Indexes are generic over their points, so their methods are compiled in every crate that uses them. The code behind this trait is generic over
//! coordinates alone and compiled once.

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

/// Queries whose coordinates have been checked, or the tree's own points.
#[derive(Clone, Copy)]
pub enum ValidatedQueries<'a, C> {
    /// Coordinates, point after point.
    Points {
        /// The coordinates.
        coords: &'a [C],
        /// Query `i` leaves out the point with this id and `i` more.
        first_left_out: Option<u32>,
    },
    /// The points of the tree.
    Own {
        /// With each itself.
        itself: bool,
    },
}

impl<'a, C> ValidatedQueries<'a, C> {
    /// These points.
    pub(crate) fn points(coords: &'a [C]) -> Self {
        Self::Points { coords, first_left_out: None }
    }

    /// The same as coordinates: those of the tree's own points, by id.
    pub(crate) fn with_own(self, own: &'a [C]) -> Self {
        match self {
            Self::Own { itself } => Self::Points { coords: own, first_left_out: (!itself).then_some(0) },
            points => points,
        }
    }

    /// Some of coordinates; of a tree's own points all.
    pub(crate) fn part(self, range: Range<usize>, dims: usize) -> Self {
        match self {
            Self::Points { coords, first_left_out } => Self::Points {
                coords: &coords[range.start * dims..range.end * dims],
                first_left_out: first_left_out.map(|first| first + range.start as u32),
            },
            own => own,
        }
    }

    /// Number of queries to a tree of `num_points` points.
    pub(crate) fn len(&self, dims: usize, num_points: usize) -> usize {
        match self {
            Self::Points { coords, .. } => coords.len() / dims,
            Self::Own { .. } => num_points,
        }
    }
}

/// Answers the queries of one index on its device.
pub trait QueryBackend<C: Coord>: Send + Sync {
    /// Checks that all queries lie within a period of the points; called before any query is answered.
    fn check_queries(&self, queries: ValidatedQueries<'_, C>, wanted: &ValidatedOptions<C>) -> Result<()>;
    /// Appends rows of the `k` nearest points to ids and squared distances, which are empty and have room for them.
    fn nearest(
        &self,
        queries: ValidatedQueries<'_, C>,
        k: usize,
        wanted: ValidatedOptions<C>,
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
    /// The number of points within a distance of queries.
    fn count_within(&self, queries: ValidatedQueries<'_, C>, wanted: ValidatedOptions<C>)
    -> Result<Vec<u32>>;
    /// The points.
    fn within(&self, queries: ValidatedQueries<'_, C>, wanted: ValidatedOptions<C>)
    -> Result<RangeResult<C>>;
    /// The number of points in boxes, given as their least and then their greatest coordinates.
    fn count_in_boxes(&self, corners: &[C], mask: Option<&PointMask>) -> Result<Vec<u32>>;
    /// The points, without distances.
    fn in_boxes(&self, corners: &[C], mask: Option<&PointMask>) -> Result<RangeResult<C>>;
    /// Delivers the points that are looked for in batches; says if it was stopped.
    fn find_batches(
        &self,
        sought: RangeQuery<'_, C>,
        delivery: &mut Delivery<'_, '_>,
        show: &mut VisitRange<'_, C>,
    ) -> Result<ControlFlow<()>>;
    /// Delivers rows of the `k` nearest points in batches; says if it was stopped.
    fn nearest_batches(
        &self,
        queries: ValidatedQueries<'_, C>,
        k: usize,
        wanted: ValidatedOptions<C>,
        delivery: &mut Delivery<'_, '_>,
        show: &mut VisitNearest<'_, C>,
    ) -> Result<ControlFlow<()>>;
}

/// Queries and results in device memory.
pub(crate) trait DeviceQueryBackend<C: Coord>: Send + Sync {
    /// Copies options to the device.
    fn prepare(&self, stream: &Stream, wanted: ValidatedOptions<C>) -> Result<DeviceOptions<C>>;
    /// The k nearest points of queries.
    #[allow(clippy::too_many_arguments)]
    fn nearest_on(
        &self,
        stream: &Stream,
        workspace: &mut Workspace,
        queries: DeviceQueries<'_, C>,
        k: usize,
        asked: &DeviceOptions<C>,
        ids: &mut Buffer<u32>,
        dist2: &mut Buffer<C>,
    ) -> Result<()>;
    /// Counts the points of each row.
    fn count_on(
        &self,
        stream: &Stream,
        workspace: &mut Workspace,
        look: DeviceRangeQuery<'_, C>,
        counts: &mut Buffer<u32>,
    ) -> Result<()>;
    /// Finds the points of each row, as far as there is room for them.
    fn find_on(
        &self,
        stream: &Stream,
        workspace: &mut Workspace,
        look: DeviceRangeQuery<'_, C>,
        offsets: &mut Buffer<u64>,
        ids: &mut Buffer<u32>,
        dist2: Option<&mut Buffer<C>>,
    ) -> Result<()>;
    /// Finds the points of each row, in as much room as they take; waits for their number.
    fn find_all_on(
        &self,
        stream: &Stream,
        workspace: &mut Workspace,
        look: DeviceRangeQuery<'_, C>,
    ) -> Result<DeviceWithin<C>>;
}

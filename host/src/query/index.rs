//! What every index of points answers.

use std::borrow::Cow;
use std::ops::{ControlFlow, Range};

use crate::batches::{Batches, Delivered, Delivery};
use crate::device::Device;
use crate::error::Result;
use crate::point::{Cartesian, Point, checked_coordinates};
use crate::query::backend::{QueryBackend, ValidatedQueries};
use crate::query::batches::{NearestBatch, RangeQuery, WithinBatch};
use crate::query::neighbors::{NeighborRows, Neighbors};
use crate::query::options::{PointMask, Queries, QueryOptions, ValidatedOptions};
use crate::query::result_rows;
use crate::query::within::{RangeResultMut, Within};

pub(crate) mod sealed {
    pub trait Sealed {}
}

type CoordOf<I> = <<I as SpatialIndex>::Point as Point>::Coord;

/// An index that answers queries for points: [`KdTree`](crate::KdTree), [`BalancedKdTree`](crate::BalancedKdTree),
/// [`Quadtree`](crate::Quadtree), [`Octree`](crate::Octree).
///
/// Results do not depend on the index, but for the order of points found within a distance or in boxes. Queries only read, so threads
/// may share one index.
///
/// In batches a result is shown to `look` in the order of its rows, on the calling thread, while a GPU is busy with the next ones;
/// [`ControlFlow::Break`] stops the call, which then returns what was delivered. The rows are those of the call that returns the whole
/// result. If `look` panics, nothing of the call goes on, and index and batches stay usable.
///
/// Only kauri implements it:
///
/// ```compile_fail,E0277
/// struct Own(kauri::Device);
/// impl kauri::SpatialIndex for Own {
///     type Point = [f32; 2];
///     fn device(&self) -> &kauri::Device {
///         &self.0
///     }
///     fn num_points(&self) -> usize {
///         0
///     }
/// }
/// ```
pub trait SpatialIndex: sealed::Sealed {
    /// Its points.
    type Point: Point;

    /// The device that the index lives on.
    fn device(&self) -> &Device;

    /// Number of points that it was given, which have the ids up to it.
    fn num_points(&self) -> usize;

    #[doc(hidden)]
    fn query_backend(&self) -> Result<&dyn QueryBackend<CoordOf<Self>>>;

    /// The `k` nearest points of every query, nearest first; of equally near ones the smaller id first.
    ///
    /// - Result: n x k ids and squared distances, see [`Neighbors`]. Rows are padded with `u32::MAX` and infinity where
    ///   the index has fewer than `k` points; `k` = 0 gives n empty rows.
    /// - Squared distances are (dx*dx + dy*dy) + …, in axis order and in the type of the coordinates, for integers `f64`,
    ///   without contraction: the same bits on every backend.
    /// - Cost: O(log n + k) nodes a query for points that are spread in few dimensions, and for any number of points at one
    ///   place. Memory beside the result: on the CPU at most 32 MiB and O(k) a thread; the first query to an index makes boxes
    ///   of its subtrees there, which take up to an eighth of its memory.
    ///
    /// # Errors
    /// Those of [`KdTree::build`](crate::KdTree::build) for the first query that cannot be used; [`Error::ResultTooLarge`](crate::Error::ResultTooLarge) if n x k entries do
    /// not fit in memory, for which there is [`SpatialIndex::nearest_batches`]; errors of the device.
    fn nearest(&self, queries: &[Self::Point], k: usize) -> Result<Neighbors<Self::Point>> {
        self.nearest_with(queries, k, &QueryOptions::default())
    }

    /// The same as the options say, of points or of the tree's own.
    ///
    /// # Errors
    /// Those of [`nearest`](SpatialIndex::nearest); [`Error::InvalidLength`](crate::Error::InvalidLength) for a radius or a period that is negative or NaN;
    /// [`Error::Shape`](crate::Error::Shape) for a mask of another number of points, and for other periods than one an axis;
    /// [`Error::BeyondPeriod`](crate::Error::BeyondPeriod) for the first query that is more than a period from a point.
    fn nearest_with<'a>(
        &self,
        queries: impl Into<Queries<'a, Self::Point>>,
        k: usize,
        options: &QueryOptions<Self::Point>,
    ) -> Result<Neighbors<Self::Point>> {
        checked(self, queries.into(), options, |answers, queries, wanted| {
            let num_queries = queries.len(Self::Point::DIMS, self.num_points());
            let _span = tracing::debug_span!("nearest", queries = num_queries, k).entered();
            let (ids, dist2) = result_rows::<CoordOf<Self>>(num_queries, k)?;
            let (ids, dist2) = answers.nearest(queries, k, wanted, ids, dist2)?;
            Ok(Neighbors::new(num_queries, k, ids, dist2))
        })
    }

    /// The number of points within `radius` of every query, its border included; for [`LonLat`](crate::LonLat) in meters.
    ///
    /// # Errors
    /// Those of [`SpatialIndex::nearest_with`].
    fn count_within<'a>(
        &self,
        queries: impl Into<Queries<'a, Self::Point>>,
        radius: CoordOf<Self>,
        options: &QueryOptions<Self::Point>,
    ) -> Result<Vec<u32>> {
        let options = options.clone().radius(radius);
        checked(self, queries.into(), &options, |answers, queries, wanted| {
            answers.count_within(queries, wanted)
        })
    }

    /// The points within `radius` of every query, its border included; for [`LonLat`](crate::LonLat) in meters.
    ///
    /// Memory: 4 bytes and a coordinate a point found, 8 bytes a query; on the CPU up to 0.8 GB more while it works.
    ///
    /// # Errors
    /// Those of [`SpatialIndex::nearest_with`]; [`Error::ResultTooLarge`](crate::Error::ResultTooLarge), with the number of points found, if
    /// they do not fit in memory: [`within_batches`](SpatialIndex::within_batches) delivers them in batches.
    fn within<'a>(
        &self,
        queries: impl Into<Queries<'a, Self::Point>>,
        radius: CoordOf<Self>,
        options: &QueryOptions<Self::Point>,
    ) -> Result<Within<Self::Point>> {
        let options = options.clone().radius(radius);
        let mut found = checked(self, queries.into(), &options, |answers, queries, wanted| {
            answers.within(queries, wanted)
        })?;
        if options.sorted {
            found.rows_mut().sort();
        }
        Ok(Within::new(found))
    }

    /// The number of points in every box, given by its least and its greatest coordinates, its border included. A box whose least
    /// coordinate on an axis is above its greatest has none. With a mask only its points count.
    ///
    /// # Errors
    /// Those of [`KdTree::build`](crate::KdTree::build) for the first corner that cannot be used; [`Error::Shape`](crate::Error::Shape) for a mask of another number of
    /// points; [`Error::OutOfMemory`](crate::Error::OutOfMemory); errors of the device.
    fn count_in_boxes(&self, boxes: &[[Self::Point; 2]], mask: Option<&PointMask>) -> Result<Vec<u32>>
    where
        Self::Point: Cartesian,
    {
        let corners = checked_boxes(self, boxes, mask)?;
        self.query_backend()?.count_in_boxes(&corners, mask)
    }

    /// The points in every box, as [`count_in_boxes`](SpatialIndex::count_in_boxes) counts them, in the order of the tree.
    ///
    /// # Errors
    /// Those of [`count_in_boxes`](SpatialIndex::count_in_boxes); [`Error::ResultTooLarge`](crate::Error::ResultTooLarge), with the number
    /// of points found, if they do not fit in memory: [`in_boxes_batches`](SpatialIndex::in_boxes_batches) delivers them in batches.
    fn in_boxes(&self, boxes: &[[Self::Point; 2]], mask: Option<&PointMask>) -> Result<Within<Self::Point>>
    where
        Self::Point: Cartesian,
    {
        let corners = checked_boxes(self, boxes, mask)?;
        Ok(Within::new(self.query_backend()?.in_boxes(&corners, mask)?))
    }

    /// The `k` nearest points of every query, as [`nearest_with`](SpatialIndex::nearest_with), in batches.
    ///
    /// Memory: that of [`Batches`]; of a GPU also a copy of the points' coordinates, if they are the queries.
    ///
    /// ```
    /// use kauri::{Batches, Device, KdTree, KdTreeOptions, SpatialIndex};
    /// use kauri::query::QueryOptions;
    /// use std::ops::ControlFlow;
    /// let points = [[0.0f32, 0.0], [3.0, 4.0], [1.0, 0.0]];
    /// let tree = KdTree::build(&Device::cpu(), &points, &KdTreeOptions::default())?;
    ///
    /// // Look for a query that is far from everything, and no further.
    /// let queries = [[0.0, 0.1], [9.0, 9.0], [1.0, 1.0]];
    /// let mut far = None;
    /// let mut batches = Batches::new().rows(1);
    /// let delivered = tree.nearest_batches(&queries, 1, &QueryOptions::default(), &mut batches, |batch| {
    ///     far = batch.rows().find(|&query| batch.row(query).1[0] > 25.0);
    ///     if far.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    /// })?;
    /// assert_eq!(far, Some(1));
    /// assert!(delivered.rows == 2 && !delivered.is_complete);
    /// # Ok::<(), kauri::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`nearest_with`](SpatialIndex::nearest_with), of queries before any batch;
    /// [`Error::RowTooLarge`](crate::Error::RowTooLarge) if a batch has no room for one row.
    fn nearest_batches<'a>(
        &self,
        queries: impl Into<Queries<'a, Self::Point>>,
        k: usize,
        options: &QueryOptions<Self::Point>,
        batches: &mut Batches<'_>,
        mut look: impl FnMut(NearestBatch<'_, Self::Point>) -> ControlFlow<()>,
    ) -> Result<Delivered> {
        checked(self, queries.into(), options, |answers, queries, wanted| {
            let num_queries = queries.len(Self::Point::DIMS, self.num_points());
            let _span = tracing::debug_span!("nearest_batches", queries = num_queries, k).entered();
            Delivery::run(batches, self.device(), num_queries, |delivery| {
                let show = &mut |rows: Range<usize>, ids: &[u32], dist2: &[CoordOf<Self>]| {
                    look(NearestBatch::new(rows.start, NeighborRows { len: rows.len(), k, ids, dist2 }))
                };
                answers.nearest_batches(queries, k, wanted, delivery, show)
            })
        })
    }

    /// The points within `radius` of every query, its border included, as [`within`](SpatialIndex::within), in batches. There may be any
    /// number, also more than 2^32.
    ///
    /// Points are counted before they are written, on the CPU by a walk of its own. Memory: that of [`Batches`]; of a GPU also a
    /// copy of the points' coordinates, if they are the queries.
    ///
    /// # Errors
    /// Those of [`nearest_with`](SpatialIndex::nearest_with), of queries before any batch;
    /// [`Error::RowTooLarge`](crate::Error::RowTooLarge) for the first row that a batch has no room for, when those before it have
    /// been delivered.
    fn within_batches<'a>(
        &self,
        queries: impl Into<Queries<'a, Self::Point>>,
        radius: CoordOf<Self>,
        options: &QueryOptions<Self::Point>,
        batches: &mut Batches<'_>,
        look: impl FnMut(WithinBatch<'_, Self::Point>) -> ControlFlow<()>,
    ) -> Result<Delivered> {
        let options = options.clone().radius(radius);
        checked(self, queries.into(), &options, |_, queries, wanted| {
            let num_queries = queries.len(Self::Point::DIMS, self.num_points());
            find_batches(
                self,
                num_queries,
                RangeQuery::Within(queries, wanted),
                options.sorted,
                batches,
                look,
            )
        })
    }

    /// The points in every box, as [`in_boxes`](SpatialIndex::in_boxes), in batches; more of it says
    /// [`within_batches`](SpatialIndex::within_batches).
    ///
    /// # Errors
    /// Those of [`count_in_boxes`](SpatialIndex::count_in_boxes), of boxes before any batch;
    /// [`Error::RowTooLarge`](crate::Error::RowTooLarge) for the first row that a batch has no room for, when those before it have
    /// been delivered.
    fn in_boxes_batches(
        &self,
        boxes: &[[Self::Point; 2]],
        mask: Option<&PointMask>,
        batches: &mut Batches<'_>,
        look: impl FnMut(WithinBatch<'_, Self::Point>) -> ControlFlow<()>,
    ) -> Result<Delivered>
    where
        Self::Point: Cartesian,
    {
        let corners = checked_boxes(self, boxes, mask)?;
        find_batches(self, boxes.len(), RangeQuery::InBoxes(&corners, mask), false, batches, look)
    }
}

/// Checks options and queries, all of it before any work, so that every device refuses the same; then runs them.
fn checked<I: SpatialIndex + ?Sized, R>(
    index: &I,
    queries: Queries<'_, I::Point>,
    options: &QueryOptions<I::Point>,
    run: impl FnOnce(
        &dyn QueryBackend<CoordOf<I>>,
        ValidatedQueries<'_, CoordOf<I>>,
        ValidatedOptions<CoordOf<I>>,
    ) -> Result<R>,
) -> Result<R> {
    let wanted = ValidatedOptions::new(options, index.num_points())?;
    let coords;
    let queries = match queries {
        Queries::Points(points) => {
            coords = checked_coordinates(points, "query")?;
            ValidatedQueries::points(&coords)
        }
        Queries::Own { itself } => ValidatedQueries::Own { itself },
    };
    let answers = index.query_backend()?;
    answers.check_queries(queries, &wanted)?;
    run(answers, queries, wanted)
}

fn checked_boxes<'a, I: SpatialIndex + ?Sized>(
    index: &I,
    boxes: &'a [[I::Point; 2]],
    mask: Option<&PointMask>,
) -> Result<Cow<'a, [CoordOf<I>]>> {
    if let Some(mask) = mask {
        mask.check(index.num_points())?;
    }
    checked_coordinates(boxes.as_flattened(), "corner of a box")
}

/// Delivers the points that are looked for.
fn find_batches<I: SpatialIndex + ?Sized>(
    index: &I,
    num_rows: usize,
    sought: RangeQuery<'_, CoordOf<I>>,
    sorted: bool,
    batches: &mut Batches<'_>,
    mut look: impl FnMut(WithinBatch<'_, I::Point>) -> ControlFlow<()>,
) -> Result<Delivered> {
    let _span = tracing::debug_span!("range_batches", rows = num_rows).entered();
    Delivery::run(batches, index.device(), num_rows, |delivery| {
        let show = &mut |first: usize, mut found: RangeResultMut<'_, CoordOf<I>>| {
            if sorted {
                found.sort();
            }
            look(WithinBatch::new(first, found.read_only()))
        };
        index.query_backend()?.find_batches(sought, delivery, show)
    })
}

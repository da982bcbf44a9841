//! The queries of every index of points.

use kauri_kernels::query::visit::Visit;
use kauri_kernels::thread::coord::{Coord, Float};
use std::borrow::Cow;
use std::ops::ControlFlow;
use std::slice;

use crate::batches::{Batches, Delivered, Delivery};
use crate::device::Device;
use crate::error::Result;
use crate::memory::{self, Parts};
use crate::point::{Cartesian, DistanceOf, Point, checked_coordinates};
use crate::query::backend::{NearestQuery, QueryBackend, RangeQuery, Regions, ValidatedQueries};
use crate::query::batches::NearestBatch;
use crate::query::neighbors::{Neighbor, NeighborRow, Neighbors};
use crate::query::options::{PointMask, Queries, QueryOptions, ValidatedOptions};
use crate::query::result_rows;
use crate::query::within::RangeResult;
use crate::rows::{Rows, RowsBatch};

pub(crate) mod sealed {
    pub trait Sealed {}
}

/// The type of distances in the results of an index.
type Distance<I> = DistanceOf<<I as SpatialIndex>::Point>;

/// An index of points that answers queries: [`KdTree`](crate::KdTree), [`BalancedKdTree`](crate::BalancedKdTree),
/// [`RTree`](crate::RTree), [`Quadtree`](crate::Quadtree), [`Octree`](crate::Octree).
///
/// ```
/// use kauri::query::QueryOptions;
/// use kauri::{Device, KdTree, KdTreeOptions, Quadtree, QuadtreeOptions, Result, SpatialIndex};
///
/// /// The number of points within 1 of the origin.
/// fn near_the_origin(index: &impl SpatialIndex<Point = [f32; 2]>) -> Result<u32> {
///     Ok(index.count_within(&[[0.0, 0.0]], 1.0, &QueryOptions::default())?[0])
/// }
///
/// let (device, points) = (Device::best()?, [[0.0f32, 0.0], [3.0, 4.0], [1.0, 0.0]]);
/// assert_eq!(near_the_origin(&KdTree::build(&device, &points, &KdTreeOptions::default())?)?, 2);
/// assert_eq!(near_the_origin(&Quadtree::build(&device, &points, &QuadtreeOptions::default())?)?, 2);
/// # Ok::<(), kauri::Error>(())
/// ```
///
/// Results do not depend on the index, except for the order of points found within a distance or in boxes. Import the trait to call
/// its methods. [`query`](crate::query) has a table of them, with the types of their results.
///
/// | index | choose it for |
/// |---|---|
/// | [`KdTree`](crate::KdTree) | neighbors and ranges alone; 1 to 8 dimensions |
/// | [`RTree`](crate::RTree) | few queries for a build; points that are inserted and removed; 1 to 8 dimensions |
/// | [`BalancedKdTree`](crate::BalancedKdTree) | a build on several GPUs; medians, nodes, a list of equal points |
/// | [`Quadtree`](crate::Quadtree), [`Octree`](crate::Octree) | cells and levels of detail; more points than device memory holds; 2 or 3 dimensions |
///
/// The trait [`DeviceIndex`](crate::query::DeviceIndex) has the queries on device buffers.
///
/// All indexes but [`RTree`](crate::RTree) are immutable: points cannot be added, moved or removed. Build another index over the changed
/// points, or leave points out of a query by a [`PointMask`]. Queries only read, so threads may share one index.
///
/// Calls in batches pass the rows to `visit` in order, on the calling thread, while a GPU computes the next batch. [`ControlFlow::Break`]
/// stops the call, which then returns what it delivered. The rows equal those of the call that returns the whole result. If `visit`
/// panics, the call stops, and index and batches stay usable.
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
    /// The type of the points.
    type Point: Point;

    /// The type of the coordinates that the index stores: that of the points ([`Point::Coord`]), but `f64` in a
    /// [`BalancedKdTree`](crate::BalancedKdTree) over points of `i32`.
    type StoredCoord: Coord<Distance = DistanceOf<Self::Point>>;

    /// Converts the coordinates of points to the type that the index stores.
    #[doc(hidden)]
    fn to_stored(coords: Cow<'_, [<Self::Point as Point>::Coord]>) -> Result<Cow<'_, [Self::StoredCoord]>>;

    /// The device that the index lives on.
    fn device(&self) -> &Device;

    /// Number of points, and of the rows of a query for all points, which are in the order of the ids.
    fn num_points(&self) -> usize;

    /// Number of ids that points have had, and of the points of a mask: ids are `0..num_ids`. It is the number of points, unless points of
    /// an [`RTree`](crate::RTree) have been removed.
    fn num_ids(&self) -> usize {
        self.num_points()
    }

    #[doc(hidden)]
    fn query_backend(&self) -> Result<&dyn QueryBackend<Self::StoredCoord>>;

    /// Returns the `k` nearest points of every query, sorted by (distance, id).
    ///
    /// - Result: n x k ids and squared distances, see [`Neighbors`]. Rows are padded with `u32::MAX` and infinity where
    ///   the index has fewer than `k` points; `k` = 0 gives n empty rows.
    /// - Squared distances are (dx*dx + dy*dy) + …, in axis order and in the type of the coordinates, for integers in `f64`,
    ///   without contraction: the same bits on every backend.
    /// - Cost: O(log n + k) nodes per query for points spread in few dimensions, and for any number of equal points. Memory beside the
    ///   result: on the CPU at most 32 MiB and O(k) per thread; the first query to an index builds boxes of its subtrees there, which take
    ///   up to an eighth of its memory.
    ///
    /// # Errors
    /// The errors of [`KdTree::build`](crate::KdTree::build) for the first invalid query;
    /// [`Error::ResultTooLarge`](crate::Error::ResultTooLarge) if n x k entries do not fit in memory, for which there is
    /// [`SpatialIndex::nearest_batches`]; errors of the device.
    fn nearest(&self, queries: &[Self::Point], k: usize) -> Result<Neighbors<Self::Point>> {
        self.nearest_with(queries, k, &QueryOptions::default())
    }

    /// Returns the `k` nearest points of every query by these options. Queries are points, or all points of the index
    /// ([`Queries::SelfQuery`]).
    ///
    /// # Errors
    /// The errors of [`nearest`](SpatialIndex::nearest); [`Error::InvalidLength`](crate::Error::InvalidLength) for a radius or a period
    /// that is negative or NaN; [`Error::Shape`](crate::Error::Shape) for a mask of another number of points, for periods of
    /// [`LonLat`](crate::LonLat) points, or unless there is one period per axis; [`Error::BeyondPeriod`](crate::Error::BeyondPeriod) for the first query that is more than a period from a point.
    fn nearest_with<'a>(
        &self,
        queries: impl Into<Queries<'a, Self::Point>>,
        k: usize,
        options: &QueryOptions<Self::Point>,
    ) -> Result<Neighbors<Self::Point>> {
        checked(self, queries.into(), options, |backend, queries, options| {
            let _span = tracing::debug_span!("nearest", queries = queries.len, k).entered();
            let rows = result_rows(queries.len, k)?;
            let (ids, dist2) = backend.nearest(NearestQuery { queries, k, options }, rows)?;
            Ok(Neighbors::new(queries.len, k, ids, dist2))
        })
    }

    /// Returns the nearest point of one query; of equally near points, the point with the smallest id. `None` if the index has no points.
    ///
    /// This call is for programs that have one query at a time. A k-d tree on the CPU answers without allocating memory. On a GPU each
    /// call uploads the query, launches kernels and waits for them: pass many queries to [`nearest`](SpatialIndex::nearest) instead.
    ///
    /// ```
    /// use kauri::{Device, KdTree, KdTreeOptions, SpatialIndex};
    /// let points = [[0.0f32, 0.0], [3.0, 4.0], [1.0, 0.0]];
    /// let tree = KdTree::build(&Device::cpu(), &points, &KdTreeOptions::default())?;
    /// let nearest = tree.nearest_one(&[3.0, 3.0])?.expect("the tree has points");
    /// assert_eq!((nearest.id, nearest.dist2), (1, 1.0));
    /// # Ok::<(), kauri::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`nearest`](SpatialIndex::nearest).
    fn nearest_one(&self, query: &Self::Point) -> Result<Option<Neighbor<Distance<Self>>>> {
        self.nearest_one_with(query, &QueryOptions::default())
    }

    /// Returns the nearest point of one query by these options, as [`nearest_one`](SpatialIndex::nearest_one); `None` if the options
    /// exclude every point.
    ///
    /// # Errors
    /// The errors of [`nearest_with`](SpatialIndex::nearest_with).
    fn nearest_one_with(
        &self,
        query: &Self::Point,
        options: &QueryOptions<Self::Point>,
    ) -> Result<Option<Neighbor<Distance<Self>>>> {
        let (mut ids, mut dist2) = ([u32::MAX], [Distance::<Self>::INFINITY]);
        nearest_of_one(self, query, options, &mut ids, &mut dist2)?;
        Ok(NeighborRow::without_padding(&ids, &dist2).first())
    }

    /// Returns the `k` nearest points of one query, sorted by (distance, id); fewer than `k` if the index has fewer points.
    ///
    /// A k-d tree on the CPU allocates only the result for `k` up to 64. On a GPU each call launches kernels, as
    /// [`nearest_one`](SpatialIndex::nearest_one) does.
    ///
    /// ```
    /// use kauri::{Device, KdTree, KdTreeOptions, SpatialIndex};
    /// let points = [[0.0f32, 0.0], [3.0, 4.0], [1.0, 0.0]];
    /// let tree = KdTree::build(&Device::cpu(), &points, &KdTreeOptions::default())?;
    /// let ids: Vec<u32> = tree.nearest_k(&[0.9, 0.0], 2)?.iter().map(|neighbor| neighbor.id).collect();
    /// assert_eq!(ids, [2, 0]);
    /// # Ok::<(), kauri::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`nearest`](SpatialIndex::nearest).
    fn nearest_k(&self, query: &Self::Point, k: usize) -> Result<Vec<Neighbor<Distance<Self>>>> {
        self.nearest_k_with(query, k, &QueryOptions::default())
    }

    /// Returns the `k` nearest points of one query by these options, as [`nearest_k`](SpatialIndex::nearest_k).
    ///
    /// # Errors
    /// The errors of [`nearest_with`](SpatialIndex::nearest_with).
    fn nearest_k_with(
        &self,
        query: &Self::Point,
        k: usize,
        options: &QueryOptions<Self::Point>,
    ) -> Result<Vec<Neighbor<Distance<Self>>>> {
        const ON_STACK: usize = 64;
        let k = k.min(self.num_points());
        let mut on_stack = ([u32::MAX; ON_STACK], [Distance::<Self>::INFINITY; ON_STACK]);
        let mut on_heap;
        let (ids, dist2) = if k <= ON_STACK {
            (&mut on_stack.0[..k], &mut on_stack.1[..k])
        } else {
            on_heap = result_rows::<Distance<Self>>(1, k)?;
            on_heap.0.resize(k, u32::MAX);
            on_heap.1.resize(k, Distance::<Self>::INFINITY);
            (&mut on_heap.0[..], &mut on_heap.1[..])
        };
        nearest_of_one(self, query, options, ids, dist2)?;
        memory::collect(NeighborRow::without_padding(ids, dist2).iter(), "neighbors")
    }

    /// Visits the points around every query on all CPU threads, and returns a result per query: a sum over the nearest points or within a
    /// radius, say. No ids are written, so there is no memory for them.
    ///
    /// `begin` makes the visitor of a query from its number and the largest distance of the options: infinity, or that of
    /// [`QueryOptions::radius`], squared for the Euclidean norm. The visitor takes the points within its [bound](Visit::bound), which may
    /// fall as it takes points. `end` makes the result. A visitor is the same code in a kernel, where
    /// [`DeviceIndex::visit_on`](crate::query::DeviceIndex::visit_on) visits the points of an index on a GPU. A visitor that depends on the
    /// order of the points, as a sum of floats does, may have another result there.
    ///
    /// ```
    /// use kauri::query::{NearestPoints, QueryOptions, Visit};
    /// use kauri::{Device, KdTree, KdTreeOptions, SpatialIndex};
    ///
    /// /// The power of the photons within the bound.
    /// struct Power<'a> {
    ///     bound: f32,
    ///     powers: &'a [f32],
    ///     sum: f32,
    /// }
    ///
    /// impl Visit<f32> for Power<'_> {
    ///     fn bound(&self) -> f32 {
    ///         self.bound
    ///     }
    ///
    ///     fn point(&mut self, _: f32, id: u32) {
    ///         self.sum += self.powers[id as usize];
    ///     }
    /// }
    ///
    /// let (photons, powers) = ([[0.0f32, 0.0], [3.0, 4.0], [1.0, 0.0]], [0.5, 4.0, 2.0]);
    /// let tree = KdTree::build(&Device::cpu(), &photons, &KdTreeOptions::default())?;
    /// // Within a radius of 1.
    /// let options = QueryOptions::default().radius(1.0);
    /// let begin = |_, bound| Power { bound, powers: &powers, sum: 0.0 };
    /// let sums = tree.visit(&[[0.0, 0.0], [3.0, 3.0]], &options, begin, |_, power| power.sum)?;
    /// assert_eq!(sums, [2.5, 4.0]);
    /// // The two nearest photons, by the visitor that keeps them.
    /// let begin = |_, bound| NearestPoints::<f32, 2>::new(bound);
    /// let sums = tree.visit(&[[2.0, 1.0]], &QueryOptions::default(), begin, |_, nearest| {
    ///     let mut sum = 0.0;
    ///     nearest.for_each(|_, id| sum += powers[id as usize]);
    ///     sum
    /// })?;
    /// assert_eq!(sums, [2.5]);
    /// # Ok::<(), kauri::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`nearest_with`](SpatialIndex::nearest_with); [`Error::NotOnCpu`](crate::Error::NotOnCpu) if the points are in device
    /// memory. A quadtree that was built out of core is visited on the CPU.
    fn visit<'a, V: Visit<Distance<Self>>, R: Send>(
        &self,
        queries: impl Into<Queries<'a, Self::Point>>,
        options: &QueryOptions<Self::Point>,
        begin: impl Fn(usize, Distance<Self>) -> V + Sync,
        end: impl Fn(usize, V) -> R + Sync,
    ) -> Result<Vec<R>> {
        checked(self, queries.into(), options, |backend, queries, options| {
            let mut results = memory::vec_with_capacity(queries.len, "results of visits")?;
            let slots = Parts::new(&mut results.spare_capacity_mut()[..queries.len]);
            backend.visit(queries, options, &|query, traverse| {
                let mut visitor = begin(query, options.bound);
                traverse(&mut visitor);
                // SAFETY: the backend calls this once for each query, so no two threads write the same result.
                unsafe { slots.write(query, end(query, visitor)) };
            })?;
            // SAFETY: every result has been written, and the slice above shows that the capacity is there.
            unsafe { results.set_len(queries.len) };
            Ok(results)
        })
    }

    /// Counts the points within `radius` of every query, border included; for [`LonLat`](crate::LonLat) in meters. `radius` replaces
    /// [`QueryOptions::radius`].
    ///
    /// # Errors
    /// The errors of [`SpatialIndex::nearest_with`].
    fn count_within<'a>(
        &self,
        queries: impl Into<Queries<'a, Self::Point>>,
        radius: Distance<Self>,
        options: &QueryOptions<Self::Point>,
    ) -> Result<Vec<u32>> {
        let options = options.clone().radius(radius);
        checked(self, queries.into(), &options, |backend, queries, options| {
            backend.count(RangeQuery { regions: Regions::Within(queries), options })
        })
    }

    /// Returns the points within `radius` of every query, border included; for [`LonLat`](crate::LonLat) in meters. `radius` replaces
    /// [`QueryOptions::radius`]. Points of a row are in the order of the tree, unless the options are [`sorted`](QueryOptions::sorted).
    ///
    /// ```
    /// use kauri::query::QueryOptions;
    /// use kauri::{Device, KdTree, KdTreeOptions, SpatialIndex};
    /// let points = [[0.0f32, 0.0], [3.0, 4.0], [1.0, 0.0]];
    /// let tree = KdTree::build(&Device::cpu(), &points, &KdTreeOptions::default())?;
    /// let found = tree.within(&[[0.0, 0.0]], 1.0, &QueryOptions::default().sorted())?;
    /// assert_eq!(found.row(0).ids(), [0, 2]);
    /// # Ok::<(), kauri::Error>(())
    /// ```
    ///
    /// Memory: 4 bytes and a coordinate per found point, 8 bytes per query; on the CPU up to 0.8 GB more during the call.
    ///
    /// # Errors
    /// The errors of [`SpatialIndex::nearest_with`]; [`Error::ResultTooLarge`](crate::Error::ResultTooLarge), with the number of points
    /// found, if they do not fit in memory: [`within_batches`](SpatialIndex::within_batches) delivers them in batches.
    fn within<'a>(
        &self,
        queries: impl Into<Queries<'a, Self::Point>>,
        radius: Distance<Self>,
        options: &QueryOptions<Self::Point>,
    ) -> Result<Rows<Neighbor<Distance<Self>>>> {
        let options = options.clone().radius(radius);
        let mut found = checked(self, queries.into(), &options, |backend, queries, options| {
            backend.find(RangeQuery { regions: Regions::Within(queries), options })
        })?;
        if options.sorted {
            found.rows_mut().sort();
        }
        let RangeResult { offsets, ids, dist2 } = found;
        Ok(Rows::new(offsets, (ids, dist2)))
    }

    /// Counts the points in every box, border included. A box is its least and its greatest corner; it is empty if a least coordinate is
    /// above the greatest one. With a mask, only its points count.
    ///
    /// # Errors
    /// The errors of [`KdTree::build`](crate::KdTree::build) for the first invalid corner;
    /// [`Error::Shape`](crate::Error::Shape) for a mask of another number of points; [`Error::OutOfMemory`](crate::Error::OutOfMemory);
    /// errors of the device.
    fn count_in_boxes(&self, boxes: &[[Self::Point; 2]], mask: Option<&PointMask>) -> Result<Vec<u32>>
    where
        Self::Point: Cartesian,
    {
        checked_boxes(self, boxes, mask, |backend, query| backend.count(query))
    }

    /// Returns the points in every box, as [`count_in_boxes`](SpatialIndex::count_in_boxes) counts them, in the order of the tree.
    ///
    /// ```
    /// use kauri::{Device, KdTree, KdTreeOptions, SpatialIndex};
    /// let points = [[0.0f32, 0.0], [3.0, 4.0], [1.0, 0.0]];
    /// let tree = KdTree::build(&Device::cpu(), &points, &KdTreeOptions::default())?;
    /// let found = tree.in_boxes(&[[[0.5, -1.0], [3.0, 4.0]]], None)?;
    /// assert_eq!(found.row(0).len(), 2); // points 1 and 2
    /// # Ok::<(), kauri::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`count_in_boxes`](SpatialIndex::count_in_boxes); [`Error::ResultTooLarge`](crate::Error::ResultTooLarge), with the
    /// number of points found, if they do not fit in memory: [`in_boxes_batches`](SpatialIndex::in_boxes_batches) delivers them in
    /// batches.
    fn in_boxes(&self, boxes: &[[Self::Point; 2]], mask: Option<&PointMask>) -> Result<Rows<u32>>
    where
        Self::Point: Cartesian,
    {
        let found = checked_boxes(self, boxes, mask, |backend, query| backend.find(query))?;
        Ok(Rows::new(found.offsets, found.ids))
    }

    /// Delivers the `k` nearest points of every query, as [`nearest_with`](SpatialIndex::nearest_with), in batches.
    ///
    /// Memory: that of [`Batches`]; a self-query on a GPU also copies the points' coordinates.
    ///
    /// ```
    /// use kauri::{Batches, Device, KdTree, KdTreeOptions, SpatialIndex};
    /// use kauri::query::QueryOptions;
    /// use std::ops::ControlFlow;
    /// let points = [[0.0f32, 0.0], [3.0, 4.0], [1.0, 0.0]];
    /// let tree = KdTree::build(&Device::cpu(), &points, &KdTreeOptions::default())?;
    ///
    /// // Stop at the first query that is far from every point.
    /// let queries = [[0.0, 0.1], [9.0, 9.0], [1.0, 1.0]];
    /// let mut far = None;
    /// let mut batches = Batches::new().rows(1);
    /// let delivered = tree.nearest_batches(&queries, 1, &QueryOptions::default(), &mut batches, |batch| {
    ///     far = batch.iter().find(|(_, near)| near.dist2()[0] > 25.0).map(|(query, _)| query);
    ///     if far.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    /// })?;
    /// assert_eq!(far, Some(1));
    /// assert!(delivered.rows == 2 && !delivered.is_complete);
    /// # Ok::<(), kauri::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`nearest_with`](SpatialIndex::nearest_with), of queries before any batch;
    /// [`Error::RowTooLarge`](crate::Error::RowTooLarge) if one row exceeds the limits of a batch.
    fn nearest_batches<'a>(
        &self,
        queries: impl Into<Queries<'a, Self::Point>>,
        k: usize,
        options: &QueryOptions<Self::Point>,
        batches: &mut Batches<'_>,
        mut visit: impl FnMut(NearestBatch<'_, Self::Point>) -> ControlFlow<()>,
    ) -> Result<Delivered> {
        checked(self, queries.into(), options, |backend, queries, options| {
            let _span = tracing::debug_span!("nearest_batches", queries = queries.len, k).entered();
            Delivery::run(batches, self.device(), queries.len, |delivery| {
                let query = NearestQuery { queries, k, options };
                backend.nearest_batches(query, delivery, &mut |rows, ids, dist2| {
                    visit(NearestBatch::new(rows, k, ids, dist2))
                })
            })
        })
    }

    /// Delivers the points within `radius` of every query, border included, as [`within`](SpatialIndex::within), in batches. The
    /// result may have more than 2^32 points.
    ///
    /// Points are counted before they are written, on the CPU by a separate traversal. Memory: that of [`Batches`]; a self-query on a GPU
    /// also copies the points' coordinates.
    ///
    /// # Errors
    /// The errors of [`nearest_with`](SpatialIndex::nearest_with), of queries before any batch;
    /// [`Error::RowTooLarge`](crate::Error::RowTooLarge) for the first row that exceeds the limits of a batch, after the rows
    /// before it have been delivered.
    fn within_batches<'a>(
        &self,
        queries: impl Into<Queries<'a, Self::Point>>,
        radius: Distance<Self>,
        options: &QueryOptions<Self::Point>,
        batches: &mut Batches<'_>,
        mut visit: impl FnMut(RowsBatch<'_, Neighbor<Distance<Self>>>) -> ControlFlow<()>,
    ) -> Result<Delivered> {
        let QueryOptions { sorted, .. } = *options;
        let options = options.clone().radius(radius);
        checked(self, queries.into(), &options, |backend, queries, options| {
            let _span = tracing::debug_span!("within_batches", queries = queries.len).entered();
            Delivery::run(batches, self.device(), queries.len, |delivery| {
                let query = RangeQuery { regions: Regions::Within(queries), options };
                backend.range_batches(query, delivery, &mut |first, mut found| {
                    if sorted {
                        found.sort();
                    }
                    visit(RowsBatch::new(first, found.offsets, NeighborRow::new(found.ids, found.dist2)))
                })
            })
        })
    }

    /// Delivers the points in every box, as [`in_boxes`](SpatialIndex::in_boxes), in batches; see
    /// [`within_batches`](SpatialIndex::within_batches).
    ///
    /// # Errors
    /// The errors of [`count_in_boxes`](SpatialIndex::count_in_boxes), of boxes before any batch;
    /// [`Error::RowTooLarge`](crate::Error::RowTooLarge) for the first row that exceeds the limits of a batch, after the rows
    /// before it have been delivered.
    fn in_boxes_batches(
        &self,
        boxes: &[[Self::Point; 2]],
        mask: Option<&PointMask>,
        batches: &mut Batches<'_>,
        mut visit: impl FnMut(RowsBatch<'_, u32>) -> ControlFlow<()>,
    ) -> Result<Delivered>
    where
        Self::Point: Cartesian,
    {
        checked_boxes(self, boxes, mask, |backend, query| {
            let _span = tracing::debug_span!("in_boxes_batches", boxes = boxes.len()).entered();
            Delivery::run(batches, self.device(), boxes.len(), |delivery| {
                backend.range_batches(query, delivery, &mut |first, found| {
                    visit(RowsBatch::new(first, found.offsets, &*found.ids))
                })
            })
        })
    }
}

/// Writes the nearest points of one query, as many as there are entries, which hold padding.
fn nearest_of_one<I: SpatialIndex + ?Sized>(
    index: &I,
    query: &I::Point,
    options: &QueryOptions<I::Point>,
    ids: &mut [u32],
    dist2: &mut [Distance<I>],
) -> Result<()> {
    checked(index, Queries::Points(slice::from_ref(query)), options, |backend, queries, options| {
        let query = NearestQuery { queries, k: ids.len(), options };
        if ids.is_empty() { Ok(()) } else { backend.nearest_of_one(query, ids, dist2) }
    })
}

/// Validates options and queries before any work, the same on every device, and runs them.
fn checked<I: SpatialIndex + ?Sized, R>(
    index: &I,
    queries: Queries<'_, I::Point>,
    options: &QueryOptions<I::Point>,
    run: impl FnOnce(
        &dyn QueryBackend<I::StoredCoord>,
        ValidatedQueries<'_, I::StoredCoord>,
        &ValidatedOptions<Distance<I>>,
    ) -> Result<R>,
) -> Result<R> {
    let options = ValidatedOptions::new(options, index.num_ids())?;
    let (coords, len, first_excluded) = match queries {
        Queries::Points(points) => {
            (Some(I::to_stored(checked_coordinates(points, "query")?)?), points.len(), None)
        }
        Queries::SelfQuery { include_self } => (None, index.num_points(), (!include_self).then_some(0)),
    };
    let backend = index.query_backend()?;
    let (own_ids, dims) = (if coords.is_none() { backend.own_ids() } else { &[] }, I::Point::DIMS);
    let queries = ValidatedQueries { coords: coords.as_deref(), first_excluded, own_ids, len, dims };
    if !options.periods.is_empty() {
        backend.check_queries(queries, &options)?;
    }
    let self_coords = queries.self_coords(backend)?;
    run(backend, queries.with_self_coords(&self_coords), &options)
}

/// Validates boxes and a mask, and runs the range query in the boxes.
fn checked_boxes<I: SpatialIndex + ?Sized, R>(
    index: &I,
    boxes: &[[I::Point; 2]],
    mask: Option<&PointMask>,
    run: impl FnOnce(&dyn QueryBackend<I::StoredCoord>, RangeQuery<'_, I::StoredCoord>) -> Result<R>,
) -> Result<R> {
    if let Some(mask) = mask {
        mask.check(index.num_ids())?;
    }
    let corners = I::to_stored(checked_coordinates(boxes.as_flattened(), "corner of a box")?)?;
    let (regions, options) =
        (Regions::InBoxes(&corners, I::Point::DIMS), ValidatedOptions::points(mask.cloned()));
    run(index.query_backend()?, RangeQuery { regions, options: &options })
}

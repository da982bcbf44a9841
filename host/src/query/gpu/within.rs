//! Range queries: counts the points of each row, scans the counts to offsets, then writes the points.

use crate::device::{Buffer, Layout, Region, Stream, Temp, Workspace};
use crate::error::{Error, Result};
use crate::primitives::operator::Sum;
use crate::primitives::pairs::empty_view;
use crate::primitives::scan::{Scan, ScanKind};
use crate::query::gpu::BucketIndex;
use crate::query::gpu::device_options::{DeviceOptions, QueryView};
use crate::query::gpu::order::{QueryOrder, QueryOrderPlan};
use crate::query::item_bytes;
use crate::query::on_device::{DeviceRangeQuery, DeviceWithin, num_found};
use cuda_std::mem::{Slice, SliceMut};
use kauri_kernels::primitives::expand::primitives_expand_counts;
use kauri_kernels::query::queries::flags;
use kauri_kernels::query::within::{
    query_count_in_boxes, query_count_within, query_emit_in_boxes, query_emit_within,
};
use kauri_kernels::thread::coord::Coord;
use kauri_kernels::thread::measure::MAX_DIMS;
use kauri_kernels::warp::look_back::Decoupled;

/// The launches of a range query.
pub(crate) struct RangeLaunch<'a, C: Coord> {
    tree: &'a BucketIndex<C>,
    stream: &'a Stream,
    query: RangeView<'a, C>,
}

/// A range query, its input in device memory.
#[derive(Clone, Copy)]
pub(crate) enum RangeView<'a, C> {
    /// The points within the options' bound of each query.
    Within(&'a DeviceOptions<C>, QueryView<'a, C>),
    /// The points in each box: the least and then the greatest corner of each box, and the mask of points or an empty view.
    InBoxes(Slice<'a, C>, Slice<'a, u32>),
}

/// Stands for `k` in a range query.
pub(crate) const ALL: usize = usize::MAX;

/// Output of a range query: ids, and distances if requested.
#[derive(Clone, Copy)]
pub(crate) struct DeviceRangeMut<'a, C> {
    pub(crate) ids: SliceMut<'a, u32>,
    /// The distances, as many as ids; `None` if they are not requested.
    pub(crate) dist2: Option<SliceMut<'a, C>>,
}

impl<'a, C: Coord> RangeLaunch<'a, C> {
    /// Checks devices and shapes of a query.
    pub(crate) fn new(
        tree: &'a BucketIndex<C>,
        stream: &'a Stream,
        query: DeviceRangeQuery<'a, C>,
    ) -> Result<Self> {
        let query = match query {
            DeviceRangeQuery::Within(options, queries) => {
                tree.check(stream, options)?;
                tree.num_queries(stream, queries)?;
                if !options.validated.has_radius {
                    return Err(Error::NoRadius);
                }
                RangeView::Within(options, QueryView::all(tree, queries))
            }
            DeviceRangeQuery::InBoxes(options, corners) => {
                tree.check(stream, options)?;
                let box_len = 2 * tree.dims;
                corners.check(stream, "corners of boxes", corners.len() / box_len * box_len)?;
                RangeView::InBoxes(corners.slice(), options.mask())
            }
        };
        tree.wait(stream)?;
        Ok(Self { tree, stream, query })
    }

    /// Takes a query that needs no check, on a stream that already waits for the build of the tree.
    pub(crate) fn of(tree: &'a BucketIndex<C>, stream: &'a Stream, query: RangeView<'a, C>) -> Self {
        Self { tree, stream, query }
    }

    /// Number of queries or boxes.
    pub(crate) fn num_rows(&self) -> usize {
        match self.query {
            RangeView::Within(_, queries) => queries.len(self.tree.dims),
            RangeView::InBoxes(corners, _) => corners.len() / (2 * self.tree.dims),
        }
    }

    /// True if the query returns distances.
    fn with_distances(&self) -> bool {
        matches!(self.query, RangeView::Within(..))
    }

    /// Bytes of a found point.
    pub(crate) fn item_bytes(&self) -> u64 {
        if self.with_distances() { item_bytes::<C>() } else { size_of::<u32>() as u64 }
    }

    /// The stream of the launches.
    pub(crate) fn stream(&self) -> &'a Stream {
        self.stream
    }

    /// Counts the points of each row.
    pub(crate) fn count(self, workspace: &mut Workspace, counts: &mut Buffer<u32>) -> Result<()> {
        counts.check(self.stream, "counts of points", self.num_rows())?;
        let (plan, temp) = self.prepare(workspace)?;
        // SAFETY: there are as many counts as rows; borrows keep the buffers distinct, and buffers wait for the device before they are
        // freed.
        unsafe { plan.count(&self, &temp, counts.slice_mut(), flags::COUNT_SUBTREES).map(drop) }
    }

    /// Finds the points of each row, up to the capacity of the buffers.
    pub(crate) fn find(
        self,
        workspace: &mut Workspace,
        offsets: &mut Buffer<u64>,
        ids: &mut Buffer<u32>,
        dist2: Option<&mut Buffer<C>>,
    ) -> Result<()> {
        offsets.check(self.stream, "offsets of rows", self.num_rows() + 1)?;
        ids.check_device(self.stream)?;
        if let Some(dist2) = &dist2 {
            dist2.check(self.stream, "distances of points found", ids.len())?;
        }
        let (plan, temp) = self.prepare(workspace)?;
        let (offsets, dist2) = (offsets.slice_mut(), dist2.map(Buffer::slice_mut));
        // SAFETY: lengths have been checked; borrows keep the buffers distinct, and buffers wait for the device before they are freed.
        unsafe {
            let order = plan.offsets(&self, &temp, offsets)?;
            self.emit(order, offsets.read_only(), DeviceRangeMut { ids: ids.slice_mut(), dist2 })
        }
    }

    /// Finds the points of each row in buffers of exactly their size; waits for the device.
    pub(crate) fn find_all(self, workspace: &mut Workspace) -> Result<DeviceWithin<C>> {
        let (gpu, stream) = (&self.tree.gpu, self.stream);
        let mut offsets = Buffer::uninitialized(gpu, self.num_rows() + 1, "offsets of rows")?;
        let (plan, temp) = self.prepare(workspace)?;
        // SAFETY: there is one offset more than rows; the buffers belong to this call, and wait for the device before they are freed.
        unsafe {
            let order = plan.offsets(&self, &temp, offsets.slice_mut())?;
            let num_found = num_found(stream, &offsets)?;
            let total = usize::try_from(num_found).unwrap_or(usize::MAX);
            let with_distances = self.with_distances();
            let num_distances = if with_distances { total } else { 0 };
            let too_large =
                |error: Error| error.of_result(num_found, num_found.saturating_mul(self.item_bytes()));
            let mut ids = Buffer::uninitialized(gpu, total, "ids of points found").map_err(too_large)?;
            let mut dist2 =
                Buffer::uninitialized(gpu, num_distances, "distances of points found").map_err(too_large)?;
            let output =
                DeviceRangeMut { ids: ids.slice_mut(), dist2: with_distances.then(|| dist2.slice_mut()) };
            self.emit(order, offsets.slice(), output)?;
            Ok(DeviceWithin { offsets, ids, dist2 })
        }
    }

    /// Returns the plan and its scratch memory.
    pub(crate) fn prepare<'w>(&self, workspace: &'w mut Workspace) -> Result<(RangePlan, Temp<'w>)> {
        let mut layout = Layout::new();
        let plan = RangePlan::new(&mut layout, self);
        let temp = workspace.carve(self.stream, &layout, "k-d tree queries")?;
        Ok((plan, temp))
    }

    /// Writes the points of each row from its offset on, up to the capacity of the output.
    ///
    /// # Safety
    /// `order` and `offsets` come from [`RangePlan::offsets`] of this launch; nothing else uses its buffers and the output until the
    /// stream has done the work.
    pub(crate) unsafe fn emit(
        &self,
        order: QueryOrder<'_>,
        offsets: Slice<'_, u64>,
        DeviceRangeMut { ids, dist2 }: DeviceRangeMut<'_, C>,
    ) -> Result<()> {
        let Self { tree, stream, query } = self;
        let dist2 = dist2.unwrap_or_else(empty_view);
        if ids.is_empty() {
            return Ok(());
        }
        // SAFETY: passed on to the caller.
        unsafe {
            match *query {
                RangeView::Within(options, queries) => {
                    let queries = tree.kernel_queries(options, queries, ALL, order);
                    let (n, args) = (self.num_rows() as u64, (tree.view(), queries, offsets, ids, dist2));
                    match options.kernel_dims(tree.dims) {
                        2 => stream.launch_items::<query_emit_within<C, 2>>(n, args),
                        3 => stream.launch_items::<query_emit_within<C, 3>>(n, args),
                        4 => stream.launch_items::<query_emit_within<C, 4>>(n, args),
                        _ => stream.launch_items::<query_emit_within<C, MAX_DIMS>>(n, args),
                    }
                }
                RangeView::InBoxes(corners, mask) => {
                    let (n, args) = (self.num_rows() as u64, (tree.view(), corners, mask, offsets, ids));
                    match tree.dims {
                        2 => stream.launch_items::<query_emit_in_boxes<C, 2>>(n, args),
                        3 => stream.launch_items::<query_emit_in_boxes<C, 3>>(n, args),
                        _ => stream.launch_items::<query_emit_in_boxes<C, MAX_DIMS>>(n, args),
                    }
                }
            }
        }
    }
}

/// Plan and scratch memory of one launch.
pub(crate) struct RangePlan {
    /// `None` for boxes, which are processed as they are.
    order_plan: Option<QueryOrderPlan>,
    counts: Region<u32>,
    scan: Scan,
}

impl RangePlan {
    /// Plans a call; queries are sorted unless they are in order.
    fn new<C: Coord>(layout: &mut Layout, launch: &RangeLaunch<'_, C>) -> Self {
        let num_rows = launch.num_rows();
        let order_plan = match launch.query {
            RangeView::Within(options, queries) => {
                let are_ordered = queries.are_in_order || options.is_in_order(launch.tree.num_points(), ALL);
                Some(QueryOrderPlan::plan(layout, launch.tree, queries, are_ordered))
            }
            RangeView::InBoxes(..) => None,
        };
        let counts = layout.reserve(num_rows);
        Self { order_plan, counts, scan: Scan::plan::<u64, Decoupled>(layout, num_rows + 1) }
    }

    /// Sorts the queries.
    ///
    /// # Safety
    /// As of [`QueryOrderPlan::run`].
    unsafe fn order<'a, C: Coord>(
        &self,
        launch: &RangeLaunch<'a, C>,
        temp: &Temp<'a>,
    ) -> Result<QueryOrder<'a>> {
        match (launch.query, &self.order_plan) {
            // SAFETY: passed on to the caller.
            (RangeView::Within(_, queries), Some(order_plan)) => unsafe {
                order_plan.run(launch.stream, temp, launch.tree, queries)
            },
            _ => Ok(QueryOrder { order: None, excluded: empty_view().read_only() }),
        }
    }

    /// Counts the points of each row, whole subtrees at once if `count_subtrees` is [`flags::COUNT_SUBTREES`] and the options allow it.
    /// Returns the order of the rows for [`RangeLaunch::emit`].
    ///
    /// # Safety
    /// There are as many counts as rows; nothing else uses the buffers of the call and the counts until the stream has done the work.
    unsafe fn count<'a, C: Coord>(
        &self,
        launch: &RangeLaunch<'a, C>,
        temp: &Temp<'a>,
        counts: SliceMut<'_, u32>,
        count_subtrees: u32,
    ) -> Result<QueryOrder<'a>> {
        let &RangeLaunch { tree, stream, query } = launch;
        // SAFETY: passed on to the caller.
        unsafe {
            let order = self.order(launch, temp)?;
            match query {
                RangeView::Within(options, queries) => {
                    let mut queries = tree.kernel_queries(options, queries, ALL, order);
                    if options.mask().is_empty() && tree.bucket_len == 0 {
                        queries.flags |= count_subtrees;
                    }
                    let (n, args) = (launch.num_rows() as u64, (tree.view(), queries, counts));
                    match options.kernel_dims(tree.dims) {
                        2 => stream.launch_items::<query_count_within<C, 2>>(n, args),
                        3 => stream.launch_items::<query_count_within<C, 3>>(n, args),
                        4 => stream.launch_items::<query_count_within<C, 4>>(n, args),
                        _ => stream.launch_items::<query_count_within<C, MAX_DIMS>>(n, args),
                    }
                }
                RangeView::InBoxes(corners, mask) => {
                    let (n, args) = (counts.len() as u64, (tree.view(), corners, mask, counts));
                    match tree.dims {
                        2 => stream.launch_items::<query_count_in_boxes<C, 2>>(n, args),
                        3 => stream.launch_items::<query_count_in_boxes<C, 3>>(n, args),
                        _ => stream.launch_items::<query_count_in_boxes<C, MAX_DIMS>>(n, args),
                    }
                }
            }?;
            Ok(order)
        }
    }

    /// Counts the points of each row and scans the counts to offsets. Returns the order of the rows for [`RangeLaunch::emit`].
    ///
    /// # Safety
    /// There is one offset more than rows; nothing else uses the buffers of the call and the offsets until the stream has done the work.
    pub(crate) unsafe fn offsets<'a, C: Coord>(
        &self,
        launch: &RangeLaunch<'a, C>,
        temp: &Temp<'a>,
        offsets: SliceMut<'_, u64>,
    ) -> Result<QueryOrder<'a>> {
        let (stream, counts) = (launch.stream, temp.view(self.counts));
        // SAFETY: passed on to the caller; the counts are the plan's own.
        unsafe {
            // Every point is visited, as by `emit`, so that counts and points agree even where a coordinate is NaN.
            let order = self.count(launch, temp, counts, 0)?;
            let args = (counts.read_only(), offsets);
            stream.launch_items::<primitives_expand_counts>(offsets.len() as u64, args)?;
            let from = offsets.read_only();
            self.scan.run::<u64, Sum, Decoupled>(stream, temp, from, offsets, ScanKind::Exclusive)?;
            Ok(order)
        }
    }
}

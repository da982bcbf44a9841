//! Range queries: counts the points of each row, scans the counts to offsets, then writes the points.

use crate::device::{Buffer, Layout, Region, Stream, Temp, Workspace};
use crate::error::{Error, Result};
use crate::point::with_kernel_dims;
use crate::primitives::expand::Offsets;
use crate::primitives::pairs::empty_view;
use crate::query::backend::DeviceRows;
use crate::query::gpu::BucketIndex;
use crate::query::gpu::device_options::{DeviceOptions, QueryView};
use crate::query::gpu::order::{Arrangement, QueryOrder, QueryOrderPlan};
use crate::query::item_bytes;
use crate::query::on_device::{DeviceRangeQuery, DeviceWithin, num_found};
use cuda_std::mem::{Slice, SliceMut};
use kauri_kernels::policy::QUERIES;
use kauri_kernels::query::queries::flags;
use kauri_kernels::query::within::{
    query_count_in_boxes, query_count_within, query_emit_in_boxes, query_emit_within,
};
use kauri_kernels::thread::coord::Coord;
use kauri_kernels::thread::measure::MAX_DIMS;

/// The launches of a range query, its input in device memory.
pub(super) struct RangeLaunch<'a, C: Coord> {
    pub(super) tree: &'a BucketIndex<C>,
    /// Waits for the build of the tree.
    pub(super) stream: &'a Stream,
    pub(super) options: &'a DeviceOptions<C::Distance>,
    pub(super) regions: RegionViews<'a, C>,
}

/// The region of each row of a range query.
#[derive(Clone, Copy)]
pub(super) enum RegionViews<'a, C> {
    /// The points within the options' bound of each query.
    Within(QueryView<'a, C>),
    /// The points in each box: the least and then the greatest corner of each box.
    InBoxes(Slice<'a, C>),
}

/// Stands for `k` in a range query.
pub(super) const ALL: usize = usize::MAX;

/// Output of a range query: ids, and distances if requested.
#[derive(Clone, Copy)]
pub(super) struct DeviceRangeMut<'a, C> {
    pub(super) ids: SliceMut<'a, u32>,
    /// The distances, as many as ids; `None` if they are not requested.
    pub(super) dist2: Option<SliceMut<'a, C>>,
}

impl<'a, C: Coord> RangeLaunch<'a, C> {
    /// Checks devices and shapes of a query.
    pub(super) fn new(
        tree: &'a BucketIndex<C>,
        stream: &'a Stream,
        query: DeviceRangeQuery<'a, C>,
    ) -> Result<Self> {
        let (DeviceRangeQuery::Within(options, _) | DeviceRangeQuery::InBoxes(options, _)) = query;
        tree.check(stream, options)?;
        let regions = match query {
            DeviceRangeQuery::Within(_, queries) => {
                tree.num_queries(stream, queries)?;
                if !options.validated.has_radius {
                    return Err(Error::NoRadius);
                }
                RegionViews::Within(QueryView::all(tree, stream, queries)?)
            }
            DeviceRangeQuery::InBoxes(_, corners) => {
                let box_len = 2 * tree.dims;
                corners.check(stream, "corners of boxes", corners.len() / box_len * box_len)?;
                RegionViews::InBoxes(corners.slice())
            }
        };
        tree.wait(stream)?;
        Ok(Self { tree, stream, options, regions })
    }

    /// Number of queries or boxes.
    pub(super) fn num_rows(&self) -> usize {
        match self.regions {
            RegionViews::Within(queries) => queries.len(self.tree.dims),
            RegionViews::InBoxes(corners) => corners.len() / (2 * self.tree.dims),
        }
    }

    /// Counts the points of each row.
    pub(super) fn count(&self, workspace: &mut Workspace, counts: &mut Buffer<u32>) -> Result<()> {
        counts.check(self.stream, "counts of points", self.num_rows())?;
        let (plan, temp) = self.prepare(workspace)?;
        // SAFETY: there are as many counts as rows; borrows keep the buffers distinct, and buffers wait for the device before they are
        // freed.
        unsafe { self.launch_count(&plan, &temp, counts.slice_mut(), flags::COUNT_SUBTREES).map(drop) }
    }

    /// Finds the points of each row, up to the capacity of the buffers.
    pub(super) fn find(
        &self,
        workspace: &mut Workspace,
        DeviceRows { offsets, ids, dist2 }: DeviceRows<'_, C::Distance>,
    ) -> Result<()> {
        offsets.check(self.stream, "offsets of rows", self.num_rows() + 1)?;
        ids.check_device(self.stream)?;
        if let Some(dist2) = &dist2 {
            dist2.check(self.stream, "distances of points found", ids.len())?;
        }
        let (offsets, dist2) = (offsets.slice_mut(), dist2.map(Buffer::slice_mut));
        // SAFETY: lengths have been checked; borrows keep the buffers distinct, and buffers wait for the device before they are freed.
        unsafe {
            let order = self.offsets(workspace, offsets)?;
            self.emit(order, offsets.read_only(), DeviceRangeMut { ids: ids.slice_mut(), dist2 })
        }
    }

    /// Finds the points of each row in buffers of exactly their size; waits for the device.
    pub(super) fn find_all(&self, workspace: &mut Workspace) -> Result<DeviceWithin<C::Distance>> {
        let (gpu, stream) = (&self.tree.gpu, self.stream);
        let mut offsets = Buffer::uninitialized(gpu, self.num_rows() + 1, "offsets of rows")?;
        // SAFETY: there is one offset more than rows; the buffers belong to this call, and wait for the device before they are freed.
        unsafe {
            let order = self.offsets(workspace, offsets.slice_mut())?;
            let num_found = num_found(stream, &offsets)?;
            let with_distances = matches!(self.regions, RegionViews::Within(_));
            let (num_distances, item_bytes) = if with_distances {
                (num_found, item_bytes::<C::Distance>())
            } else {
                (0, size_of::<u32>() as u64)
            };
            let mut ids = Buffer::of_result(gpu, num_found, item_bytes, "ids of points found")?;
            let mut dist2 = Buffer::uninitialized(gpu, num_distances as usize, "distances of points found")
                .map_err(|error| error.of_result(num_found, item_bytes))?;
            let output =
                DeviceRangeMut { ids: ids.slice_mut(), dist2: with_distances.then(|| dist2.slice_mut()) };
            self.emit(order, offsets.slice(), output)?;
            Ok(DeviceWithin { offsets, ids, dist2 })
        }
    }

    /// Plans the launches; queries are sorted unless they are in order. Returns the plan and its scratch memory.
    fn prepare<'w>(&self, workspace: &'w mut Workspace) -> Result<(RangePlan, Temp<'w>)> {
        let (mut layout, num_rows) = (Layout::new(), self.num_rows());
        let order_plan = match self.regions {
            RegionViews::Within(queries) => {
                let is_in_order =
                    queries.are_in_order || self.options.is_in_order(self.tree.num_points(), ALL);
                // Points are visited in the order of the tree, from the root on.
                let are_few = queries.len(self.tree.dims) < QUERIES.ordered_from;
                let arrangement =
                    if is_in_order || are_few { Arrangement::Given } else { Arrangement::Sorted };
                QueryOrderPlan::plan(&mut layout, self.tree, queries, arrangement)
            }
            RegionViews::InBoxes(_) => QueryOrderPlan::default(),
        };
        let counts = layout.reserve(num_rows);
        let offsets = Offsets::plan(&mut layout, num_rows);
        let temp = workspace.carve(self.stream, &layout, "k-d tree queries")?;
        Ok((RangePlan { order_plan, counts, offsets }, temp))
    }

    /// Counts the points of each row, whole subtrees at once if `count_subtrees` is [`flags::COUNT_SUBTREES`] and the options allow it.
    /// Returns the order of the rows for [`emit`](Self::emit).
    ///
    /// # Safety
    /// There are as many counts as rows; nothing else uses the buffers of the call and the counts until the stream has done the work.
    unsafe fn launch_count<'w>(
        &self,
        plan: &RangePlan,
        temp: &Temp<'w>,
        counts: SliceMut<'_, u32>,
        count_subtrees: u32,
    ) -> Result<QueryOrder<'w>>
    where
        'a: 'w,
    {
        let (&Self { tree, stream, options, regions }, n) = (self, self.num_rows() as u64);
        // SAFETY: passed on to the caller.
        unsafe {
            match regions {
                RegionViews::Within(views) => {
                    let order = plan.order_plan.run(temp, tree, views)?;
                    let mut queries = tree.kernel_queries(options, views, ALL, order);
                    // Whole subtrees count the excluded point, which the tree may not have if it is a part of a union.
                    let may_lack_excluded = views.first_excluded.is_some();
                    if options.mask.is_empty() && tree.bucket_len == 0 && !may_lack_excluded {
                        queries.flags |= count_subtrees;
                    }
                    let args = (tree.view(), queries, counts);
                    with_kernel_dims!(options.kernel_dims(tree.dims), D in [2, 3, 4] or MAX_DIMS => {
                        stream.launch_items::<query_count_within<C, D>>(n, args)
                    })?;
                    Ok(order)
                }
                RegionViews::InBoxes(corners) => {
                    let args = (tree.view(), corners, options.mask.slice(), counts);
                    with_kernel_dims!(tree.dims, D in [2, 3] or MAX_DIMS => {
                        stream.launch_items::<query_count_in_boxes<C, D>>(n, args)
                    })?;
                    Ok(QueryOrder { order: None, excluded: empty_view().read_only() })
                }
            }
        }
    }

    /// Counts the points of each row and scans the counts to offsets. Returns the order of the rows for [`emit`](Self::emit).
    ///
    /// # Safety
    /// There is one offset more than rows; nothing else uses the buffers of the call and the offsets until the stream has done the work.
    pub(super) unsafe fn offsets<'w>(
        &self,
        workspace: &'w mut Workspace,
        offsets: SliceMut<'_, u64>,
    ) -> Result<QueryOrder<'w>>
    where
        'a: 'w,
    {
        let (plan, temp) = self.prepare(workspace)?;
        let counts = temp.view(plan.counts);
        // SAFETY: passed on to the caller.
        unsafe {
            // Every point is visited, as by `emit`, so that counts and points agree even where a coordinate is NaN.
            let order = self.launch_count(&plan, &temp, counts, 0)?;
            plan.offsets.run(&temp, counts.read_only(), offsets)?;
            Ok(order)
        }
    }

    /// Writes the points of each row from its offset on, up to the capacity of the output.
    ///
    /// # Safety
    /// `order` and `offsets` come from [`offsets`](Self::offsets); nothing else uses its buffers and the output until the stream has done
    /// the work.
    pub(super) unsafe fn emit(
        &self,
        order: QueryOrder<'_>,
        offsets: Slice<'_, u64>,
        DeviceRangeMut { ids, dist2 }: DeviceRangeMut<'_, C::Distance>,
    ) -> Result<()> {
        let (&Self { tree, stream, options, regions }, n) = (self, self.num_rows() as u64);
        if ids.is_empty() {
            return Ok(());
        }
        // SAFETY: passed on to the caller.
        unsafe {
            match regions {
                RegionViews::Within(queries) => {
                    let queries = tree.kernel_queries(options, queries, ALL, order);
                    let args = (tree.view(), queries, offsets, ids, dist2.unwrap_or_else(empty_view));
                    with_kernel_dims!(options.kernel_dims(tree.dims), D in [2, 3, 4] or MAX_DIMS => {
                        stream.launch_items::<query_emit_within<C, D>>(n, args)
                    })
                }
                RegionViews::InBoxes(corners) => {
                    let args = (tree.view(), corners, options.mask.slice(), offsets, ids);
                    with_kernel_dims!(tree.dims, D in [2, 3] or MAX_DIMS => {
                        stream.launch_items::<query_emit_in_boxes<C, D>>(n, args)
                    })
                }
            }
        }
    }
}

/// Plan and scratch memory of one launch.
struct RangePlan {
    /// Not used for boxes, which are processed as they are.
    order_plan: QueryOrderPlan,
    counts: Region<u32>,
    offsets: Offsets,
}

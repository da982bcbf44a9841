//! The points within a distance of each query, or in each box: counts, offsets by a scan, then the points.

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

/// A call that finds points within something.
pub(crate) struct RangeLaunch<'a, C: Coord> {
    tree: &'a BucketIndex<C>,
    stream: &'a Stream,
    within: Within<'a, C>,
}

/// What points are looked for by.
#[derive(Clone, Copy)]
pub(crate) enum Within<'a, C> {
    /// Queries, and the distance that was asked for.
    Distance(&'a DeviceOptions<C>, QueryView<'a, C>),
    /// The least and then the greatest coordinates of each box, and a bit a point that may be taken, or nothing.
    Boxes(Slice<'a, C>, Slice<'a, u32>),
}

/// As many neighbors as there are.
pub(crate) const ALL: usize = usize::MAX;

/// Room for what is found: ids and distances as far as they are wanted.
#[derive(Clone, Copy)]
pub(crate) struct DeviceRangeMut<'a, C> {
    pub(crate) ids: SliceMut<'a, u32>,
    /// As many as ids, or none.
    pub(crate) dist2: Option<SliceMut<'a, C>>,
}

impl<'a, C: Coord> RangeLaunch<'a, C> {
    /// Checks that all is on the tree's device, and of its shape.
    pub(crate) fn new(
        tree: &'a BucketIndex<C>,
        stream: &'a Stream,
        look: DeviceRangeQuery<'a, C>,
    ) -> Result<Self> {
        let within = match look {
            DeviceRangeQuery::Within(asked, queries) => {
                tree.check(stream, asked)?;
                tree.num_queries(stream, queries)?;
                if !asked.wanted.has_radius {
                    return Err(Error::NoRadius);
                }
                Within::Distance(asked, QueryView::all(tree, queries))
            }
            DeviceRangeQuery::InBoxes(asked, corners) => {
                tree.check(stream, asked)?;
                let of_box = 2 * tree.dims;
                corners.check(stream, "corners of boxes", corners.len() / of_box * of_box)?;
                Within::Boxes(corners.slice(), asked.mask())
            }
        };
        tree.wait(stream)?;
        Ok(Self { tree, stream, within })
    }

    /// A call of what is known to be right, on a stream that comes after what has been done to the tree.
    pub(crate) fn of(tree: &'a BucketIndex<C>, stream: &'a Stream, within: Within<'a, C>) -> Self {
        Self { tree, stream, within }
    }

    /// Number of queries or boxes.
    pub(crate) fn num_rows(&self) -> usize {
        match self.within {
            Within::Distance(_, queries) => queries.len(self.tree.dims),
            Within::Boxes(corners, _) => corners.len() / (2 * self.tree.dims),
        }
    }

    /// Distances are wanted.
    fn with_distances(&self) -> bool {
        matches!(self.within, Within::Distance(..))
    }

    /// Bytes of a point found.
    pub(crate) fn item_bytes(&self) -> u64 {
        if self.with_distances() { item_bytes::<C>() } else { size_of::<u32>() as u64 }
    }

    /// The stream that it is made on.
    pub(crate) fn stream(&self) -> &'a Stream {
        self.stream
    }

    /// Counts the points of each row.
    pub(crate) fn count(self, workspace: &mut Workspace, counts: &mut Buffer<u32>) -> Result<()> {
        counts.check(self.stream, "counts of points", self.num_rows())?;
        let (plan, temp) = self.prepare(workspace)?;
        // SAFETY: there are as many counts as rows, the borrows keep buffers apart, and these wait for the device before they are
        // freed.
        unsafe { plan.count(&self, &temp, counts.slice_mut(), flags::COUNT_SUBTREES).map(drop) }
    }

    /// Finds the points of each row, as far as there is room for them.
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
        // SAFETY: lengths have been checked, the borrows keep buffers apart, and these wait for the device before they are freed.
        unsafe {
            let through = plan.offsets(&self, &temp, offsets)?;
            self.emit(through, offsets.read_only(), DeviceRangeMut { ids: ids.slice_mut(), dist2 })
        }
    }

    /// Finds the points of each row, in as much room as they take; waits for their number.
    pub(crate) fn find_all(self, workspace: &mut Workspace) -> Result<DeviceWithin<C>> {
        let (gpu, stream) = (&self.tree.gpu, self.stream);
        let mut offsets = Buffer::uninitialized(gpu, self.num_rows() + 1, "offsets of rows")?;
        let (plan, temp) = self.prepare(workspace)?;
        // SAFETY: there is an offset more than rows; the buffers are of this call, and wait for the device before they are freed.
        unsafe {
            let through = plan.offsets(&self, &temp, offsets.slice_mut())?;
            let num_found = num_found(stream, &offsets)?;
            let total = usize::try_from(num_found).unwrap_or(usize::MAX);
            let with_distances = self.with_distances();
            let num_distances = if with_distances { total } else { 0 };
            let too_large =
                |error: Error| error.of_result(num_found, num_found.saturating_mul(self.item_bytes()));
            let mut ids = Buffer::uninitialized(gpu, total, "ids of points found").map_err(too_large)?;
            let mut dist2 =
                Buffer::uninitialized(gpu, num_distances, "distances of points found").map_err(too_large)?;
            let room =
                DeviceRangeMut { ids: ids.slice_mut(), dist2: with_distances.then(|| dist2.slice_mut()) };
            self.emit(through, offsets.slice(), room)?;
            Ok(DeviceWithin { offsets, ids, dist2 })
        }
    }

    /// The plan, its memory, and the tree ready on the stream.
    pub(crate) fn prepare<'w>(&self, workspace: &'w mut Workspace) -> Result<(WithinPlan, Temp<'w>)> {
        let mut layout = Layout::new();
        let plan = WithinPlan::new(&mut layout, self);
        let temp = workspace.carve(self.stream, &layout, "k-d tree queries")?;
        Ok((plan, temp))
    }

    /// Writes the points of each row from its offset on, as far as there is room.
    ///
    /// # Safety
    /// Offsets and how rows are gone through are those of the call; nothing else uses its buffers and the room until the stream has done the work.
    pub(crate) unsafe fn emit(
        &self,
        through: QueryOrder<'_>,
        offsets: Slice<'_, u64>,
        DeviceRangeMut { ids, dist2 }: DeviceRangeMut<'_, C>,
    ) -> Result<()> {
        let Self { tree, stream, within } = self;
        let dist2 = dist2.unwrap_or_else(empty_view);
        if ids.is_empty() {
            return Ok(());
        }
        // SAFETY: passed on to the caller.
        unsafe {
            match *within {
                Within::Distance(asked, queries) => {
                    let queries = tree.kernel_queries(asked, queries, ALL, through);
                    let (n, args) = (self.num_rows() as u64, (tree.view(), queries, offsets, ids, dist2));
                    match asked.kernel_dims(tree.dims) {
                        2 => stream.launch_items::<query_emit_within<C, 2>>(n, args),
                        3 => stream.launch_items::<query_emit_within<C, 3>>(n, args),
                        4 => stream.launch_items::<query_emit_within<C, 4>>(n, args),
                        _ => stream.launch_items::<query_emit_within<C, MAX_DIMS>>(n, args),
                    }
                }
                Within::Boxes(corners, mask) => {
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

/// Temporary memory of one call, from counts to points.
pub(crate) struct WithinPlan {
    /// Of queries; boxes are gone through as they come.
    going: Option<QueryOrderPlan>,
    counts: Region<u32>,
    scan: Scan,
}

impl WithinPlan {
    /// Plans a call; queries are put in order unless they are in a good one.
    fn new<C: Coord>(layout: &mut Layout, call: &RangeLaunch<'_, C>) -> Self {
        let num_rows = call.num_rows();
        let going = match call.within {
            Within::Distance(asked, queries) => {
                let are_ordered = queries.are_in_order || asked.is_in_order(call.tree.num_points(), ALL);
                Some(QueryOrderPlan::plan(layout, call.tree, queries, are_ordered))
            }
            Within::Boxes(..) => None,
        };
        let counts = layout.reserve(num_rows);
        Self { going, counts, scan: Scan::plan::<u64, Decoupled>(layout, num_rows + 1) }
    }

    /// How queries are gone through.
    ///
    /// # Safety
    /// As of [`QueryOrderPlan::run`].
    unsafe fn through<'a, C: Coord>(
        &self,
        call: &RangeLaunch<'a, C>,
        temp: &Temp<'a>,
    ) -> Result<QueryOrder<'a>> {
        match (call.within, &self.going) {
            // SAFETY: passed on to the caller.
            (Within::Distance(_, queries), Some(going)) => unsafe {
                going.run(call.stream, temp, call.tree, queries)
            },
            _ => Ok(QueryOrder { order: None, except: empty_view().read_only() }),
        }
    }

    /// Counts the points of each row; with [`flags::COUNT_SUBTREES`] not all are looked at, where that is possible. Returns how rows are
    /// gone through, for [`RangeLaunch::emit`].
    ///
    /// # Safety
    /// As many counts as rows; nothing else uses buffers of the call and counts until the stream has done the work.
    unsafe fn count<'a, C: Coord>(
        &self,
        call: &RangeLaunch<'a, C>,
        temp: &Temp<'a>,
        counts: SliceMut<'_, u32>,
        count_subtrees: u32,
    ) -> Result<QueryOrder<'a>> {
        let &RangeLaunch { tree, stream, within } = call;
        // SAFETY: passed on to the caller.
        unsafe {
            let through = self.through(call, temp)?;
            match within {
                Within::Distance(asked, queries) => {
                    let mut queries = tree.kernel_queries(asked, queries, ALL, through);
                    if asked.mask().is_empty() && tree.bucket_len == 0 {
                        queries.flags |= count_subtrees;
                    }
                    let (n, args) = (call.num_rows() as u64, (tree.view(), queries, counts));
                    match asked.kernel_dims(tree.dims) {
                        2 => stream.launch_items::<query_count_within<C, 2>>(n, args),
                        3 => stream.launch_items::<query_count_within<C, 3>>(n, args),
                        4 => stream.launch_items::<query_count_within<C, 4>>(n, args),
                        _ => stream.launch_items::<query_count_within<C, MAX_DIMS>>(n, args),
                    }
                }
                Within::Boxes(corners, mask) => {
                    let (n, args) = (counts.len() as u64, (tree.view(), corners, mask, counts));
                    match tree.dims {
                        2 => stream.launch_items::<query_count_in_boxes<C, 2>>(n, args),
                        3 => stream.launch_items::<query_count_in_boxes<C, 3>>(n, args),
                        _ => stream.launch_items::<query_count_in_boxes<C, MAX_DIMS>>(n, args),
                    }
                }
            }?;
            Ok(through)
        }
    }

    /// Counts, and sets the offsets, one more than rows, to where each row begins.
    ///
    /// # Safety
    /// One more offset than rows; nothing else uses buffers of the call and offsets until the stream has done the work.
    pub(crate) unsafe fn offsets<'a, C: Coord>(
        &self,
        call: &RangeLaunch<'a, C>,
        temp: &Temp<'a>,
        offsets: SliceMut<'_, u64>,
    ) -> Result<QueryOrder<'a>> {
        let (stream, counts) = (call.stream, temp.view(self.counts));
        // SAFETY: passed on to the caller; the counts are the plan's own.
        unsafe {
            // Each point is looked at, as when they are written: they agree even where a coordinate is not a number.
            let through = self.count(call, temp, counts, 0)?;
            let args = (counts.read_only(), offsets);
            stream.launch_items::<primitives_expand_counts>(offsets.len() as u64, args)?;
            let from = offsets.read_only();
            self.scan.run::<u64, Sum, Decoupled>(stream, temp, from, offsets, ScanKind::Exclusive)?;
            Ok(through)
        }
    }
}

//! The GPU half: the builders, the buckets, the queries, the check.

mod ask;
mod balanced;
mod batches;
mod boxes;
mod cells;
mod nearest;
mod order;
mod selection;
mod splits;
#[cfg(feature = "io")]
mod stored;
mod swaps;
mod tags;
mod within;

use super::backend::{Answers, Backend, Checked, GpuBackend};
use super::batches::{ShowFound, ShowNearest, Sought};
use super::on_device::{DeviceWithin, Look};
use super::query::Wanted;
#[cfg(feature = "io")]
use super::stored::Stored;
use super::within::Found;
use super::{Builder, DeviceQueries, KdTreeOptions, PointMask, SplitRule, num_axes};
use crate::batches::Delivery;
use crate::device::{Buffer, Gpu, Layout, Stream, Temp, Workspace};
use crate::error::{Error, Result};
use crate::memory;
use crate::primitives::cpu::bounds::bounds;
use crate::primitives::pairs::nothing;
use crate::stats::Stats;
pub(super) use ask::Asked;
use ask::QueriesOn;
pub(super) use balanced::Balanced;
pub(crate) use cells::Cells;
use cuda_std::mem::{Slice, SliceMut};
use kauri_kernels::kdtree::buckets::{Cut, boxes_len, least_ids_len, levels};
use kauri_kernels::kdtree::left_balanced::{full_tree, in_order_rank};
use kauri_kernels::kdtree::verify::{kdtree_verify, wrong};
use kauri_kernels::kdtree::walk::GROUP;
use kauri_kernels::thread::coord::Coord;
use nearest::{Nearest, RowsMut};
use rayon::prelude::*;
use selection::Selection;
use splits::{Corners, Splits};
use std::ops::{ControlFlow, Range};
use std::sync::Arc;
use swaps::Swaps;
use tags::Tags;
use within::{Call, Within};

/// Most bytes of queries and results on the device at one time; more go in batches.
const BATCH_BYTES: usize = 1 << 30;

/// A tree in the memory of a GPU: points in the order of a walk in order, and what walks over buckets need.
pub(crate) struct GpuTree<C> {
    gpu: Gpu,
    dims: usize,
    /// Point after point, and room for as many as a whole group takes.
    room: Buffer<C>,
    ids: Buffer<u32>,
    /// The boxes of the children of each node above the buckets.
    boxes: Buffer<C>,
    /// The least id of the points of each node down to the buckets.
    least_ids: Buffer<u32>,
    /// Where each of these nodes splits.
    splits: Buffer<C>,
    /// The axes of the nodes that have children; empty if they go by levels.
    axes: Buffer<u8>,
    rule: SplitRule,
    /// What tells in place of `splits` and `axes` where queries are, if the tree is a quadtree.
    cells: Option<Cells>,
    /// Places of each bucket, some of them without a point; 0 if the tree is left-balanced.
    bucket_len: u32,
    /// The coordinates of the points by id, if the tree was given some that it does not have.
    given: Option<Arc<Buffer<C>>>,
    /// The stream that it was last built on, if that was the caller's.
    built_on: Option<Stream>,
}

/// Room for the nodes of a tree.
#[derive(Clone, Copy)]
struct NodesMut<'a, C> {
    coords: SliceMut<'a, C>,
    ids: SliceMut<'a, u32>,
}

impl<'a, C: Coord> NodesMut<'a, C> {
    /// The places of a tree; what is behind them, and read with the last group of points, is set.
    ///
    /// # Safety
    /// There is room for whole groups, and nothing else uses it until the stream has done the work.
    unsafe fn new(
        stream: &Stream,
        dims: usize,
        room: SliceMut<'a, C>,
        ids: SliceMut<'a, u32>,
    ) -> Result<Self> {
        let num_coords = ids.len() * dims;
        // SAFETY: passed on to the caller.
        unsafe {
            stream.fill_bytes(room.part(num_coords, room.len() - num_coords), 0)?;
            Ok(Self { coords: room.part(0, num_coords), ids })
        }
    }
}

/// What a build plans.
struct Work<C: Coord> {
    /// If nodes split on the widest axis of their cell.
    corners: Option<Corners<C>>,
    by: By<C>,
}

enum By<C: Coord> {
    Tags(Tags<C>),
    Swaps(Swaps),
    Selection(Selection<C>),
}

impl<C: Coord> Work<C> {
    fn plan(layout: &mut Layout, num_points: usize, dims: usize, builder: Builder, rule: SplitRule) -> Self {
        let corners = Corners::plan(layout, dims, rule);
        let mut selection = |in_place| Selection::plan(layout, num_points, dims, rule, in_place);
        let by = match builder {
            Builder::Selection => By::Selection(selection(false)),
            Builder::SelectionInPlace => By::Selection(selection(true)),
            Builder::Tags => By::Tags(Tags::plan(layout, num_points, dims)),
            Builder::TagsInPlace => By::Swaps(Swaps::plan(layout, num_points)),
        };
        Self { corners, by }
    }

    /// True if the points have to be where the nodes will be.
    fn is_in_place(&self) -> bool {
        match &self.by {
            By::Tags(_) => false,
            By::Swaps(_) => true,
            By::Selection(selection) => selection.is_in_place(),
        }
    }
}

/// Bytes of temporary device memory that a build of points in device memory takes.
pub(super) fn work_bytes<C: Coord>(num_points: usize, dims: usize, options: &KdTreeOptions) -> u64 {
    let mut layout = Layout::new();
    Work::<C>::plan(&mut layout, num_points, dims, options.builder, options.split);
    layout.bytes()
}

/// The same of points that have to be brought there.
pub(super) fn temp_bytes<C: Coord>(num_points: usize, dims: usize, options: &KdTreeOptions) -> u64 {
    let mut layout = Layout::new();
    let work = Work::<C>::plan(&mut layout, num_points, dims, options.builder, options.split);
    if !work.is_in_place() {
        layout.reserve::<C>(num_points * dims);
    }
    layout.bytes()
}

/// Bytes of a finished tree.
pub(super) fn tree_bytes<C: Coord>(num_points: usize, dims: usize) -> u64 {
    let n = num_points as u32;
    places_bytes::<C>(num_points, dims, levels(n))
}

/// Bytes of so many places, with so many levels above the buckets.
fn places_bytes<C>(num_places: usize, dims: usize, levels: u32) -> u64 {
    let coords =
        num_places.next_multiple_of(GROUP) * dims + boxes_len(levels, dims) + full_tree(levels) as usize;
    let ids = num_places + least_ids_len(levels);
    (coords * size_of::<C>() + ids * size_of::<u32>()) as u64
}

impl<C: Coord> GpuTree<C> {
    /// Room for a tree.
    pub(super) fn uninitialized(gpu: &Gpu, num_points: usize, dims: usize, rule: SplitRule) -> Result<Self> {
        let mut tree = Self::with_places(gpu, num_points, dims, levels(num_points as u32))?;
        tree.axes = Buffer::uninitialized(gpu, num_axes(num_points, rule), "k-d tree axes")?;
        tree.rule = rule;
        Ok(tree)
    }

    /// Room for so many places with points or without, with so many levels above the buckets.
    fn with_places(gpu: &Gpu, num_places: usize, dims: usize, levels: u32) -> Result<Self> {
        Ok(Self {
            gpu: gpu.clone(),
            dims,
            room: Buffer::uninitialized(gpu, num_places.next_multiple_of(GROUP) * dims, "k-d tree nodes")?,
            ids: Buffer::uninitialized(gpu, num_places, "k-d tree ids")?,
            boxes: Buffer::uninitialized(gpu, boxes_len(levels, dims), "k-d tree boxes")?,
            least_ids: Buffer::uninitialized(gpu, least_ids_len(levels), "k-d tree least ids")?,
            splits: Buffer::uninitialized(gpu, full_tree(levels) as usize, "k-d tree splits")?,
            axes: Buffer::uninitialized(gpu, 0, "k-d tree axes")?,
            rule: SplitRule::RoundRobin,
            cells: None,
            bucket_len: 0,
            given: None,
            built_on: None,
        })
    }

    /// Builds the tree over checked points.
    pub(super) fn build(
        gpu: &Gpu,
        coords: &[C],
        dims: usize,
        options: &KdTreeOptions,
        stats: &mut Stats,
    ) -> Result<Self> {
        let num_points = coords.len() / dims;
        let mut tree = Self::uninitialized(gpu, num_points, dims, options.split)?;
        if num_points == 0 {
            return Ok(tree);
        }
        let stream = Stream::new(gpu)?;
        let mut layout = Layout::new();
        let work = Work::<C>::plan(&mut layout, num_points, dims, options.builder, options.split);
        let room = layout.reserve(if work.is_in_place() { 0 } else { coords.len() });
        let mut workspace = Workspace::new(gpu);
        let temp = workspace.carve(&stream, &layout, "k-d tree build")?;
        // SAFETY: the points are there, in the plan's own memory or where the nodes will be, and everything is waited for before
        // that goes.
        unsafe {
            let points = (!work.is_in_place()).then(|| temp.view(room));
            let to = points.unwrap_or_else(|| tree.room.slice_mut().part(0, coords.len()));
            stats.phase("upload", || temp.upload(&stream, to, coords))?;
            stats.phase("build", || {
                tree.fill(&work, &stream, &temp, points.map(|points| points.read_only()))?;
                stream.synchronize()
            })?;
        }
        Ok(tree)
    }

    /// Makes nodes, boxes and splits of points, which are where the nodes will be if they are not given.
    ///
    /// # Safety
    /// There are as many points as there is room for, and none are given for a build in place; nothing else uses them and the tree
    /// until the stream has done the work.
    unsafe fn fill(
        &mut self,
        work: &Work<C>,
        stream: &Stream,
        temp: &Temp<'_>,
        points: Option<Slice<'_, C>>,
    ) -> Result<()> {
        // SAFETY: passed on to the caller; there is room for the points and more.
        unsafe {
            let nodes = NodesMut::new(stream, self.dims, self.room.slice_mut(), self.ids.slice_mut())?;
            let points = points.unwrap_or(nodes.coords.read_only());
            let corners = work.corners.as_ref();
            let corners = corners.map(|corners| corners.run(stream, temp, points, self.dims)).transpose()?;
            let splits = Splits { corners, axes: self.axes.slice_mut() };
            match &work.by {
                By::Tags(tags) => tags.run(stream, temp, points, nodes, splits)?,
                By::Swaps(swaps) => swaps.run(stream, temp, self.dims, nodes, splits)?,
                By::Selection(selection) => {
                    selection.run(stream, temp, points, nodes, splits, self.boxes.slice_mut())?
                }
            }
            boxes::boxes(stream, self)
        }
    }

    /// The coordinates of the points by id, in host memory.
    fn own(&self, stream: &Stream) -> Result<Vec<C>> {
        match &self.given {
            Some(given) => given.to_vec(stream),
            None => by_id(&self.ids.to_vec(stream)?, &self.room.to_vec(stream)?, self.dims),
        }
    }

    /// The least and the greatest corner of the box of the points.
    fn bounds<const D: usize>(&self, stream: &Stream) -> Result<[[C; D]; 2]> {
        // The root's two boxes, or points without any.
        let of = if self.boxes.is_empty() {
            self.room.front_to_vec(stream, self.ids.len() * D)?
        } else {
            self.boxes.front_to_vec(stream, 4 * D)?
        };
        Ok(bounds(of.as_chunks::<D>().0))
    }

    fn look<R>(
        &self,
        queries: Checked<'_, C>,
        wanted: Wanted<C>,
        run: impl FnOnce(Call<'_, C>) -> Result<R>,
    ) -> Result<R> {
        let stream = self.stream()?;
        let asked = Asked::new(&stream, wanted)?;
        let mut uploaded = None;
        let all = 0..queries.len(self.dims, self.num_points());
        let queries = self.queries_on(&stream, queries, all, &mut uploaded)?;
        run(Call::of(self, &stream, Within::Distance(&asked, queries)))
    }

    /// Some queries on the device.
    fn queries_on<'a>(
        &'a self,
        stream: &Stream,
        queries: Checked<'_, C>,
        range: Range<usize>,
        uploaded: &'a mut Option<Buffer<C>>,
    ) -> Result<QueriesOn<'a, C>> {
        Ok(match queries {
            Checked::Points { coords, first_left_out } => {
                let coords = &coords[range.start * self.dims..range.end * self.dims];
                let coords = uploaded.insert(Buffer::from_slice(stream, coords, "queries")?);
                QueriesOn::of_points(coords.slice()).leaving_out(first_left_out, range.start)
            }
            // SAFETY: queries are numbered as the tree's points are, so the range is one of these.
            Checked::Own { itself } => unsafe { QueriesOn::own(self, range, itself) },
        })
    }

    fn look_in_boxes<R>(
        &self,
        corners: &[C],
        mask: Option<&PointMask>,
        run: impl FnOnce(Call<'_, C>) -> Result<R>,
    ) -> Result<R> {
        let stream = self.stream()?;
        let corners = Buffer::from_slice(&stream, corners, "corners of boxes")?;
        let asked = Asked::<C>::new(&stream, Wanted::points(mask.cloned()))?;
        run(Call::of(self, &stream, Within::Boxes(corners.slice(), asked.mask())))
    }

    /// What a call counts, in host memory.
    fn counts(&self, call: Call<'_, C>) -> Result<Vec<u32>> {
        let stream = call.stream();
        let mut counts = Buffer::uninitialized(&self.gpu, call.num_rows(), "counts of points")?;
        call.count(&mut Workspace::new(&self.gpu), &mut counts)?;
        counts.to_vec(stream)
    }

    /// What a call finds, in host memory.
    fn found(&self, call: Call<'_, C>) -> Result<Found<C>> {
        let (stream, item_bytes) = (call.stream(), call.item_bytes());
        let found = call.find_all(&mut Workspace::new(&self.gpu))?;
        let offsets = found.offsets.to_vec(stream)?;
        let (count, bytes) = (found.ids.len() as u64, found.ids.len() as u64 * item_bytes);
        let copied = || {
            memory::check(bytes, "points found")?;
            Ok(Found { offsets, ids: found.ids.to_vec(stream)?, dist2: found.dist2.to_vec(stream)? })
        };
        copied().map_err(|error: Error| error.of_result(count, bytes))
    }

    /// A new stream, for work after what has been done to the tree.
    fn stream(&self) -> Result<Stream> {
        let stream = Stream::new(&self.gpu)?;
        self.wait(&stream)?;
        Ok(stream)
    }

    /// Lets a stream wait for the one that builds the tree, if that is another.
    fn wait(&self, stream: &Stream) -> Result<()> {
        match &self.built_on {
            Some(built_on) => stream.wait_for(built_on),
            None => Ok(()),
        }
    }

    /// Checks that tree, stream and what was asked for are of one device.
    fn check(&self, stream: &Stream, asked: &Asked<C>) -> Result<()> {
        self.ids.check_device(stream)?;
        asked.check_device(stream)
    }

    /// Number of queries, if they are whole points on the stream's device.
    fn num_queries(&self, stream: &Stream, queries: DeviceQueries<'_, C>) -> Result<usize> {
        match queries {
            DeviceQueries::Coordinates(coords) => {
                let num_queries = coords.len() / self.dims;
                coords.check(stream, "coordinates of the queries", num_queries * self.dims)?;
                Ok(num_queries)
            }
            DeviceQueries::Own { .. } => Ok(self.num_points()),
        }
    }

    /// Number of points that the tree was given.
    fn num_points(&self) -> usize {
        self.given.as_ref().map_or(self.ids.len(), |given| given.len() / self.dims)
    }

    /// Levels above the buckets.
    fn levels(&self) -> u32 {
        Cut::of(self.ids.len() as u32, self.bucket_len).levels
    }

    /// The coordinates of point after point.
    fn coords(&self) -> Slice<'_, C> {
        // SAFETY: the buffer has room for all points, and more behind them.
        unsafe { self.room.slice().part(0, self.ids.len() * self.dims) }
    }
}

impl<C: Coord> Backend<C> for GpuTree<C> {
    fn num_points(&self) -> usize {
        self.num_points()
    }

    fn verify(&self) -> Result<()> {
        let num_points = self.num_points();
        if num_points == 0 {
            return Ok(());
        }
        let stream = self.stream()?;
        let mut seen = Buffer::uninitialized(&self.gpu, num_points, "seen ids")?;
        seen.fill_bytes(&stream, 0)?;
        let mut finding = Buffer::from_slice(&stream, &[u64::MAX], "finding")?;
        let mut layout = Layout::new();
        let corners = Corners::<C>::plan(&mut layout, self.dims, self.rule);
        let mut workspace = Workspace::new(&self.gpu);
        let temp = workspace.carve(&stream, &layout, "box of the points")?;
        let (coords, ids, axes) = (self.coords(), self.ids.slice(), self.axes.slice());
        // SAFETY: the buffers live until the finding has been copied.
        unsafe {
            let corners = match &corners {
                Some(corners) => corners.run(&stream, &temp, coords, self.dims)?,
                None => nothing().read_only(),
            };
            let args = (coords, ids, axes, corners, seen.slice_mut(), finding.slice_mut(), self.dims as u32);
            stream.launch_items::<kdtree_verify<C>>(num_points as u64, args)?;
        }
        match finding.to_vec(&stream)?[0] {
            u64::MAX => Ok(()),
            found => {
                let what = match found as u32 {
                    wrong::ID_RANGE => "its id is not that of a point",
                    wrong::DUPLICATE_ID => "another node has the same id",
                    wrong::AXIS => "it does not split on the widest axis of its cell",
                    _ => "its point is on the wrong side of an ancestor",
                };
                Err(Error::Corrupt { node: found >> 32, what: what.into() })
            }
        }
    }

    fn node_ids(&self) -> Result<Vec<u32>> {
        level_order(&self.ids.to_vec(&self.stream()?)?, "ids of the nodes")
    }

    #[cfg(feature = "io")]
    fn stored(&self) -> Result<Stored<'_, C>> {
        self.to_stored()
    }
}

impl<C: Coord> Answers<C> for GpuTree<C> {
    fn check_queries(&self, queries: Checked<'_, C>, wanted: &Wanted<C>) -> Result<()> {
        if wanted.periods.is_empty() {
            return Ok(());
        }
        let stream = self.stream()?;
        with_dims!(self.dims, D => {
            wanted.check_queries(queries, self.bounds::<D>(&stream)?, || self.own(&stream))
        })
    }

    fn nearest(
        &self,
        queries: Checked<'_, C>,
        k: usize,
        wanted: Wanted<C>,
        mut ids: Vec<u32>,
        mut dist2: Vec<C>,
    ) -> Result<(Vec<u32>, Vec<C>)> {
        let num_queries = queries.len(self.dims, self.num_points());
        if num_queries == 0 || k == 0 {
            return Ok((ids, dist2));
        }
        let stream = self.stream()?;
        let mut workspace = Workspace::new(&self.gpu);
        let asked = Asked::new(&stream, wanted)?;
        let query_bytes = (self.dims * size_of::<C>()).saturating_add(k.saturating_mul(size_of::<C>() + 4));
        let batch = (BATCH_BYTES / query_bytes).clamp(1, num_queries);
        for begin in (0..num_queries).step_by(batch) {
            let range = begin..num_queries.min(begin + batch);
            let mut batch_dist2 =
                Buffer::uninitialized(&self.gpu, range.len() * k, "distances of neighbours")?;
            let mut batch_ids = Buffer::uninitialized(&self.gpu, range.len() * k, "ids of neighbours")?;
            let rows = RowsMut { dist2: batch_dist2.slice_mut(), ids: batch_ids.slice_mut(), k };
            let mut uploaded = None;
            let batch_queries = self.queries_on(&stream, queries, range, &mut uploaded)?;
            let mut layout = Layout::new();
            let plan = Nearest::plan(&mut layout, self, &asked, batch_queries, k);
            let temp = workspace.carve(&stream, &layout, "k-d tree queries")?;
            // SAFETY: the buffers live until the results have been copied; a row belongs to one query.
            unsafe { plan.run(&stream, &temp, self, &asked, batch_queries, rows)? };
            batch_ids.append_to(&stream, &mut ids)?;
            batch_dist2.append_to(&stream, &mut dist2)?;
        }
        let is_own = matches!(queries, Checked::Own { .. });
        if is_own && batch < num_queries && self.given.is_none() {
            // Batches are in the order of the tree.
            let order = self.ids.to_vec(&stream)?;
            return Ok((by_id(&order, &ids, k)?, by_id(&order, &dist2, k)?));
        }
        Ok((ids, dist2))
    }

    fn count_within(&self, queries: Checked<'_, C>, wanted: Wanted<C>) -> Result<Vec<u32>> {
        self.look(queries, wanted, |call| self.counts(call))
    }

    fn within(&self, queries: Checked<'_, C>, wanted: Wanted<C>) -> Result<Found<C>> {
        self.look(queries, wanted, |call| self.found(call))
    }

    fn count_in_boxes(&self, corners: &[C], mask: Option<&PointMask>) -> Result<Vec<u32>> {
        self.look_in_boxes(corners, mask, |call| self.counts(call))
    }

    fn in_boxes(&self, corners: &[C], mask: Option<&PointMask>) -> Result<Found<C>> {
        self.look_in_boxes(corners, mask, |call| self.found(call))
    }

    fn find_batches(
        &self,
        sought: Sought<'_, C>,
        delivery: &mut Delivery<'_, '_>,
        show: &mut ShowFound<'_, C>,
    ) -> Result<ControlFlow<()>> {
        self.deliver_found(sought, delivery, show)
    }

    fn nearest_batches(
        &self,
        queries: Checked<'_, C>,
        k: usize,
        wanted: Wanted<C>,
        delivery: &mut Delivery<'_, '_>,
        show: &mut ShowNearest<'_, C>,
    ) -> Result<ControlFlow<()>> {
        self.deliver_nearest(queries, k, wanted, delivery, show)
    }
}

impl<C: Coord> GpuBackend<C> for GpuTree<C> {
    fn prepare(&self, stream: &Stream, wanted: Wanted<C>) -> Result<Asked<C>> {
        self.ids.check_device(stream)?;
        Asked::new(stream, wanted)
    }

    fn rebuild(
        &mut self,
        stream: &Stream,
        workspace: &mut Workspace,
        coords: &Buffer<C>,
        builder: Builder,
    ) -> Result<()> {
        coords.check(stream, "coordinates of the points", self.num_points() * self.dims)?;
        self.ids.check_device(stream)?;
        let coords = coords.slice();
        if self.num_points() == 0 {
            return Ok(());
        }
        let mut layout = Layout::new();
        let work = Work::<C>::plan(&mut layout, self.num_points(), self.dims, builder, self.rule);
        let temp = workspace.carve(stream, &layout, "k-d tree build")?;
        self.wait(stream)?;
        self.built_on = Some(stream.clone());
        // SAFETY: the borrows keep points and tree apart, and buffers wait for the device before they are freed.
        unsafe {
            if work.is_in_place() {
                stream.copy(self.room.slice_mut().part(0, coords.len()), coords)?;
                return self.fill(&work, stream, &temp, None);
            }
            self.fill(&work, stream, &temp, Some(coords))
        }
    }

    #[allow(clippy::too_many_arguments)]
    fn nearest_on(
        &self,
        stream: &Stream,
        workspace: &mut Workspace,
        queries: DeviceQueries<'_, C>,
        k: usize,
        asked: &Asked<C>,
        ids: &mut Buffer<u32>,
        dist2: &mut Buffer<C>,
    ) -> Result<()> {
        self.check(stream, asked)?;
        let num_queries = self.num_queries(stream, queries)?;
        ids.check(stream, "ids of neighbours", num_queries.saturating_mul(k))?;
        dist2.check(stream, "distances of neighbours", num_queries.saturating_mul(k))?;
        if ids.is_empty() {
            return Ok(());
        }
        let mut layout = Layout::new();
        let rows = RowsMut { dist2: dist2.slice_mut(), ids: ids.slice_mut(), k };
        let queries = QueriesOn::all(self, queries);
        let plan = Nearest::plan(&mut layout, self, asked, queries, k);
        let temp = workspace.carve(stream, &layout, "k-d tree queries")?;
        self.wait(stream)?;
        // SAFETY: lengths have been checked, the borrows keep buffers apart, and buffers wait for the device before they are
        // freed.
        unsafe { plan.run(stream, &temp, self, asked, queries, rows) }
    }

    fn count_on(
        &self,
        stream: &Stream,
        workspace: &mut Workspace,
        look: Look<'_, C>,
        counts: &mut Buffer<u32>,
    ) -> Result<()> {
        Call::new(self, stream, look)?.count(workspace, counts)
    }

    fn find_on(
        &self,
        stream: &Stream,
        workspace: &mut Workspace,
        look: Look<'_, C>,
        offsets: &mut Buffer<u64>,
        ids: &mut Buffer<u32>,
        dist2: Option<&mut Buffer<C>>,
    ) -> Result<()> {
        Call::new(self, stream, look)?.find(workspace, offsets, ids, dist2)
    }

    fn find_all_on(
        &self,
        stream: &Stream,
        workspace: &mut Workspace,
        look: Look<'_, C>,
    ) -> Result<DeviceWithin<C>> {
        Call::new(self, stream, look)?.find_all(workspace)
    }
}

/// What belongs to each node, in level order; given in the order of a walk in order.
fn level_order<T: Copy + Send + Sync>(in_order: &[T], label: &'static str) -> Result<Vec<T>> {
    let mut by_level = memory::vec_with_capacity(in_order.len(), label)?;
    let n = in_order.len() as u32;
    (0..n).into_par_iter().map(|s| in_order[in_order_rank(s, n) as usize]).collect_into_vec(&mut by_level);
    Ok(by_level)
}

/// Rows of `k` entries, which are in the order of `ids`, in that of the ids themselves.
fn by_id<T: Copy + Send + Sync>(ids: &[u32], rows: &[T], k: usize) -> Result<Vec<T>> {
    let mut place = memory::vec_with_capacity(ids.len(), "places of rows")?;
    place.resize(ids.len(), 0_usize);
    for (i, &id) in ids.iter().enumerate() {
        place[id as usize] = i;
    }
    let mut sorted = memory::vec_with_capacity(rows.len(), "rows of the result")?;
    for i in place {
        sorted.extend_from_slice(&rows[i * k..(i + 1) * k]);
    }
    Ok(sorted)
}

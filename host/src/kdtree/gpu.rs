//! The GPU half: the builders and the check.

mod selection;
mod splits;
#[cfg(feature = "io")]
mod stored;
mod swaps;
mod tags;

use crate::device::{Buffer, Gpu, Layout, Stream, Temp, Workspace};
use crate::error::{Error, Result};
use crate::kdtree::backend::{Backend, GpuBackend};
#[cfg(feature = "io")]
use crate::kdtree::stored::Sections;
use crate::kdtree::{Builder, KdTreeOptions, SplitRule, num_axes};
use crate::memory;
use crate::primitives::pairs::empty_view;
use crate::query::backend::{DeviceQueryBackend, QueryBackend};
use crate::query::gpu::{BucketIndex, NodesMut, index_bytes};
use crate::stats::Stats;
use cuda_std::mem::Slice;
use kauri_kernels::kdtree::verify::{kdtree_verify, wrong};
use kauri_kernels::query::buckets::levels;
use kauri_kernels::query::left_balanced::in_order_rank;
use kauri_kernels::thread::coord::Coord;
use rayon::prelude::*;
use selection::Selection;
use splits::{Corners, Splits};
use swaps::Swaps;
use tags::Tags;

/// A left-balanced tree in device memory.
pub(crate) struct GpuTree<C> {
    index: BucketIndex<C>,
    rule: SplitRule,
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
pub(crate) fn work_bytes<C: Coord>(num_points: usize, dims: usize, options: &KdTreeOptions) -> u64 {
    let mut layout = Layout::new();
    Work::<C>::plan(&mut layout, num_points, dims, options.builder, options.split);
    layout.bytes()
}

/// The same of points that have to be brought there.
pub(crate) fn temp_bytes<C: Coord>(num_points: usize, dims: usize, options: &KdTreeOptions) -> u64 {
    let mut layout = Layout::new();
    let work = Work::<C>::plan(&mut layout, num_points, dims, options.builder, options.split);
    if !work.is_in_place() {
        layout.reserve::<C>(num_points * dims);
    }
    layout.bytes()
}

/// Bytes of a finished tree.
pub(crate) fn tree_bytes<C: Coord>(num_points: usize, dims: usize) -> u64 {
    let n = num_points as u32;
    index_bytes::<C>(num_points, dims, levels(n))
}

impl<C: Coord> GpuTree<C> {
    /// Room for a tree.
    pub(crate) fn uninitialized(gpu: &Gpu, num_points: usize, dims: usize, rule: SplitRule) -> Result<Self> {
        let mut index = BucketIndex::with_slots(gpu, num_points, dims, levels(num_points as u32))?;
        index.axes = Buffer::uninitialized(gpu, num_axes(num_points, rule), "k-d tree axes")?;
        Ok(Self { index, rule })
    }

    /// Builds the tree over checked points.
    pub(crate) fn build(
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
            let to = points.unwrap_or_else(|| tree.index.padded_coords.slice_mut().part(0, coords.len()));
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
            let nodes = NodesMut::new(
                stream,
                self.index.dims,
                self.index.padded_coords.slice_mut(),
                self.index.ids.slice_mut(),
            )?;
            let points = points.unwrap_or(nodes.coords.read_only());
            let corners = work.corners.as_ref();
            let corners =
                corners.map(|corners| corners.run(stream, temp, points, self.index.dims)).transpose()?;
            let splits = Splits { corners, axes: self.index.axes.slice_mut() };
            match &work.by {
                By::Tags(tags) => tags.run(stream, temp, points, nodes, splits)?,
                By::Swaps(swaps) => swaps.run(stream, temp, self.index.dims, nodes, splits)?,
                By::Selection(selection) => {
                    selection.run(stream, temp, points, nodes, splits, self.index.boxes.slice_mut())?
                }
            }
            self.index.build_boxes(stream)
        }
    }
}

impl<C: Coord> Backend<C> for GpuTree<C> {
    fn query_backend(&self) -> &dyn QueryBackend<C> {
        &self.index
    }

    fn num_points(&self) -> usize {
        self.index.num_points()
    }

    fn verify(&self) -> Result<()> {
        let num_points = self.index.num_points();
        if num_points == 0 {
            return Ok(());
        }
        let stream = self.index.stream()?;
        let mut seen = Buffer::uninitialized(&self.index.gpu, num_points, "seen ids")?;
        seen.fill_bytes(&stream, 0)?;
        let mut finding = Buffer::from_slice(&stream, &[u64::MAX], "finding")?;
        let mut layout = Layout::new();
        let corners = Corners::<C>::plan(&mut layout, self.index.dims, self.rule);
        let mut workspace = Workspace::new(&self.index.gpu);
        let temp = workspace.carve(&stream, &layout, "box of the points")?;
        let (coords, ids, axes) = (self.index.coords(), self.index.ids.slice(), self.index.axes.slice());
        // SAFETY: the buffers live until the finding has been copied.
        unsafe {
            let corners = match &corners {
                Some(corners) => corners.run(&stream, &temp, coords, self.index.dims)?,
                None => empty_view().read_only(),
            };
            let args =
                (coords, ids, axes, corners, seen.slice_mut(), finding.slice_mut(), self.index.dims as u32);
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
        level_order(&self.index.ids.to_vec(&self.index.stream()?)?, "ids of the nodes")
    }

    #[cfg(feature = "io")]
    fn stored(&self) -> Result<Sections<'_, C>> {
        self.to_stored()
    }
}

impl<C: Coord> GpuBackend<C> for GpuTree<C> {
    fn device_query_backend(&self) -> &dyn DeviceQueryBackend<C> {
        &self.index
    }

    fn rebuild(
        &mut self,
        stream: &Stream,
        workspace: &mut Workspace,
        coords: &Buffer<C>,
        builder: Builder,
    ) -> Result<()> {
        coords.check(stream, "coordinates of the points", self.index.num_points() * self.index.dims)?;
        self.index.ids.check_device(stream)?;
        let coords = coords.slice();
        if self.index.num_points() == 0 {
            return Ok(());
        }
        let mut layout = Layout::new();
        let work = Work::<C>::plan(&mut layout, self.index.num_points(), self.index.dims, builder, self.rule);
        let temp = workspace.carve(stream, &layout, "k-d tree build")?;
        self.index.wait(stream)?;
        self.index.built_on = Some(stream.clone());
        // SAFETY: the borrows keep points and tree apart, and buffers wait for the device before they are freed.
        unsafe {
            if work.is_in_place() {
                stream.copy(self.index.padded_coords.slice_mut().part(0, coords.len()), coords)?;
                return self.fill(&work, stream, &temp, None);
            }
            self.fill(&work, stream, &temp, Some(coords))
        }
    }
}

/// What belongs to each node, in level order; given in the order of a walk in order.
fn level_order<T: Copy + Send + Sync>(in_order: &[T], label: &'static str) -> Result<Vec<T>> {
    let mut by_level = memory::vec_with_capacity(in_order.len(), label)?;
    let n = in_order.len() as u32;
    (0..n).into_par_iter().map(|s| in_order[in_order_rank(s, n) as usize]).collect_into_vec(&mut by_level);
    Ok(by_level)
}

//! Left-balanced trees on a GPU.
//!
//! A build from host memory takes these steps:
//!
//! 1. [`GpuTree::build`] allocates the tree, plans the scratch memory ([`BuildPlan`]) and uploads the points.
//! 2. [`GpuTree::launch_build`] launches the kernels that find the split axes (`axes`), then runs the [`Algorithm`], by default
//!    [`Selection`], whose `run` launches the kernels that write the nodes.
//! 3. [`BucketIndex::build_boxes`] launches the kernels that compute the bounding boxes of the nodes.

mod axes;
mod selection;
#[cfg(feature = "io")]
mod stored;
#[cfg(feature = "research")]
mod swaps;
#[cfg(feature = "research")]
mod tags;
mod verify;

use crate::device::{Buffer, Gpu, Layout, Region, Stream, Temp, Workspace};
use crate::error::Result;
use crate::host_coords::HostCoords;
#[cfg(feature = "io")]
use crate::kdtree::backend::Sections;
use crate::kdtree::backend::{Backend, GpuBackend};
use crate::kdtree::options::{BuildAlgorithm, KdTreeOptions, SplitRule};
use crate::parallel::{self, TASK_ITEMS};
use crate::query::backend::{DeviceQueryBackend, QueryBackend};
use crate::query::gpu::{BucketIndex, Locator, index_bytes, node_slots, padded_len, planes_bytes};
use crate::stats::Stats;
use axes::{PointBounds, SplitAxes, write_varying_axes};
use cuda_std::mem::{Slice, SliceMut};
use kauri_kernels::kdtree::selection::PointsMut;
use kauri_kernels::query::buckets::levels;
use kauri_kernels::query::left_balanced::in_order_rank;
use kauri_kernels::thread::coord::Coord;
use selection::Selection;
use std::mem;

/// A left-balanced tree in device memory. The index stores the nodes in in-order sequence.
pub(crate) struct GpuTree<C> {
    index: BucketIndex<C>,
    rule: SplitRule,
}

/// A build algorithm with its planned scratch memory.
trait Algorithm<C: Coord> {
    /// Returns true if the build expects the points in the memory of the nodes.
    fn is_in_place(&self) -> bool;

    /// Writes the nodes and their axes.
    ///
    /// # Safety
    /// The number of points is the planned one. Points and nodes do not overlap, unless the build is in place. Nothing else uses the memory
    /// until the stream has done the work.
    unsafe fn run(&self, build: Build<'_, C>) -> Result<()>;
}

/// The memory of a build.
#[derive(Clone, Copy)]
struct Build<'a, C> {
    temp: &'a Temp<'a>,
    /// The coordinates of the points.
    coords: Slice<'a, C>,
    nodes: PointsMut<'a, C>,
    splits: SplitAxes<'a, C>,
    /// The memory of the boxes, which are computed after the nodes.
    boxes: SliceMut<'a, C>,
}

/// The scratch memory of a build.
struct BuildPlan<C: Coord> {
    layout: Layout,
    /// The bounding box of the points, if nodes split on the widest axis of their cell.
    bounds: Option<PointBounds<C>>,
    algorithm: Box<dyn Algorithm<C>>,
}

impl<C: Coord> BuildPlan<C> {
    fn new(num_points: usize, dims: usize, algorithm: BuildAlgorithm, rule: SplitRule) -> Self {
        let mut layout = Layout::new();
        let bounds = PointBounds::plan(&mut layout, dims, rule);
        let mut selection = |in_place| Selection::<C>::plan(&mut layout, num_points, dims, rule, in_place);
        let algorithm: Box<dyn Algorithm<C>> = match algorithm {
            BuildAlgorithm::Selection => Box::new(selection(false)),
            BuildAlgorithm::SelectionInPlace => Box::new(selection(true)),
            #[cfg(feature = "research")]
            BuildAlgorithm::Tags
            | BuildAlgorithm::TagsOfUnfinished
            | BuildAlgorithm::TagsAboveCoordinates => {
                Box::new(tags::Tags::<C>::plan(&mut layout, num_points, dims, algorithm))
            }
            #[cfg(feature = "research")]
            BuildAlgorithm::TagsInPlace => Box::new(swaps::Swaps::plan(&mut layout, num_points)),
        };
        Self { layout, bounds, algorithm }
    }

    /// Plans the build over points in host memory, and reserves memory to upload them, unless the build is in place.
    fn with_upload(num_points: usize, dims: usize, options: &KdTreeOptions) -> (Self, Option<Region<C>>) {
        let mut plan = Self::new(num_points, dims, options.algorithm, options.split);
        let uploaded = (!plan.algorithm.is_in_place()).then(|| plan.layout.reserve(num_points * dims));
        (plan, uploaded)
    }
}

/// Returns the temporary device bytes of a build over points in device memory.
pub(crate) fn build_bytes<C: Coord>(num_points: usize, dims: usize, options: &KdTreeOptions) -> u64 {
    BuildPlan::<C>::new(num_points, dims, options.algorithm, options.split).layout.bytes()
}

/// Returns the temporary device bytes of a build over points in host memory: scratch memory, and the uploaded points unless the algorithm
/// works in place.
pub(crate) fn temp_bytes<C: Coord>(num_points: usize, dims: usize, options: &KdTreeOptions) -> u64 {
    BuildPlan::<C>::with_upload(num_points, dims, options).0.layout.bytes()
}

/// Returns the bytes of a finished tree, without the axes of its nodes.
pub(crate) fn tree_bytes<C: Coord>(num_points: usize, dims: usize, rule: SplitRule) -> u64 {
    let mask_bytes = (num_masks(rule) * size_of::<u32>()) as u64;
    let levels = levels(num_points as u32);
    index_bytes::<C>(num_points, dims, levels) + planes_bytes::<C>(levels) + mask_bytes
}

/// Returns the number of bit masks of axes that a tree stores.
fn num_masks(rule: SplitRule) -> usize {
    usize::from(rule == SplitRule::RoundRobin)
}

impl<C: Coord> GpuTree<C> {
    /// Allocates a tree with undefined contents.
    pub(crate) fn uninitialized(gpu: &Gpu, num_points: usize, dims: usize, rule: SplitRule) -> Result<Self> {
        let mut tree = Self::without_coords(gpu, num_points, dims, rule)?;
        tree.index.padded_coords.resize(padded_len(num_points, dims), "points of a k-d tree")?;
        Ok(tree)
    }

    /// Allocates a tree with undefined contents, but no memory for the points.
    pub(crate) fn without_coords(gpu: &Gpu, num_points: usize, dims: usize, rule: SplitRule) -> Result<Self> {
        let levels = levels(num_points as u32);
        let mut index =
            BucketIndex::without_coords(gpu, num_points, dims, levels, Locator::planes(gpu, levels)?)?;
        index.axes = Buffer::uninitialized(gpu, rule.num_stored_axes(num_points), "k-d tree axes")?;
        index.varying_axes = Buffer::uninitialized(gpu, num_masks(rule), "k-d tree axes that vary")?;
        Ok(Self { index, rule })
    }

    /// Builds the tree over points in host memory.
    pub(crate) fn build(
        gpu: &Gpu,
        coords: HostCoords<'_, C>,
        options: &KdTreeOptions,
        stats: &mut Stats,
    ) -> Result<Self> {
        let (num_points, dims) = (coords.num_points(), coords.dims());
        let mut tree = Self::uninitialized(gpu, num_points, dims, options.split)?;
        if num_points == 0 {
            return Ok(tree);
        }
        let stream = Stream::new(gpu)?;
        let (plan, uploaded) = BuildPlan::<C>::with_upload(num_points, dims, options);
        let mut workspace = Workspace::new(gpu);
        let temp = workspace.carve(&stream, &plan.layout, "k-d tree build")?;
        // SAFETY: the points are uploaded to scratch memory, or to the memory of the nodes. The stream is synchronized before either is
        // freed.
        unsafe {
            let points = uploaded.map(|uploaded| temp.view(uploaded));
            let to = points.unwrap_or_else(|| tree.index.padded_coords.slice_mut().part(0, coords.len()));
            stats.phase("upload", || coords.upload(&stream, to))?;
            stats.phase("build", || {
                tree.launch_build(&plan, &temp, points.map(|points| points.read_only()))?;
                stream.synchronize()
            })?;
        }
        Ok(tree)
    }

    /// Launches a build: nodes, split axes and boxes. `points` is `None` for a build in place, whose points are in the memory of the nodes.
    ///
    /// # Safety
    /// The number of points is that of the tree. Nothing else uses the points and the tree until the stream has done the work.
    unsafe fn launch_build(
        &mut self,
        plan: &BuildPlan<C>,
        temp: &Temp<'_>,
        points: Option<Slice<'_, C>>,
    ) -> Result<()> {
        let index = &mut self.index;
        // SAFETY: passed on to the caller; the memory of the nodes holds the points and a padding.
        unsafe {
            let (padded_coords, ids) = (index.padded_coords.slice_mut(), index.ids.slice_mut());
            let nodes = node_slots(&temp.stream, index.dims, padded_coords, ids)?;
            let coords = points.unwrap_or(nodes.coords.read_only());
            let bounds = plan.bounds.as_ref();
            let bounds = bounds.map(|bounds| bounds.run(temp, coords, index.dims)).transpose()?;
            write_varying_axes(&temp.stream, coords, index.dims, index.varying_axes.slice_mut())?;
            let splits = SplitAxes {
                dims: index.dims,
                bounds,
                axes: index.axes.slice_mut(),
                varying: index.varying_axes.slice(),
            };
            let boxes = index.boxes.slice_mut();
            plan.algorithm.run(Build { temp, coords, nodes, splits, boxes })?;
            index.build_boxes(&temp.stream)
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
        verify::verify(&self.index, self.rule)
    }

    fn node_ids(&self) -> Result<Vec<u32>> {
        level_order(&self.index.ids.to_vec(&self.index.stream()?)?, "ids of the nodes")
    }

    #[cfg(feature = "io")]
    fn sections(&self, write: &mut dyn FnMut(Sections<'_, C>) -> Result<()>) -> Result<()> {
        self.copy_sections(write)
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
        algorithm: BuildAlgorithm,
    ) -> Result<()> {
        coords.check(stream, "coordinates of the points", self.index.num_points() * self.index.dims)?;
        self.index.ids.check_device(stream)?;
        let coords = coords.slice();
        if self.index.num_points() == 0 {
            return Ok(());
        }
        let plan = BuildPlan::<C>::new(self.index.num_points(), self.index.dims, algorithm, self.rule);
        let temp = workspace.carve(stream, &plan.layout, "k-d tree build")?;
        let padded_len = padded_len(self.index.num_points(), self.index.dims);
        self.index.padded_coords.resize(padded_len, "points of a k-d tree")?;
        self.index.wait(stream)?;
        self.index.built_on = Some(stream.clone());
        // SAFETY: the borrows keep points and tree apart, and buffers wait for the device before they are freed.
        unsafe {
            if plan.algorithm.is_in_place() {
                stream.copy(self.index.padded_coords.slice_mut().part(0, coords.len()), coords)?;
                return self.launch_build(&plan, &temp, None);
            }
            self.launch_build(&plan, &temp, Some(coords))
        }
    }

    fn build_in_place(
        &mut self,
        stream: &Stream,
        workspace: &mut Workspace,
        coords: &mut Buffer<C>,
    ) -> Result<()> {
        let (num_points, dims) = (self.index.num_points(), self.index.dims);
        if num_points == 0 {
            return Ok(());
        }
        let plan = BuildPlan::<C>::new(num_points, dims, BuildAlgorithm::SelectionInPlace, self.rule);
        let temp = workspace.carve(stream, &plan.layout, "k-d tree build")?;
        self.index.built_on = Some(stream.clone());
        mem::swap(&mut self.index.padded_coords, coords);
        // SAFETY: the tree has the memory of the points now, and buffers wait for the device before they are freed.
        let built = unsafe { self.launch_build(&plan, &temp, None) };
        if built.is_err() {
            mem::swap(&mut self.index.padded_coords, coords);
        }
        built
    }
}

/// Permutes items of the nodes from in-order sequence to level order.
fn level_order<T: Copy + Send + Sync>(in_order: &[T], label: &'static str) -> Result<Vec<T>> {
    let n = in_order.len() as u32;
    parallel::collect(in_order.len(), TASK_ITEMS, label, |s| in_order[in_order_rank(s as u32, n) as usize])
}

//! Left-balanced trees on a GPU.

mod axes;
mod selection;
#[cfg(feature = "io")]
mod stored;
mod swaps;
mod tags;
mod verify;

use crate::device::{Buffer, Gpu, Layout, Stream, Temp, Workspace};
use crate::error::Result;
use crate::kdtree::backend::{Backend, GpuBackend};
use crate::kdtree::options::{BuildAlgorithm, KdTreeOptions, SplitRule};
#[cfg(feature = "io")]
use crate::kdtree::sections::Sections;
use crate::memory;
use crate::query::backend::{DeviceQueryBackend, QueryBackend};
use crate::query::gpu::{BucketIndex, NodesMut, places_bytes};
use crate::stats::Stats;
use axes::{PointBounds, SplitAxes};
use cuda_std::mem::Slice;
use kauri_kernels::query::buckets::levels;
use kauri_kernels::query::left_balanced::in_order_rank;
use kauri_kernels::thread::coord::Coord;
use rayon::prelude::*;
use selection::Selection;
use swaps::Swaps;
use tags::Tags;

/// A left-balanced tree in device memory. The index stores the nodes in in-order sequence.
pub(crate) struct GpuTree<C> {
    index: BucketIndex<C>,
    rule: SplitRule,
}

/// The scratch memory of a build.
struct BuildPlan<C: Coord> {
    /// The bounding box of the points, if nodes split on the widest axis of their cell.
    bounds: Option<PointBounds<C>>,
    algorithm: AlgorithmPlan<C>,
}

enum AlgorithmPlan<C: Coord> {
    Tags(Tags<C>),
    Swaps(Swaps),
    Selection(Selection<C>),
}

impl<C: Coord> BuildPlan<C> {
    fn new(
        layout: &mut Layout,
        num_points: usize,
        dims: usize,
        algorithm: BuildAlgorithm,
        rule: SplitRule,
    ) -> Self {
        let bounds = PointBounds::plan(layout, dims, rule);
        let algorithm = match algorithm {
            BuildAlgorithm::Selection | BuildAlgorithm::SelectionInPlace => {
                let in_place = algorithm == BuildAlgorithm::SelectionInPlace;
                AlgorithmPlan::Selection(Selection::plan(layout, num_points, dims, rule, in_place))
            }
            BuildAlgorithm::Tags => AlgorithmPlan::Tags(Tags::plan(layout, num_points, dims)),
            BuildAlgorithm::TagsInPlace => AlgorithmPlan::Swaps(Swaps::plan(layout, num_points)),
        };
        Self { bounds, algorithm }
    }

    /// Returns true if the build expects the points in the memory of the nodes.
    fn is_in_place(&self) -> bool {
        match &self.algorithm {
            AlgorithmPlan::Tags(_) => false,
            AlgorithmPlan::Swaps(_) => true,
            AlgorithmPlan::Selection(selection) => selection.is_in_place(),
        }
    }
}

/// Returns the temporary device bytes of a build over points in device memory.
pub(crate) fn build_bytes<C: Coord>(num_points: usize, dims: usize, options: &KdTreeOptions) -> u64 {
    let mut layout = Layout::new();
    BuildPlan::<C>::new(&mut layout, num_points, dims, options.algorithm, options.split);
    layout.bytes()
}

/// Returns the temporary device bytes of a build over points in host memory: scratch memory, and the uploaded points unless the algorithm
/// works in place.
pub(crate) fn temp_bytes<C: Coord>(num_points: usize, dims: usize, options: &KdTreeOptions) -> u64 {
    let mut layout = Layout::new();
    let plan = BuildPlan::<C>::new(&mut layout, num_points, dims, options.algorithm, options.split);
    if !plan.is_in_place() {
        layout.reserve::<C>(num_points * dims);
    }
    layout.bytes()
}

/// Returns the bytes of a finished tree.
pub(crate) fn tree_bytes<C: Coord>(num_points: usize, dims: usize) -> u64 {
    let n = num_points as u32;
    places_bytes::<C>(num_points, dims, levels(n))
}

impl<C: Coord> GpuTree<C> {
    /// Allocates a tree with undefined contents.
    pub(crate) fn uninitialized(gpu: &Gpu, num_points: usize, dims: usize, rule: SplitRule) -> Result<Self> {
        let mut index = BucketIndex::with_places(gpu, num_points, dims, levels(num_points as u32))?;
        index.axes = Buffer::uninitialized(gpu, rule.num_stored_axes(num_points), "k-d tree axes")?;
        Ok(Self { index, rule })
    }

    /// Builds the tree over validated points in host memory.
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
        let plan = BuildPlan::<C>::new(&mut layout, num_points, dims, options.algorithm, options.split);
        let uploaded = layout.reserve(if plan.is_in_place() { 0 } else { coords.len() });
        let mut workspace = Workspace::new(gpu);
        let temp = workspace.carve(&stream, &layout, "k-d tree build")?;
        // SAFETY: the points are uploaded to scratch memory, or to the memory of the nodes. The stream is synchronized before either is
        // freed.
        unsafe {
            let points = (!plan.is_in_place()).then(|| temp.view(uploaded));
            let to = points.unwrap_or_else(|| tree.index.room.slice_mut().part(0, coords.len()));
            stats.phase("upload", || temp.upload(&stream, to, coords))?;
            stats.phase("build", || {
                tree.launch_build(&plan, &stream, &temp, points.map(|points| points.read_only()))?;
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
        stream: &Stream,
        temp: &Temp<'_>,
        points: Option<Slice<'_, C>>,
    ) -> Result<()> {
        let index = &mut self.index;
        // SAFETY: passed on to the caller; the memory of the nodes holds the points and a padding.
        unsafe {
            let nodes = NodesMut::new(stream, index.dims, index.room.slice_mut(), index.ids.slice_mut())?;
            let points = points.unwrap_or(nodes.coords.read_only());
            let bounds = plan.bounds.as_ref();
            let bounds = bounds.map(|bounds| bounds.run(stream, temp, points, index.dims)).transpose()?;
            let splits = SplitAxes { bounds, axes: index.axes.slice_mut() };
            match &plan.algorithm {
                AlgorithmPlan::Tags(tags) => tags.run(stream, temp, points, nodes, splits)?,
                AlgorithmPlan::Swaps(swaps) => swaps.run(stream, temp, index.dims, nodes, splits)?,
                AlgorithmPlan::Selection(selection) => {
                    selection.run(stream, temp, points, nodes, splits, index.boxes.slice_mut())?
                }
            }
            index.build_boxes(stream)
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
    fn sections(&self) -> Result<Sections<'_, C>> {
        self.copy_sections()
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
        let mut layout = Layout::new();
        let (num_points, dims) = (self.index.num_points(), self.index.dims);
        let plan = BuildPlan::<C>::new(&mut layout, num_points, dims, algorithm, self.rule);
        let temp = workspace.carve(stream, &layout, "k-d tree build")?;
        self.index.wait(stream)?;
        self.index.built_on = Some(stream.clone());
        // SAFETY: the borrows keep points and tree apart, and buffers wait for the device before they are freed.
        unsafe {
            if plan.is_in_place() {
                stream.copy(self.index.room.slice_mut().part(0, coords.len()), coords)?;
                return self.launch_build(&plan, stream, &temp, None);
            }
            self.launch_build(&plan, stream, &temp, Some(coords))
        }
    }
}

/// Permutes items of the nodes from in-order sequence to level order.
fn level_order<T: Copy + Send + Sync>(in_order: &[T], label: &'static str) -> Result<Vec<T>> {
    let mut by_level = memory::vec_with_capacity(in_order.len(), label)?;
    let n = in_order.len() as u32;
    (0..n).into_par_iter().map(|s| in_order[in_order_rank(s, n) as usize]).collect_into_vec(&mut by_level);
    Ok(by_level)
}

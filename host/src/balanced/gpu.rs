//! Balanced trees on a GPU.

pub(crate) mod coordinate_sort;
pub(crate) mod distinct;
pub(crate) mod in_order;
mod paths;
pub(crate) mod plan;
#[cfg(feature = "research")]
mod robinson;
#[cfg(feature = "io")]
mod stored;
mod verify;
pub(crate) mod widen;

use cuda_std::mem::Slice;
use kauri_kernels::balanced::{Tree, medians_len};
use kauri_kernels::thread::coord::Float;

use crate::balanced::backend::Backend;
#[cfg(feature = "io")]
use crate::balanced::backend::Sections;
use crate::balanced::options::BalancedOptions;
use crate::device::{Buffer, Gpu, Layout, Stream, Temp, Workspace};
use crate::error::Result;
use crate::host_coords::HostCoords;
use crate::memory::MemoryPlan;
use crate::once::Once;
use crate::primitives::pairs::empty_view;
use crate::primitives::planned::carve;
use crate::query::backend::{DeviceQueryBackend, QueryBackend};
use crate::query::gpu::BucketIndex;
use crate::stats::Stats;
use in_order::bucket_index;
use plan::{BuildContext, BuildPlan, Phases};
use std::sync::Arc;
use widen::DeviceCoords;

/// Labels of allocations.
const COORDS: &str = "coordinates of the points";
const MEDIANS: &str = "medians of the tree";
const CHILDREN: &str = "children of the nodes";
const REPRESENTATIVES: &str = "representatives of the points";

/// A tree in the memory of a GPU.
pub(crate) struct GpuTree<C> {
    dims: usize,
    /// 0 after a rebuild that failed.
    pub(crate) num_nodes: usize,
    pub(crate) coords: Arc<Buffer<C>>,
    pub(crate) medians: Buffer<u32>,
    /// The children that Robinson's algorithm writes; empty for other algorithms. Only [`verify`](Backend::verify) reads them: the medians
    /// hold the same information.
    children: Buffer<u32>,
    /// Without meaning if no points were removed.
    representatives: Buffer<u32>,
    index: Once<BucketIndex<C>>,
    /// The caller's stream that last built the tree.
    built_on: Option<Stream>,
}

/// Plans the scratch memory of a build.
pub(crate) fn plan<C: Float>(
    layout: &mut Layout,
    num_points: usize,
    dims: usize,
    options: &BalancedOptions,
) -> Box<dyn BuildPlan<C>> {
    #[cfg(feature = "research")]
    if options.algorithm == crate::balanced::options::BuildAlgorithm::Robinson {
        return Box::new(robinson::Robinson::plan(layout, num_points, dims, options));
    }
    Box::new(paths::Paths::plan(layout, num_points, dims, options))
}

/// Returns the bytes of a tree, with its coordinates, and the temporary bytes of its build.
pub(crate) fn memory_plan<C: Float>(num_points: usize, dims: usize, options: &BalancedOptions) -> MemoryPlan {
    let mut layout = Layout::new();
    let plan = plan::<C>(&mut layout, num_points, dims, options);
    let num_ids = medians_len(num_points as u32) + num_children(&*plan, num_points);
    let tree_bytes = num_points * dims * size_of::<C>() + num_ids * size_of::<u32>();
    MemoryPlan { tree_bytes: tree_bytes as u64, temp_bytes: layout.bytes() }
}

/// Returns the number of children that a build writes.
fn num_children<C: Float>(plan: &dyn BuildPlan<C>, num_points: usize) -> usize {
    if plan.writes_children() { 2 * num_points } else { 0 }
}

impl GpuTree<f64> {
    /// Builds the tree over integers in host memory.
    pub(crate) fn build_of_integers(
        gpu: &Gpu,
        points: HostCoords<'_, i32>,
        options: &BalancedOptions,
        stats: &mut Stats,
    ) -> Result<Self> {
        let stream = Stream::new(gpu)?;
        let coords = stats.phase("init", || {
            let integers = points.to_buffer(&stream, COORDS)?;
            let mut coords = Buffer::uninitialized(gpu, points.len(), COORDS)?;
            // SAFETY: nothing else uses the new memory, and buffers wait for the device before they are freed.
            unsafe { DeviceCoords::Integers(&integers).write(&stream, coords.slice_mut())? };
            Ok(coords)
        })?;
        let options = &BalancedOptions { are_integers: true, ..options.clone() };
        Self::build_over(&stream, &mut Workspace::new(gpu), coords, points.dims(), options, stats)
    }
}

impl<C: Float> GpuTree<C> {
    /// Builds the tree over points in host memory.
    pub(crate) fn build(
        gpu: &Gpu,
        points: HostCoords<'_, C>,
        options: &BalancedOptions,
        stats: &mut Stats,
    ) -> Result<Self> {
        let stream = Stream::new(gpu)?;
        let coords = stats.phase("init", || points.to_buffer(&stream, COORDS))?;
        Self::build_over(&stream, &mut Workspace::new(gpu), coords, points.dims(), options, stats)
    }

    /// Builds the tree over points in device memory, which becomes that of the tree. Waits for each phase.
    pub(crate) fn build_over(
        stream: &Stream,
        workspace: &mut Workspace,
        coords: Buffer<C>,
        dims: usize,
        options: &BalancedOptions,
        stats: &mut Stats,
    ) -> Result<Self> {
        let mut tree = Self::without_nodes(coords, dims)?;
        if tree.num_points() > 0 {
            let (plan, temp) = tree.plan(stream, workspace, options)?;
            tree.build_nodes(&*plan, &temp, Some(stats))?;
        }
        Ok(tree)
    }

    /// Like [`build_over`](Self::build_over), for distinct points. `None` if points are equal.
    pub(crate) fn build_over_distinct(
        stream: &Stream,
        workspace: &mut Workspace,
        coords: Buffer<C>,
        dims: usize,
        options: &BalancedOptions,
        stats: &mut Stats,
    ) -> Result<Option<Self>> {
        let mut tree = Self::without_nodes(coords, dims)?;
        if tree.num_points() > 0 {
            let (plan, temp) = tree.plan(stream, workspace, options)?;
            let mut phases = Phases { stream, stats: Some(stats) };
            let num_nodes = tree.sort(&*plan, &temp, &mut phases)?;
            if num_nodes < tree.num_points() {
                return Ok(None);
            }
            tree.partition(&*plan, &temp, &mut phases, num_nodes)?;
        }
        Ok(Some(tree))
    }

    /// Allocates a tree over points with undefined coordinates. It has no nodes.
    pub(crate) fn uninitialized(gpu: &Gpu, num_points: usize, dims: usize) -> Result<Self> {
        Self::without_nodes(Buffer::uninitialized(gpu, num_points * dims, COORDS)?, dims)
    }

    fn without_nodes(coords: Buffer<C>, dims: usize) -> Result<Self> {
        let empty = |label| Buffer::uninitialized(coords.gpu(), 0, label);
        let (medians, children, representatives) =
            (empty(MEDIANS)?, empty(CHILDREN)?, empty(REPRESENTATIVES)?);
        let (coords, index) = (coords.into(), Once::new());
        Ok(Self { dims, num_nodes: 0, coords, medians, children, representatives, index, built_on: None })
    }

    /// Plans a build, and carves its scratch memory.
    fn plan<'w>(
        &self,
        stream: &Stream,
        workspace: &'w mut Workspace,
        options: &BalancedOptions,
    ) -> Result<(Box<dyn BuildPlan<C>>, Temp<'w>)> {
        let plan = |layout: &mut _| plan(layout, self.num_points(), self.dims, options);
        carve(stream, workspace, "balanced k-d tree build", plan)
    }

    /// Builds the nodes over the coordinates of the tree, at least one point. They are complete when the stream has done the work.
    fn build_nodes(
        &mut self,
        plan: &dyn BuildPlan<C>,
        temp: &Temp<'_>,
        stats: Option<&mut Stats>,
    ) -> Result<()> {
        let mut phases = Phases { stream: &temp.stream, stats };
        let num_nodes = self.sort(plan, temp, &mut phases)?;
        self.partition(plan, temp, &mut phases, num_nodes)
    }

    /// Sorts the points, and returns the number of distinct ones.
    fn sort(&mut self, plan: &dyn BuildPlan<C>, temp: &Temp<'_>, phases: &mut Phases<'_>) -> Result<usize> {
        let num_children = num_children(plan, self.num_points());
        phases.run("init", || {
            self.children.resize(num_children, CHILDREN)?;
            self.children.fill_bytes(&temp.stream, 0xff)
        })?;
        let context = BuildContext { temp, coords: self.coords.slice(), dims: self.dims };
        plan.sort(context, &mut self.representatives, phases)
    }

    /// Writes the nodes over sorted points.
    fn partition(
        &mut self,
        plan: &dyn BuildPlan<C>,
        temp: &Temp<'_>,
        phases: &mut Phases<'_>,
        num_nodes: usize,
    ) -> Result<()> {
        self.medians.resize(medians_len(num_nodes as u32), MEDIANS)?;
        let context = BuildContext { temp, coords: self.coords.slice(), dims: self.dims };
        phases.run("partition", || {
            self.medians.fill_bytes(&temp.stream, 0xff)?;
            plan.partition(context, num_nodes, self.medians.slice_mut(), self.children.slice_mut())
        })?;
        self.num_nodes = num_nodes;
        Ok(())
    }

    /// Builds the tree over other coordinates, on the stream of the scratch memory.
    fn rebuild_with(
        &mut self,
        plan: &dyn BuildPlan<C>,
        temp: &Temp<'_>,
        coords: DeviceCoords<'_, C>,
    ) -> Result<()> {
        let mut index = self.index.take();
        if let Some(index) = &mut index {
            index.input_coords = None;
        }
        let own = Arc::get_mut(&mut self.coords).expect("only the index shares the coordinates");
        // SAFETY: the borrows keep points and tree apart.
        unsafe { coords.write(&temp.stream, own.slice_mut())? };
        self.build_nodes(plan, temp, None)?;
        if let Some(index) = index {
            let index = in_order::rebuild(index, &temp.stream, self.view(), self.coords.clone())?;
            self.index.get_or_init(|| index);
        }
        Ok(())
    }

    fn num_points(&self) -> usize {
        self.coords.len() / self.dims
    }

    /// Creates a stream that waits for the last build.
    fn stream(&self) -> Result<Stream> {
        let stream = Stream::new(self.coords.gpu())?;
        self.wait(&stream)?;
        Ok(stream)
    }

    /// Makes a stream wait for the last build.
    fn wait(&self, stream: &Stream) -> Result<()> {
        self.built_on.as_ref().map_or(Ok(()), |built_on| stream.wait_for(built_on))
    }

    /// Returns the bucket index, which the first call builds.
    fn bucket_index(&self) -> Result<&BucketIndex<C>> {
        self.index.get_or_try_init(|| {
            let (none, input) = (empty_view().read_only(), Some(self.coords.clone()));
            bucket_index(&self.stream()?, self.view(), 0, none, input)
        })
    }

    /// Returns the medians of all levels.
    fn medians_view(&self) -> Slice<'_, u32> {
        // SAFETY: the buffer has the medians of at least `num_nodes` nodes.
        unsafe { self.medians.slice().part(0, medians_len(self.num_nodes as u32)) }
    }

    /// Returns the representative of each point; nothing if no points were removed.
    fn representatives_view(&self) -> Slice<'_, u32> {
        let were_removed = self.num_nodes > 0 && self.num_nodes < self.num_points();
        if were_removed { self.representatives.slice() } else { empty_view().read_only() }
    }

    /// Returns the tree as an argument of kernels.
    pub(crate) fn view(&self) -> Tree<'_, C> {
        let (coords, medians) = (self.coords.slice(), self.medians_view());
        Tree { coords, dims: self.dims as u32, medians, num_nodes: self.num_nodes as u32 }
    }
}

impl<C: Float> Backend<C> for GpuTree<C> {
    fn num_nodes(&self) -> usize {
        self.num_nodes
    }

    fn verify(&self) -> Result<()> {
        if self.num_nodes == 0 {
            return Ok(());
        }
        verify::verify(&self.stream()?, self.view(), self.children.slice())
    }

    fn medians(&self) -> Result<Vec<u32>> {
        // SAFETY: the medians have been written.
        unsafe { self.stream()?.read(self.medians_view()) }
    }

    fn representatives(&self) -> Result<Vec<u32>> {
        // SAFETY: the representatives have been written.
        unsafe { self.stream()?.read(self.representatives_view()) }
    }

    fn query_backend(&self) -> Result<&dyn QueryBackend<C>> {
        Ok(self.bucket_index()?)
    }

    fn device_query_backend(&self) -> Result<&dyn DeviceQueryBackend<C>> {
        Ok(self.bucket_index()?)
    }

    fn medians_on(&self, stream: &Stream, medians: &mut Buffer<u32>) -> Result<()> {
        let from = self.medians_view();
        medians.check(stream, MEDIANS, from.len())?;
        self.medians.check_device(stream)?;
        self.wait(stream)?;
        // SAFETY: the lengths agree, and buffers wait for the device before they are freed.
        unsafe { stream.copy(medians.slice_mut(), from) }
    }

    fn rebuild(
        &mut self,
        stream: &Stream,
        workspace: &mut Workspace,
        coords: DeviceCoords<'_, C>,
        options: &BalancedOptions,
    ) -> Result<()> {
        coords.check(stream, self.coords.len())?;
        self.coords.check_device(stream)?;
        if self.num_points() == 0 {
            return Ok(());
        }
        let are_integers = matches!(coords, DeviceCoords::Integers(_));
        let options = &BalancedOptions { are_integers, ..options.clone() };
        let (plan, temp) = self.plan(stream, workspace, options)?;
        self.wait(stream)?;
        self.built_on = Some(stream.clone());
        let built = self.rebuild_with(&*plan, &temp, coords);
        if built.is_err() {
            self.num_nodes = 0;
        }
        built
    }

    #[cfg(feature = "io")]
    fn sections(&self) -> Result<Sections<'_, C>> {
        self.copy_sections()
    }
}

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

use kauri_kernels::balanced::{Tree, medians_len};
use kauri_kernels::thread::coord::Float;

use crate::balanced::backend::Backend;
#[cfg(feature = "io")]
use crate::balanced::backend::Sections;
use crate::balanced::options::BalancedOptions;
use crate::device::{Buffer, Gpu, Layout, Stream, Workspace};
use crate::error::Result;
use crate::memory::MemoryPlan;
use crate::once::Once;
use crate::primitives::pairs::empty_view;
use crate::query::backend::QueryBackend;
use crate::query::gpu::BucketIndex;
use crate::stats::Stats;
use in_order::bucket_index;
use plan::{BuildContext, BuildPlan};
use std::sync::Arc;

/// Labels of allocations.
const MEDIANS: &str = "medians of the tree";
const REPRESENTATIVES: &str = "representatives of the points";

/// A tree in the memory of a GPU.
pub(crate) struct GpuTree<C> {
    gpu: Gpu,
    dims: usize,
    pub(crate) num_nodes: usize,
    pub(crate) coords: Arc<Buffer<C>>,
    pub(crate) medians: Buffer<u32>,
    /// The children that Robinson's algorithm writes; empty for other algorithms. Only [`verify`](Backend::verify) reads them: the medians
    /// hold the same information.
    children: Buffer<u32>,
    representatives: Buffer<u32>,
    index: Once<BucketIndex<C>>,
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

impl<C: Float> GpuTree<C> {
    /// Builds the tree over validated points in host memory.
    pub(crate) fn build(
        gpu: &Gpu,
        points: &[C],
        dims: usize,
        options: &BalancedOptions,
        stats: &mut Stats,
    ) -> Result<Self> {
        let stream = Stream::new(gpu)?;
        let label = "coordinates of the points";
        let coords = stats.phase("init", || Buffer::from_slice(&stream, points, label))?;
        Self::build_on(&stream, &mut Workspace::new(gpu), coords, dims, options, stats)
    }

    /// Builds the tree over points in device memory.
    pub(crate) fn build_on(
        stream: &Stream,
        workspace: &mut Workspace,
        coords: Buffer<C>,
        dims: usize,
        options: &BalancedOptions,
        stats: &mut Stats,
    ) -> Result<Self> {
        let (n, gpu) = (coords.len() / dims, stream.gpu());
        let mut layout = Layout::new();
        let plan = plan::<C>(&mut layout, n, dims, options);
        let mut children = stats.phase("init", || {
            let num_children = num_children(&*plan, n);
            let children = Buffer::of_bytes(stream, num_children, 0xff, "children of the nodes")?;
            stream.synchronize()?;
            Ok(children)
        })?;
        let allocate = |len, label| Buffer::uninitialized(gpu, len, label);
        if n == 0 {
            let (medians, representatives) = (allocate(0, MEDIANS)?, allocate(0, REPRESENTATIVES)?);
            return Ok(Self::new(gpu, dims, 0, coords, medians, children, representatives));
        }
        let temp = workspace.carve(stream, &layout, "balanced k-d tree build")?;
        let context = BuildContext { temp: &temp, coords: coords.slice(), dims };
        let (num_nodes, representatives) = plan.sort(context, stats)?;
        let representatives = match representatives {
            Some(representatives) => representatives,
            None => allocate(0, REPRESENTATIVES)?,
        };
        let mut medians = allocate(medians_len(num_nodes as u32), MEDIANS)?;
        stats.phase("partition", || {
            medians.fill_bytes(stream, 0xff)?;
            plan.partition(context, num_nodes, medians.slice_mut(), children.slice_mut())?;
            stream.synchronize()
        })?;
        Ok(Self::new(gpu, dims, num_nodes, coords, medians, children, representatives))
    }

    fn new(
        gpu: &Gpu,
        dims: usize,
        num_nodes: usize,
        coords: Buffer<C>,
        medians: Buffer<u32>,
        children: Buffer<u32>,
        representatives: Buffer<u32>,
    ) -> Self {
        let (gpu, coords, index) = (gpu.clone(), coords.into(), Once::new());
        Self { gpu, dims, num_nodes, coords, medians, children, representatives, index }
    }

    /// Returns the tree as an argument of kernels.
    pub(crate) fn view(&self) -> Tree<'_, C> {
        let (coords, medians) = (self.coords.slice(), self.medians.slice());
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
        verify::verify(&Stream::new(&self.gpu)?, self.view(), self.children.slice())
    }

    fn medians(&self) -> Result<Vec<u32>> {
        self.medians.to_vec(&Stream::new(&self.gpu)?)
    }

    fn representatives(&self) -> Result<Vec<u32>> {
        self.representatives.to_vec(&Stream::new(&self.gpu)?)
    }

    fn query_backend(&self) -> Result<&dyn QueryBackend<C>> {
        let index = self.index.get_or_try_init(|| {
            bucket_index(&self.gpu, self.view(), 0, empty_view().read_only(), Some(self.coords.clone()))
        })?;
        Ok(index)
    }

    #[cfg(feature = "io")]
    fn sections(&self) -> Result<Sections<'_, C>> {
        self.copy_sections()
    }
}

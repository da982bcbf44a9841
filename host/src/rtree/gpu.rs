//! R-trees on a GPU.

use crate::device::{Buffer, Gpu, Layout, Region, Stream, Temp, Workspace};
use crate::error::Result;
use crate::primitives::bounds::Bounds;
use crate::primitives::permute::{Direction, permute_parts};
use crate::primitives::radix_sort::PairSort;
use crate::query::backend::{DeviceQueryBackend, QueryBackend};
use crate::query::gpu::grid::Grid;
use crate::query::gpu::{BucketIndex, Locator, index_bytes, node_slots};
use crate::rtree::backend::{Backend, GpuBackend};
use crate::stats::Stats;
use cuda_std::mem::Slice;
use kauri_kernels::query::buckets::levels;
use kauri_kernels::query::grid::code_bits;
use kauri_kernels::thread::coord::Coord;

/// An R-tree in device memory.
pub(crate) struct GpuTree<C> {
    index: BucketIndex<C>,
}

/// Scratch memory of a build.
struct BuildPlan<C: Coord> {
    bounds: Bounds<C>,
    sort: PairSort<u64, u32>,
}

impl<C: Coord> BuildPlan<C> {
    fn plan(layout: &mut Layout, num_points: usize, dims: usize) -> Self {
        Self { bounds: Bounds::plan(layout, dims), sort: PairSort::plan(layout, num_points) }
    }

    /// Plans a build over points in host memory, and reserves memory to upload them.
    fn with_upload(layout: &mut Layout, num_points: usize, dims: usize) -> (Self, Region<C>) {
        (Self::plan(layout, num_points, dims), layout.reserve(num_points * dims))
    }
}

/// Returns the temporary device bytes of a build over points in device memory.
pub(crate) fn build_bytes<C: Coord>(num_points: usize, dims: usize) -> u64 {
    let mut layout = Layout::new();
    BuildPlan::<C>::plan(&mut layout, num_points, dims);
    layout.bytes()
}

/// Returns the temporary device bytes of a build over points in host memory.
pub(crate) fn temp_bytes<C: Coord>(num_points: usize, dims: usize) -> u64 {
    let mut layout = Layout::new();
    BuildPlan::<C>::with_upload(&mut layout, num_points, dims);
    layout.bytes()
}

/// Returns the bytes of a tree.
pub(crate) fn tree_bytes<C: Coord>(num_points: usize, dims: usize) -> u64 {
    let levels = levels(num_points as u32);
    index_bytes::<C>(num_points, dims, levels) + Grid::<C>::bytes(dims, levels)
}

impl<C: Coord> GpuTree<C> {
    /// Allocates a tree with undefined contents.
    pub(crate) fn uninitialized(gpu: &Gpu, num_points: usize, dims: usize) -> Result<Self> {
        let levels = levels(num_points as u32);
        let locator = Locator::Grid(Grid::uninitialized(gpu, dims, levels)?);
        Ok(Self { index: BucketIndex::with_slots(gpu, num_points, dims, levels, locator)? })
    }

    /// Builds the tree over validated points in host memory.
    pub(crate) fn build(gpu: &Gpu, coords: &[C], dims: usize, stats: &mut Stats) -> Result<Self> {
        let num_points = coords.len() / dims;
        let mut tree = Self::uninitialized(gpu, num_points, dims)?;
        if num_points == 0 {
            return Ok(tree);
        }
        let (stream, mut workspace, mut layout) = (Stream::new(gpu)?, Workspace::new(gpu), Layout::new());
        let (plan, uploaded) = BuildPlan::with_upload(&mut layout, num_points, dims);
        let temp = workspace.carve(&stream, &layout, "R-tree build")?;
        let points = temp.view(uploaded);
        stats.phase("upload", || temp.upload(points, coords))?;
        stats.phase("build", || {
            // SAFETY: the stream is synchronized before any of the memory is freed.
            unsafe { tree.launch_build(&plan, &temp, points.read_only())? };
            stream.synchronize()
        })?;
        Ok(tree)
    }

    /// Launches a build: the grid, the points in the order of their codes, and the boxes.
    ///
    /// # Safety
    /// The number of points is that of the tree. Nothing else uses the points and the tree until the stream has done the work.
    unsafe fn launch_build(
        &mut self,
        plan: &BuildPlan<C>,
        temp: &Temp<'_>,
        coords: Slice<'_, C>,
    ) -> Result<()> {
        let (stream, BucketIndex { dims, padded_coords, ids, locator, .. }) = (&temp.stream, &mut self.index);
        let Locator::Grid(grid) = locator else { unreachable!("an R-tree has a grid") };
        let dims = *dims;
        // SAFETY: passed on to the caller; the memory of the tree holds the points and a padding.
        unsafe {
            plan.bounds.run(temp, coords, dims, grid.corners.slice_mut())?;
            let write = |codes, numbers| grid.codes(stream, coords, codes, numbers);
            let (codes, sorted) = plan.sort.run(temp, code_bits(dims), write)?;
            grid.take_first_codes(stream, codes)?;
            let slots = node_slots(stream, dims, padded_coords.slice_mut(), ids.slice_mut())?;
            permute_parts(stream, Direction::Gather, dims, coords, sorted, slots.coords)?;
            stream.copy(slots.ids, sorted)?;
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
}

impl<C: Coord> GpuBackend<C> for GpuTree<C> {
    fn device_query_backend(&self) -> &dyn DeviceQueryBackend<C> {
        &self.index
    }

    fn rebuild(&mut self, stream: &Stream, workspace: &mut Workspace, coords: &Buffer<C>) -> Result<()> {
        let (num_points, dims) = (self.index.num_points(), self.index.dims);
        coords.check(stream, "coordinates of the points", num_points * dims)?;
        self.index.ids.check_device(stream)?;
        if num_points == 0 {
            return Ok(());
        }
        let mut layout = Layout::new();
        let plan = BuildPlan::plan(&mut layout, num_points, dims);
        let temp = workspace.carve(stream, &layout, "R-tree build")?;
        self.index.wait(stream)?;
        self.index.built_on = Some(stream.clone());
        // SAFETY: the borrows keep points and tree apart, and buffers wait for the device before they are freed.
        unsafe { self.launch_build(&plan, &temp, coords.slice()) }
    }
}

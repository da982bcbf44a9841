//! The GPU half: the builders, the stack-free walk, the check.

mod selection;
mod tags;

use super::Builder;
use crate::device::{Buffer, Gpu, Layout, Region, Stream, Temp, Workspace};
use crate::error::{Error, Result};
use crate::stats::Stats;
use cuda_std::mem::{Slice, SliceMut};
use kauri_kernels::kdtree::nearest::kdtree_nearest;
use kauri_kernels::kdtree::verify::{kdtree_verify, wrong};
use kauri_kernels::thread::coord::Coord;
use selection::Selection;
use tags::Tags;

/// Most bytes of queries and results on the device at one time; more go in batches.
const BATCH_BYTES: usize = 1 << 30;

/// A tree in the memory of a GPU.
pub(super) struct GpuTree<C> {
    gpu: Gpu,
    dims: usize,
    /// The point of node `s` at `s * dims`.
    node_coords: Buffer<C>,
    node_ids: Buffer<u32>,
}

/// Room for the nodes of a tree.
#[derive(Clone, Copy)]
struct NodesMut<'a, C> {
    coords: SliceMut<'a, C>,
    ids: SliceMut<'a, u32>,
}

/// Temporary memory of a build.
struct Plan<C: Coord> {
    layout: Layout,
    /// The points in input order.
    coords: Region<C>,
    work: Work<C>,
}

/// What a builder plans for itself.
enum Work<C: Coord> {
    Tags(Tags<C>),
    Selection(Selection<C>),
}

impl<C: Coord> Plan<C> {
    fn new(num_points: usize, dims: usize, builder: Builder) -> Self {
        let mut layout = Layout::new();
        let coords = layout.reserve(num_points * dims);
        let work = match builder {
            Builder::Tags => Work::Tags(Tags::plan(&mut layout, num_points, dims)),
            Builder::Selection => Work::Selection(Selection::plan(&mut layout, num_points, dims)),
        };
        Self { layout, coords, work }
    }
}

/// Bytes of temporary device memory that a build takes.
pub(super) fn temp_bytes<C: Coord>(num_points: usize, dims: usize, builder: Builder) -> u64 {
    Plan::<C>::new(num_points, dims, builder).layout.bytes()
}

impl<C: Coord> GpuTree<C> {
    /// Builds the tree over checked points.
    pub(super) fn build(
        gpu: &Gpu,
        coords: &[C],
        dims: usize,
        builder: Builder,
        stats: &mut Stats,
    ) -> Result<Self> {
        let num_points = coords.len() / dims;
        let stream = Stream::new(gpu)?;
        let mut tree = Self {
            gpu: gpu.clone(),
            dims,
            node_coords: Buffer::uninitialized(gpu, coords.len(), "k-d tree nodes")?,
            node_ids: Buffer::uninitialized(gpu, num_points, "k-d tree ids")?,
        };
        if num_points == 0 {
            return Ok(tree);
        }
        let plan = Plan::<C>::new(num_points, dims, builder);
        let mut workspace = Workspace::new(gpu);
        let temp = workspace.carve(&stream, &plan.layout, "k-d tree build")?;
        let device_coords = temp.view(plan.coords);
        let nodes = NodesMut { coords: tree.node_coords.slice_mut(), ids: tree.node_ids.slice_mut() };

        stats.phase("upload", || temp.upload(&stream, device_coords, coords))?;
        // SAFETY: all views are of the plan's own arrays or of the new tree's, and everything is waited for before they go.
        stats.phase("build", || unsafe {
            tree_of(&plan.work, &stream, &temp, device_coords.read_only(), nodes)?;
            stream.synchronize()
        })?;
        Ok(tree)
    }

    /// The k nearest points of checked queries, appended to `ids` and `dist2`, which have room.
    pub(super) fn nearest(
        &self,
        queries: &[C],
        k: usize,
        mut ids: Vec<u32>,
        mut dist2: Vec<C>,
    ) -> Result<(Vec<u32>, Vec<C>)> {
        let num_queries = queries.len() / self.dims;
        if num_queries == 0 || k == 0 {
            return Ok((ids, dist2));
        }
        let query_bytes = (self.dims * size_of::<C>()).saturating_add(k.saturating_mul(size_of::<C>() + 4));
        let batch = (BATCH_BYTES / query_bytes).clamp(1, num_queries);
        let stream = Stream::new(&self.gpu)?;
        for queries in queries.chunks(batch * self.dims) {
            let rows = queries.len() / self.dims;
            let queries = Buffer::from_slice(&stream, queries, "queries")?;
            let mut batch_dist2 = Buffer::uninitialized(&self.gpu, rows * k, "distances of neighbours")?;
            let mut batch_ids = Buffer::uninitialized(&self.gpu, rows * k, "ids of neighbours")?;
            // SAFETY: the buffers live until the results have been copied; a row belongs to one thread.
            unsafe { self.walk(&stream, &queries, batch_dist2.slice_mut(), batch_ids.slice_mut(), k)? };
            batch_ids.append_to(&stream, &mut ids)?;
            batch_dist2.append_to(&stream, &mut dist2)?;
        }
        Ok((ids, dist2))
    }

    unsafe fn walk(
        &self,
        stream: &Stream,
        queries: &Buffer<C>,
        dist2: SliceMut<'_, C>,
        ids: SliceMut<'_, u32>,
        k: usize,
    ) -> Result<()> {
        let num_queries = (queries.len() / self.dims) as u64;
        let (coords, node_ids) = (self.node_coords.slice(), self.node_ids.slice());
        let args = (coords, node_ids, queries.slice(), dist2, ids, self.dims as u32, k as u64);
        // SAFETY: passed on to the caller.
        unsafe {
            match self.dims {
                2 => stream.launch_items::<kdtree_nearest<C, 2>>(num_queries, args),
                3 => stream.launch_items::<kdtree_nearest<C, 3>>(num_queries, args),
                4 => stream.launch_items::<kdtree_nearest<C, 4>>(num_queries, args),
                _ => stream.launch_items::<kdtree_nearest<C, 0>>(num_queries, args),
            }
        }
    }

    /// Checks every node against its ancestors.
    pub(super) fn verify(&self) -> Result<()> {
        let num_points = self.len();
        if num_points == 0 {
            return Ok(());
        }
        let stream = Stream::new(&self.gpu)?;
        let mut seen = Buffer::uninitialized(&self.gpu, num_points, "seen ids")?;
        seen.fill_bytes(&stream, 0)?;
        let mut finding = Buffer::from_slice(&stream, &[u64::MAX], "finding")?;
        let (coords, ids) = (self.node_coords.slice(), self.node_ids.slice());
        let args = (coords, ids, seen.slice_mut(), finding.slice_mut(), self.dims as u32);
        // SAFETY: the buffers live until the finding has been copied.
        unsafe { stream.launch_items::<kdtree_verify<C>>(num_points as u64, args)? };
        match finding.to_vec(&stream)?[0] {
            u64::MAX => Ok(()),
            found => {
                let what = match found as u32 {
                    wrong::ID_RANGE => "its id is not that of a point",
                    wrong::DUPLICATE_ID => "another node has the same id",
                    _ => "its point is on the wrong side of an ancestor",
                };
                Err(Error::Corrupt { node: found >> 32, what: what.into() })
            }
        }
    }

    /// The ids in level order.
    pub(super) fn node_ids(&self) -> Result<Vec<u32>> {
        self.node_ids.to_vec(&Stream::new(&self.gpu)?)
    }

    /// Number of points.
    pub(super) fn len(&self) -> usize {
        self.node_ids.len()
    }
}

/// Builds the nodes.
///
/// # Safety
/// Points and nodes are apart, and used by nothing else until the stream has done the work.
unsafe fn tree_of<C: Coord>(
    work: &Work<C>,
    stream: &Stream,
    temp: &Temp<'_>,
    coords: Slice<'_, C>,
    nodes: NodesMut<'_, C>,
) -> Result<()> {
    // SAFETY: the caller's.
    unsafe {
        match work {
            Work::Tags(tags) => tags.run(stream, temp, coords, nodes),
            Work::Selection(selection) => selection.run(stream, temp, coords, nodes),
        }
    }
}

//! The GPU half: the builders, the buckets, the queries, the check.

mod ask;
mod boxes;
mod nearest;
mod order;
mod selection;
mod tags;

use super::Builder;
use super::query::Wanted;
use crate::device::{Buffer, Gpu, Layout, Region, Stream, Temp, Workspace};
use crate::error::{Error, Result};
use crate::memory;
use crate::stats::Stats;
use ask::{Asked, QueriesOn};
use cuda_std::mem::{Slice, SliceMut};
use kauri_kernels::kdtree::buckets::{boxes_len, levels};
use kauri_kernels::kdtree::left_balanced::{full_tree, in_order_rank};
use kauri_kernels::kdtree::verify::{kdtree_verify, wrong};
use kauri_kernels::thread::coord::Coord;
use nearest::{Nearest, RowsMut};
use rayon::prelude::*;
use selection::Selection;
use tags::Tags;

/// Most bytes of queries and results on the device at one time; more go in batches.
const BATCH_BYTES: usize = 1 << 30;

/// A tree in the memory of a GPU: points in the order of a walk in order, and what walks by whole warps need.
pub(super) struct GpuTree<C> {
    gpu: Gpu,
    dims: usize,
    /// Point after point.
    coords: Buffer<C>,
    ids: Buffer<u32>,
    /// The boxes of the children of each node above the buckets.
    boxes: Buffer<C>,
    /// Where each of these nodes splits.
    splits: Buffer<C>,
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
        let n = num_points as u32;
        let mut tree = Self {
            gpu: gpu.clone(),
            dims,
            coords: Buffer::uninitialized(gpu, coords.len(), "k-d tree nodes")?,
            ids: Buffer::uninitialized(gpu, num_points, "k-d tree ids")?,
            boxes: Buffer::uninitialized(gpu, boxes_len(n, dims), "k-d tree boxes")?,
            splits: Buffer::uninitialized(gpu, full_tree(levels(n)) as usize, "k-d tree splits")?,
        };
        if num_points == 0 {
            return Ok(tree);
        }
        let plan = Plan::<C>::new(num_points, dims, builder);
        let mut workspace = Workspace::new(gpu);
        let temp = workspace.carve(&stream, &plan.layout, "k-d tree build")?;
        let device_coords = temp.view(plan.coords);
        let nodes = NodesMut { coords: tree.coords.slice_mut(), ids: tree.ids.slice_mut() };

        stats.phase("upload", || temp.upload(&stream, device_coords, coords))?;
        // SAFETY: all views are of the plan's own arrays or of the new tree's, and everything is waited for before they go.
        stats.phase("build", || unsafe {
            tree_of(&plan.work, &stream, &temp, device_coords.read_only(), nodes)?;
            stream.synchronize()
        })?;
        // SAFETY: the points are there.
        stats.phase("boxes", || unsafe {
            boxes::boxes(&stream, &mut tree)?;
            stream.synchronize()
        })?;
        Ok(tree)
    }

    /// The k nearest points of checked queries, or of the points themselves, appended to `ids` and `dist2`, which have room.
    pub(super) fn nearest(
        &self,
        queries: super::Checked<'_, C>,
        k: usize,
        wanted: Wanted<C>,
        mut ids: Vec<u32>,
        mut dist2: Vec<C>,
    ) -> Result<(Vec<u32>, Vec<C>)> {
        let num_queries = queries.len(self.dims, self.len());
        if num_queries == 0 || k == 0 {
            return Ok((ids, dist2));
        }
        let stream = Stream::new(&self.gpu)?;
        let mut workspace = Workspace::new(&self.gpu);
        let asked = Asked::new(&stream, wanted)?;
        let query_bytes = (self.dims * size_of::<C>()).saturating_add(k.saturating_mul(size_of::<C>() + 4));
        let batch = (BATCH_BYTES / query_bytes).clamp(1, num_queries);
        let is_own = matches!(queries, super::Checked::Own { .. });
        for begin in (0..num_queries).step_by(batch) {
            let range = begin..num_queries.min(begin + batch);
            let mut layout = Layout::new();
            let plan = Nearest::plan(&mut layout, self, &asked, range.len(), is_own);
            let mut batch_dist2 =
                Buffer::uninitialized(&self.gpu, range.len() * k, "distances of neighbours")?;
            let mut batch_ids = Buffer::uninitialized(&self.gpu, range.len() * k, "ids of neighbours")?;
            let rows = RowsMut { dist2: batch_dist2.slice_mut(), ids: batch_ids.slice_mut(), k };
            let temp = workspace.carve(&stream, &layout, "k-d tree queries")?;
            // SAFETY: the buffers live until the results have been copied; a row belongs to one query.
            unsafe {
                match queries {
                    super::Checked::Points(points) => {
                        let points = &points[range.start * self.dims..range.end * self.dims];
                        let points = Buffer::from_slice(&stream, points, "queries")?;
                        plan.run(&stream, &temp, self, &asked, QueriesOn::of_points(points.slice()), rows)?;
                        stream.synchronize()?;
                    }
                    super::Checked::Own { itself } => {
                        let own = QueriesOn::own(self, range, batch == num_queries, itself);
                        plan.run(&stream, &temp, self, &asked, own, rows)?;
                    }
                }
            }
            batch_ids.append_to(&stream, &mut ids)?;
            batch_dist2.append_to(&stream, &mut dist2)?;
        }
        if is_own && batch < num_queries {
            // Batches are in the order of the tree.
            let order = self.ids.to_vec(&stream)?;
            return Ok((by_id(&order, &ids, k)?, by_id(&order, &dist2, k)?));
        }
        Ok((ids, dist2))
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
        let (coords, ids) = (self.coords.slice(), self.ids.slice());
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
        let in_order = self.ids.to_vec(&Stream::new(&self.gpu)?)?;
        let mut ids = memory::vec_with_capacity(in_order.len(), "ids of the nodes")?;
        let n = in_order.len() as u32;
        (0..n).into_par_iter().map(|s| in_order[in_order_rank(s, n) as usize]).collect_into_vec(&mut ids);
        Ok(ids)
    }

    /// Number of points.
    pub(super) fn len(&self) -> usize {
        self.ids.len()
    }
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

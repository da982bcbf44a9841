//! The GPU half: Wald's builder by tags and sorting, the stack-free walk, the check.

use crate::device::{Buffer, Gpu, Layout, Region, Stream, Temp, Workspace};
use crate::error::{Error, Result};
use crate::primitives::pairs::Pairs;
use crate::primitives::radix_sort::{RadixSort, Shape, SortBy};
use crate::stats::Stats;
use cuda_std::mem::{Slice, SliceMut};
use kauri_kernels::kdtree::left_balanced::num_levels;
use kauri_kernels::kdtree::nearest::kdtree_nearest;
use kauri_kernels::kdtree::tags::{
    kdtree_coordinate_keys, kdtree_first_tags, kdtree_place, kdtree_ranks, kdtree_update_tags,
};
use kauri_kernels::kdtree::verify::{kdtree_verify, wrong};
use kauri_kernels::thread::coord::Coord;

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

/// Temporary memory of a build.
struct Plan {
    layout: Layout,
    /// The points in input order.
    coords: Region<u8>,
    /// For each axis the rank of each point.
    ranks: Region<u32>,
    /// Keys, wide enough for coordinates and for tags with ranks; twice, since sorting moves them to and fro.
    keys: [Region<u64>; 2],
    ids: [Region<u32>; 2],
    sort_axis: RadixSort,
    sort_tags: RadixSort,
}

impl Plan {
    fn new<C: Coord>(num_points: usize, dims: usize) -> Self {
        let mut layout = Layout::new();
        let shapes = [Shape::of::<C::Key, u32>(num_points), Shape::of::<u64, u32>(num_points)];
        let [sort_axis, sort_tags] = RadixSort::plan(&mut layout, num_points, shapes);
        Self {
            coords: layout.reserve(num_points * dims * size_of::<C>()),
            ranks: layout.reserve(num_points * dims),
            keys: [layout.reserve(num_points), layout.reserve(num_points)],
            ids: [layout.reserve(num_points), layout.reserve(num_points)],
            sort_axis,
            sort_tags,
            layout,
        }
    }

    /// The two pairs of arrays for sorting by keys of a type.
    fn pairs<'a, K>(&self, temp: &Temp<'a>) -> [Pairs<'a, K, u32>; 2] {
        [0, 1].map(|i| Pairs { keys: temp.view(self.keys[i].of_type()), values: temp.view(self.ids[i]) })
    }
}

/// Bytes of temporary device memory that a build takes.
pub(super) fn temp_bytes<C: Coord>(num_points: usize, dims: usize) -> u64 {
    Plan::new::<C>(num_points, dims).layout.bytes()
}

impl<C: Coord> GpuTree<C> {
    /// Builds the tree over checked points (Wald 2022, section 4).
    pub(super) fn build(gpu: &Gpu, coords: &[C], dims: usize, stats: &mut Stats) -> Result<Self> {
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
        let plan = Plan::new::<C>(num_points, dims);
        let mut workspace = Workspace::new(gpu);
        let temp = workspace.carve(&stream, &plan.layout, "k-d tree build")?;
        let device_coords = temp.view(plan.coords.of_type::<C>());

        stats.phase("upload", || temp.upload(&stream, device_coords, coords))?;
        // SAFETY: all views are of the plan's own arrays or of the new tree's, and everything is waited for before they go.
        stats.phase("build", || unsafe {
            tree.rank_axes(&stream, &temp, &plan, device_coords.read_only())?;
            tree.sort_and_send_down(&stream, &temp, &plan, device_coords.read_only())?;
            stream.synchronize()
        })?;
        Ok(tree)
    }

    /// Ranks the points on every axis by (coordinate, id).
    unsafe fn rank_axes(
        &self,
        stream: &Stream,
        temp: &Temp<'_>,
        plan: &Plan,
        coords: Slice<'_, C>,
    ) -> Result<()> {
        let num_points = self.node_ids.len();
        let by = SortBy::low_bits(8 * size_of::<C::Key>() as u32);
        for axis in 0..self.dims {
            let [pairs, room] = plan.pairs::<C::Key>(temp);
            let args = (coords, pairs.keys, pairs.values, self.dims as u32, axis as u32);
            // SAFETY: the caller's.
            unsafe {
                stream.launch_items::<kdtree_coordinate_keys<C>>(num_points as u64, args)?;
                let [sorted, _] = plan.sort_axis.run(stream, temp, by, pairs.read_only(), [room, pairs])?;
                let ranks = axis_ranks(plan, temp, axis, num_points);
                stream.launch_items::<kdtree_ranks>(num_points as u64, (sorted.values.read_only(), ranks))?;
            }
        }
        Ok(())
    }

    /// The rounds: sort by tag and rank, send every point one level down; at the end each tag is a place.
    unsafe fn sort_and_send_down(
        &mut self,
        stream: &Stream,
        temp: &Temp<'_>,
        plan: &Plan,
        coords: Slice<'_, C>,
    ) -> Result<()> {
        let (n, dims) = (self.node_ids.len(), self.dims);
        let ranks_on = |axis: usize| axis_ranks(plan, temp, axis % dims, n).read_only();
        let [mut pairs, mut room] = plan.pairs::<u64>(temp);
        // SAFETY: the caller's.
        unsafe {
            stream.launch_items::<kdtree_first_tags>(n as u64, (ranks_on(0), pairs.keys, pairs.values))?;
            // The last level needs no round: its points are alone in their subtrees.
            for level in 0..num_levels(n as u32) - 1 {
                // Tags of this level are below 2^(level + 1).
                let by = SortBy::low_bits(u32::BITS + level + 1);
                [pairs, room] = plan.sort_tags.run(stream, temp, by, pairs.read_only(), [room, pairs])?;
                let next = ranks_on(level as usize + 1);
                let args = (pairs.keys, pairs.values.read_only(), next, level);
                stream.launch_items::<kdtree_update_tags>(n as u64, args)?;
            }
            let (ids, node_coords) = (self.node_ids.slice_mut(), self.node_coords.slice_mut());
            let args =
                (pairs.keys.read_only(), pairs.values.read_only(), coords, ids, node_coords, dims as u32);
            stream.launch_items::<kdtree_place<C>>(n as u64, args)
        }
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

/// The ranks of one axis.
fn axis_ranks<'a>(plan: &Plan, temp: &Temp<'a>, axis: usize, num_points: usize) -> SliceMut<'a, u32> {
    let ranks = temp.view(plan.ranks);
    // SAFETY: the plan has ranks for every axis.
    unsafe { ranks.part(axis * num_points, num_points) }
}

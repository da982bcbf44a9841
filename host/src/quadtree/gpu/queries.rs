//! Cell queries of a tree in device memory.

use crate::device::{Buffer, Layout, Region, Stream, Workspace};
use crate::error::Result;
use crate::primitives::expand::Offsets;
use crate::primitives::planned::carve;
use crate::quadtree::backend::DeviceTree;
use crate::quadtree::device_leaves::DeviceLeaves;
use crate::quadtree::dims::with_2_or_3;
use crate::quadtree::gpu::GpuTree;
use crate::query::backend::DeviceQueryBackend;
use crate::query::num_found;
use crate::rows::Rows;
use cuda_std::mem::SliceMut;
use kauri_kernels::quadtree::queries::{
    Tree, quadtree_count_adjacent, quadtree_emit_adjacent, quadtree_leaves, quadtree_parents,
    quadtree_samples,
};
use kauri_kernels::thread::coord::Coord;

impl<C: Coord> DeviceTree<C> for GpuTree<C> {
    fn device_query_backend(&self) -> Result<&dyn DeviceQueryBackend<C>> {
        Ok(self.bucket_index()?)
    }

    fn leaf_of_on(&self, stream: &Stream, queries: &Buffer<C>, leaves: &mut Buffer<u32>) -> Result<()> {
        self.ids.check_device(stream)?;
        let (dims, num_queries) = (self.outline.dims, queries.len() / self.outline.dims);
        queries.check(stream, "coordinates of the queries", num_queries * dims)?;
        leaves.check(stream, "leaves of points", num_queries)?;
        self.wait(stream)?;
        let args = (self.frame.slice(), self.nodes.bits(), queries.slice(), leaves.slice_mut());
        // SAFETY: the borrows keep the buffers apart, and all of them wait for the device before they are freed.
        with_2_or_3!(dims, D => unsafe {
            stream.launch_items::<quadtree_leaves<C, D>>(num_queries as u64, args)
        })
    }

    fn adjacent_leaves_on(
        &self,
        stream: &Stream,
        workspace: &mut Workspace,
        nodes: &Buffer<u32>,
        offsets: &mut Buffer<u64>,
        leaves: &mut Buffer<u32>,
    ) -> Result<()> {
        self.ids.check_device(stream)?;
        nodes.check(stream, "nodes", nodes.len())?;
        offsets.check(stream, "offsets of rows", nodes.len() + 1)?;
        leaves.check(stream, "adjacent leaves", leaves.len())?;
        // SAFETY: as above.
        unsafe {
            self.adjacent_offsets(stream, workspace, nodes, offsets.slice_mut())?;
            self.emit_adjacent(stream, nodes, offsets, leaves)
        }
    }

    fn all_adjacent_leaves_on(
        &self,
        stream: &Stream,
        workspace: &mut Workspace,
        nodes: &Buffer<u32>,
    ) -> Result<DeviceLeaves> {
        self.ids.check_device(stream)?;
        nodes.check(stream, "nodes", nodes.len())?;
        let mut offsets = Buffer::uninitialized(self.gpu(), nodes.len() + 1, "offsets of rows")?;
        // SAFETY: as above.
        unsafe { self.adjacent_offsets(stream, workspace, nodes, offsets.slice_mut())? };
        let mut leaves = Buffer::of_result(self.gpu(), num_found(stream, &offsets)?, 4, "adjacent leaves")?;
        // SAFETY: as above.
        unsafe { self.emit_adjacent(stream, nodes, &offsets, &mut leaves)? };
        Ok(DeviceLeaves { offsets, leaves })
    }
}

/// Temporary memory of a query for adjacent leaves.
struct AdjacentPlan {
    counts: Region<u32>,
    offsets: Offsets,
}

impl AdjacentPlan {
    fn new(layout: &mut Layout, num_rows: usize) -> Self {
        Self { counts: layout.reserve(num_rows), offsets: Offsets::plan(layout, num_rows) }
    }
}

impl<C: Coord> GpuTree<C> {
    /// Returns the leaf of each query.
    pub(super) fn leaf_of(&self, queries: &[C]) -> Result<Vec<u32>> {
        let stream = self.stream()?;
        let queries = Buffer::from_slice(&stream, queries, "queries")?;
        let num_queries = queries.len() / self.outline.dims;
        let mut leaves = Buffer::uninitialized(self.gpu(), num_queries, "leaves of points")?;
        self.leaf_of_on(&stream, &queries, &mut leaves)?;
        leaves.to_vec(&stream)
    }

    /// Returns the leaves adjacent to each node.
    pub(super) fn adjacent_leaves(&self, nodes: &[u32]) -> Result<Rows<u32>> {
        let stream = self.stream()?;
        let nodes = Buffer::from_slice(&stream, nodes, "nodes")?;
        let found = self.all_adjacent_leaves_on(&stream, &mut Workspace::new(self.gpu()), &nodes)?;
        Ok(Rows::new(found.offsets.to_vec(&stream)?, found.leaves.to_vec(&stream)?))
    }

    /// Counts the leaves adjacent to each node and scans the counts to offsets.
    ///
    /// # Safety
    /// There is one offset more than nodes; nothing else uses the buffers until the stream has done the work.
    unsafe fn adjacent_offsets(
        &self,
        stream: &Stream,
        workspace: &mut Workspace,
        nodes: &Buffer<u32>,
        offsets: SliceMut<'_, u64>,
    ) -> Result<()> {
        let tree = self.with_parents()?;
        self.wait(stream)?;
        let plan = |layout: &mut _| AdjacentPlan::new(layout, nodes.len());
        let (plan, temp) = carve(stream, workspace, "adjacent leaves", plan)?;
        let counts = temp.view(plan.counts);
        // SAFETY: passed on to the caller.
        unsafe {
            let args = (tree, nodes.slice(), counts);
            with_2_or_3!(self.outline.dims, D => {
                stream.launch_items::<quadtree_count_adjacent<D>>(nodes.len() as u64, args)
            })?;
            plan.offsets.run(&temp, counts.read_only(), offsets)
        }
    }

    /// Writes the leaves adjacent to each node from its offset on, up to the capacity of `leaves`.
    ///
    /// # Safety
    /// The offsets come from [`adjacent_offsets`](Self::adjacent_offsets); nothing else uses the buffers until the stream has done the work.
    unsafe fn emit_adjacent(
        &self,
        stream: &Stream,
        nodes: &Buffer<u32>,
        offsets: &Buffer<u64>,
        leaves: &mut Buffer<u32>,
    ) -> Result<()> {
        if leaves.is_empty() {
            return Ok(());
        }
        let args = (self.with_parents()?, nodes.slice(), offsets.slice(), leaves.slice_mut());
        // SAFETY: passed on to the caller.
        with_2_or_3!(self.outline.dims, D => unsafe {
            stream.launch_items::<quadtree_emit_adjacent<D>>(nodes.len() as u64, args)
        })
    }

    /// Returns the tree with the parents of its nodes, which the first call computes.
    fn with_parents(&self) -> Result<Tree<'_>> {
        let (nodes, dims) = (self.nodes.bits(), self.outline.dims);
        let parents = self.parents.get_or_try_init(|| {
            let (stream, num_parents) = (self.stream()?, (self.nodes.len() - 1) >> dims);
            let mut parents = Buffer::uninitialized(self.gpu(), num_parents, "parents of a quadtree")?;
            let args = (nodes, dims as u32, parents.slice_mut());
            // SAFETY: the stream is synchronized below.
            unsafe { stream.launch_items::<quadtree_parents>(self.nodes.len() as u64, args)? };
            stream.synchronize()?;
            Ok(parents)
        })?;
        let frame_levels = with_2_or_3!(dims, D => self.outline.frame::<D>().levels);
        Ok(Tree { nodes, cells: self.cells.slice(), parents: parents.slice(), frame_levels })
    }

    /// Returns the sample of each node, as an index in tree order. Goes from the last level up, since samples of children come first.
    pub(super) fn samples<const D: usize>(&self) -> Result<Vec<u32>> {
        let stream = self.stream()?;
        let mut samples = Buffer::uninitialized(self.gpu(), self.nodes.len(), "samples of nodes")?;
        for level in self.outline.level_begins.windows(2).rev() {
            let args = (
                self.frame.slice(),
                self.nodes.bits(),
                self.cells.slice(),
                self.coords.slice(),
                self.outline.options.leaf_points,
                level[0],
                level[1],
                samples.slice_mut(),
            );
            // SAFETY: as above; earlier launches have written the samples of the children.
            unsafe { stream.launch_items::<quadtree_samples<C, D>>((level[1] - level[0]).into(), args)? };
        }
        samples.to_vec(&stream)
    }
}

//! Cell queries of a tree in device memory.

use crate::device::{Buffer, Layout, Stream, Workspace};
use crate::error::Result;
use crate::primitives::expand::Offsets;
use crate::quadtree::gpu::GpuTree;
use crate::rows::Rows;
use kauri_kernels::quadtree::queries::{
    Tree, quadtree_count_adjacent, quadtree_emit_adjacent, quadtree_leaves, quadtree_parents,
    quadtree_samples,
};
use kauri_kernels::thread::coord::Coord;

impl<C: Coord> GpuTree<C> {
    /// Returns the leaf of each query.
    pub(super) fn leaf_of<const D: usize>(&self, queries: &[[C; D]]) -> Result<Vec<u32>> {
        let stream = Stream::new(self.gpu())?;
        let frame = self.frame_on(&stream)?;
        let queries = Buffer::from_slice(&stream, queries.as_flattened(), "queries")?;
        let num_queries = queries.len() / D;
        let mut leaves = Buffer::uninitialized(self.gpu(), num_queries, "leaves of points")?;
        // SAFETY: the buffers are borrowed or owned here, and wait for the device before they are freed.
        unsafe {
            let args = (frame.slice(), self.nodes.bits(), queries.slice(), leaves.slice_mut());
            stream.launch_items::<quadtree_leaves<C, D>>(num_queries as u64, args)?;
        }
        leaves.to_vec(&stream)
    }

    /// Returns the leaves adjacent to each node: counts them, scans the counts, and emits.
    pub(super) fn adjacent_leaves<const D: usize>(&self, targets: &[u32]) -> Result<Rows<u32>> {
        let (gpu, num_rows) = (self.gpu(), targets.len());
        let stream = Stream::new(gpu)?;
        let targets = Buffer::from_slice(&stream, targets, "nodes")?;
        let mut parents =
            Buffer::<u32>::uninitialized(gpu, (self.nodes.len() - 1) >> D, "parents of a quadtree")?;
        let mut offsets = Buffer::<u64>::uninitialized(gpu, num_rows + 1, "offsets of rows")?;
        let mut layout = Layout::new();
        let counts = layout.reserve::<u32>(num_rows);
        let plan = Offsets::plan(&mut layout, num_rows);
        let mut workspace = Workspace::new(gpu);
        let temp = workspace.carve(&stream, &layout, "adjacent leaves")?;
        let counts = temp.view(counts);
        let nodes = self.nodes.bits();
        // SAFETY: the buffers are borrowed or owned here, and wait for the device before they are freed; `leaves` is as long as the
        // counts add up to.
        let leaves = unsafe {
            let args = (nodes, D as u32, parents.slice_mut());
            stream.launch_items::<quadtree_parents>(nodes.len() as u64, args)?;
            let (cells, frame_levels) = (self.cells.slice(), self.outline.frame::<D>().levels);
            let tree = Tree { nodes, cells, parents: parents.slice(), frame_levels };
            let args = (tree, targets.slice(), counts);
            stream.launch_items::<quadtree_count_adjacent<D>>(num_rows as u64, args)?;
            plan.run(&temp, counts.read_only(), offsets.slice_mut())?;
            let total = offsets.part_to_vec(&stream, num_rows..num_rows + 1)?[0];
            let mut leaves = Buffer::of_result(gpu, total, 4, "adjacent leaves")?;
            let args = (tree, targets.slice(), offsets.slice(), leaves.slice_mut());
            stream.launch_items::<quadtree_emit_adjacent<D>>(num_rows as u64, args)?;
            leaves
        };
        Ok(Rows::new(offsets.to_vec(&stream)?, leaves.to_vec(&stream)?))
    }

    /// Returns the sample of each node, as an index in tree order. Goes from the last level up, since samples of children come first.
    pub(super) fn samples<const D: usize>(&self) -> Result<Vec<u32>> {
        let stream = Stream::new(self.gpu())?;
        let frame = self.frame_on(&stream)?;
        let mut samples = Buffer::uninitialized(self.gpu(), self.nodes.len(), "samples of nodes")?;
        for level in self.outline.level_begins.windows(2).rev() {
            let args = (
                frame.slice(),
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

//! Queries of a tree on a GPU.

use crate::device::{Buffer, Layout, Stream, Workspace};
use crate::error::{Error, Result};
use crate::primitives::scan::{Scan, ScanKind};
use crate::quadtree::LeafRows;
use crate::quadtree::gpu::GpuTree;
use kauri_kernels::primitives::expand::primitives_expand_counts;
use kauri_kernels::quadtree::queries::{
    quadtree_count_around, quadtree_emit_around, quadtree_leaves, quadtree_parents, quadtree_samples,
};
use kauri_kernels::thread::coord::Coord;
use kauri_kernels::thread::operator::Sum;
use kauri_kernels::warp::look_back::Decoupled;

impl<C: Coord> GpuTree<C> {
    /// The leaf of each query.
    pub(crate) fn leaves_of<const D: usize>(&self, queries: &[[C; D]]) -> Result<Vec<u32>> {
        let stream = Stream::new(self.gpu())?;
        let frame = Buffer::from_slice(&stream, &self.frame, "quadtree frame")?;
        let queries = Buffer::from_slice(&stream, queries.as_flattened(), "queries")?;
        let num_queries = queries.len() / D;
        let mut leaves = Buffer::uninitialized(self.gpu(), num_queries, "leaves of points")?;
        // SAFETY: the buffers are borrowed or of the call, and wait for the device before they are freed.
        unsafe {
            let args = (frame.slice(), self.nodes.slice(), queries.slice(), leaves.slice_mut());
            stream.launch_items::<quadtree_leaves<C, D>>(num_queries as u64, args)?;
        }
        leaves.to_vec(&stream)
    }

    /// The leaves around nodes.
    pub(crate) fn leaves_around<const D: usize>(&self, of: &[u32]) -> Result<LeafRows> {
        let (gpu, num_rows) = (self.gpu(), of.len());
        let stream = Stream::new(gpu)?;
        let frame = Buffer::from_slice(&stream, &self.frame, "quadtree frame")?;
        let of = Buffer::from_slice(&stream, of, "nodes")?;
        let mut parents =
            Buffer::<u32>::uninitialized(gpu, (self.nodes.len() - 1) >> D, "parents of a quadtree")?;
        let mut offsets = Buffer::<u64>::uninitialized(gpu, num_rows + 1, "offsets of rows")?;
        let mut layout = Layout::new();
        let counts = layout.reserve::<u32>(num_rows);
        let scan = Scan::plan::<u64, Decoupled>(&mut layout, num_rows + 1);
        let mut workspace = Workspace::new(gpu);
        let temp = workspace.carve(&stream, &layout, "leaves around nodes")?;
        let counts = temp.view(counts);
        let (nodes, cells) = (self.nodes.slice(), self.cells.slice());
        // SAFETY: the buffers are borrowed or of the call, and wait for the device before they are freed; there is room for as many leaves as
        // have been counted.
        let leaves = unsafe {
            let args = (nodes, D as u32, parents.slice_mut());
            stream.launch_items::<quadtree_parents>(nodes.len() as u64, args)?;
            let args = (frame.slice(), nodes, cells, parents.slice(), of.slice(), counts);
            stream.launch_items::<quadtree_count_around<D>>(num_rows as u64, args)?;
            let begins = offsets.slice_mut();
            stream.launch_items::<primitives_expand_counts>(
                num_rows as u64 + 1,
                (counts.read_only(), begins),
            )?;
            scan.run::<u64, Sum, Decoupled>(&stream, &temp, begins.read_only(), begins, ScanKind::Exclusive)?;
            let total = offsets.part_to_vec(&stream, num_rows..num_rows + 1)?[0];
            let too_large = |error: Error| error.of_result(total, 4 * total);
            let mut leaves =
                Buffer::uninitialized(gpu, total as usize, "leaves around nodes").map_err(too_large)?;
            let args = (
                frame.slice(),
                nodes,
                cells,
                parents.slice(),
                of.slice(),
                offsets.slice(),
                leaves.slice_mut(),
            );
            stream.launch_items::<quadtree_emit_around<D>>(num_rows as u64, args)?;
            leaves
        };
        Ok(LeafRows { offsets: offsets.to_vec(&stream)?, leaves: leaves.to_vec(&stream)? })
    }

    /// The place of the sample of each node.
    pub(crate) fn samples<const D: usize>(&self) -> Result<Vec<u32>> {
        let stream = Stream::new(self.gpu())?;
        let frame = Buffer::from_slice(&stream, &self.frame, "quadtree frame")?;
        let mut samples = Buffer::uninitialized(self.gpu(), self.nodes.len(), "samples of nodes")?;
        for level in self.level_begins.windows(2).rev() {
            let args = (
                frame.slice(),
                self.nodes.slice(),
                self.cells.slice(),
                self.coords.slice(),
                self.options.leaf_points,
                level[0],
                level[1],
                samples.slice_mut(),
            );
            // SAFETY: as above; those of the children are there.
            unsafe { stream.launch_items::<quadtree_samples<C, D>>((level[1] - level[0]).into(), args)? };
        }
        samples.to_vec(&stream)
    }
}

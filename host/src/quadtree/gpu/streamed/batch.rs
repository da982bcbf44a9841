//! The build of a batch of subtrees on the device.

use crate::device::{Buffer, Workspace};
use crate::error::{Error, Result};
use crate::memory;
use crate::primitives::generate::iota_on;
use crate::primitives::permute::{Direction, gather_on, permute_parts};
use crate::quadtree::gpu::build_input::BuildInput;
use crate::quadtree::gpu::node_buffers::NodeBuffers;
use crate::quadtree::gpu::streamed::lanes::Lane;
use crate::quadtree::gpu::streamed::ranks::CellRanks;
use crate::quadtree::gpu::streamed::top::{Batch, TopNodes};
use crate::quadtree::gpu::streamed::{StreamedBuild, TreePoints};
use crate::quadtree::gpu::{codes, levels};
use crate::quadtree::host::Levels;
use crate::quadtree::options::BuildAlgorithm;
use crate::quadtree::part::Part;
use kauri_kernels::quadtree::node::Node;
use kauri_kernels::thread::coord::Coord;
use std::iter::once;

impl<C: Coord, const D: usize> StreamedBuild<'_, C, D> {
    /// Builds the subtrees of a batch, and brings its points into tree order. The roots are the first of the levels returned. Returns the
    /// inner error, and has changed nothing, if the device lacks memory.
    pub(super) fn build_batch(
        &self,
        lane: &mut Lane,
        top: &TopNodes<D>,
        batch: &Batch,
        output: &TreePoints<'_, C>,
    ) -> Result<std::result::Result<Levels<D>, Error>> {
        match self.try_batch(lane, top, batch, output) {
            Err(error @ Error::OutOfMemory { memory: "device", .. }) => {
                lane.workspace = Workspace::new(self.gpu);
                Ok(Err(error))
            }
            result => result.map(Ok),
        }
    }

    fn try_batch(
        &self,
        lane: &mut Lane,
        top: &TopNodes<D>,
        batch: &Batch,
        output: &TreePoints<'_, C>,
    ) -> Result<Levels<D>> {
        let (mut roots, corners) = top.splitting_roots(batch);
        let (gpu, n, start) = (self.gpu, batch.points.len(), batch.points.start as u32);
        if roots.is_empty() && batch.roots.len() == 1 {
            return Ok(Levels::default());
        }
        for root in &mut roots {
            (root.start, root.end) = (root.start - start, root.end - start);
        }
        // SAFETY: the points of the batch have been written, and no other task uses them.
        let (coords, ids) = unsafe { output.points::<D>(&batch.points) };
        let (coords, ids) = (lane.upload(coords, D)?, lane.upload(ids, 1)?);
        // Indices of the points in the batch, in tree order at last.
        let mut order = Buffer::uninitialized(gpu, n, "ids of a batch")?;
        self.group_by_root(lane, top, batch, &coords, &mut order)?;
        let stream = &lane.stream;
        let mut nodes = NodeBuffers::of_roots(stream, &roots, &corners)?;
        let mut splits = Vec::new();
        if !roots.is_empty() {
            let input = BuildInput {
                stream,
                coords: coords.slice(),
                frame: self.frame_on(stream)?,
                depth: self.depth,
                leaf_points: self.options.leaf_points,
            };
            let (workspace, level) = (&mut lane.workspace, roots[0].level);
            // SAFETY: the buffers are owned here, and wait for the device before they are freed.
            splits = unsafe {
                match self.options.algorithm {
                    BuildAlgorithm::Codes => {
                        codes::build_below(&input, workspace, &mut order, &mut nodes, level, &roots)
                    }
                    BuildAlgorithm::Levels => {
                        let (options, roots) = (self.options.levels, (level, roots.len()));
                        levels::build(&input, workspace, &mut order, &mut nodes, options, roots)
                    }
                }?
            };
        }
        let mut coords_out = Buffer::<C>::uninitialized(gpu, n * D, "points of a batch")?;
        let mut ids_out = Buffer::<u32>::uninitialized(gpu, n, "ids of a batch")?;
        // SAFETY: as above; the arrays that are downloaded have been written, and no other task uses this range of the output.
        unsafe {
            let (order, out) = (order.slice(), coords_out.slice_mut());
            permute_parts(stream, Direction::Gather, D, coords.slice(), order, out)?;
            gather_on(stream, ids.slice(), order, ids_out.slice_mut())?;
            let part = Part {
                nodes: lane.download(nodes.nodes.slice(), |&[bits]| Node::from_bits(bits))?,
                corners: lane.download(nodes.cells.slice(), |&corner| corner)?,
            };
            let lens = once(roots.len()).chain(splits.iter().map(|&num| (num as usize) << D));
            let levels = Levels::of_part(part, lens.take_while(|&len| len > 0), start);
            lane.staging.download(&lane.stream, coords_out.slice(), D, |first, items| {
                let begin = (batch.points.start + first) * D;
                output.coords.part(begin..begin + items.len()).write_copy_of_slice(items);
            })?;
            lane.staging.download(&lane.stream, ids_out.slice(), 1, |first, items| {
                let begin = batch.points.start + first;
                output.ids.part(begin..begin + items.len()).write_copy_of_slice(items);
            })?;
            Ok(levels)
        }
    }

    /// Writes the indices of the points of a batch, grouped by root, in input order within a root.
    fn group_by_root(
        &self,
        lane: &mut Lane,
        top: &TopNodes<D>,
        batch: &Batch,
        coords: &Buffer<C>,
        order: &mut Buffer<u32>,
    ) -> Result<()> {
        let stream = &lane.stream;
        let roots = &top.roots[batch.roots.clone()];
        if roots.len() == 1 {
            // SAFETY: the buffer waits for the device before it is freed.
            return unsafe { iota_on(stream, 0, order.slice_mut()) };
        }
        // The rank of a root, for each of its cells.
        let first_cell = roots[0].cells.start;
        let mut ranks = memory::vec_with_capacity(0, "ranks of cells")?;
        for (rank, root) in roots.iter().enumerate() {
            memory::reserve_more(&mut ranks, root.cells.len(), "ranks of cells")?;
            ranks.resize((root.cells.end - first_cell) as usize, rank as u32);
        }
        let cells = CellRanks {
            ranks: Buffer::from_slice(stream, &ranks, "ranks of cells")?,
            first_cell,
            num_ranks: roots.len(),
            frame: self.frame_on(stream)?,
        };
        // SAFETY: the buffers wait for the device before they are freed, and have one entry per point.
        unsafe {
            let sorted = self.sort_by_rank(stream, &mut lane.workspace, coords, top, &cells)?;
            stream.copy(order.slice_mut(), sorted.values)?;
            stream.synchronize()
        }
    }
}

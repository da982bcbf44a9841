//! The build of a batch of subtrees on the device.

use crate::device::{Buffer, Workspace};
use crate::error::{Error, Result};
use crate::primitives::permute::gather_on;
use crate::quadtree::gpu::build::{Build, NodeBuffers};
use crate::quadtree::gpu::streamed::lanes::Lane;
use crate::quadtree::gpu::streamed::top::{Batch, TopNodes};
use crate::quadtree::gpu::streamed::{StreamedBuild, TreePoints};
use crate::quadtree::host::Levels;
use crate::quadtree::node::Part;
use kauri_kernels::quadtree::node::Node;
use kauri_kernels::thread::coord::Coord;

impl<C: Coord, const D: usize> StreamedBuild<'_, C, D> {
    /// Builds the subtrees of a batch, and brings its points into tree order. Returns the levels below the roots; `None`, and has changed
    /// nothing, if the device lacks memory.
    pub(super) fn build_batch(
        &self,
        lane: &mut Lane,
        top: &TopNodes<D>,
        batch: &Batch,
        output: &TreePoints<'_, C>,
    ) -> Result<Option<Levels<D>>> {
        match self.try_batch(lane, top, batch, output) {
            Err(Error::OutOfMemory { memory: "device", .. }) => {
                lane.workspace = Workspace::new(lane.stream.gpu());
                Ok(None)
            }
            result => result.map(Some),
        }
    }

    /// Builds a batch as [`build_batch`](Self::build_batch) does; lack of memory is an error.
    pub(super) fn try_batch(
        &self,
        lane: &mut Lane,
        top: &TopNodes<D>,
        batch: &Batch,
        output: &TreePoints<'_, C>,
    ) -> Result<Levels<D>> {
        let start = batch.points.start as u32;
        let root_in_batch = |&Node { start: first, end, level, .. }: &Node| Node {
            start: first - start,
            end: end - start,
            first_child: 0,
            level,
        };
        let splitting = top.splitting_roots(batch).map(|root| (root_in_batch(&root.node), root.corner));
        let (roots, corners): (Vec<_>, Vec<_>) = splitting.unzip();
        if roots.is_empty() {
            return Ok(Levels::default());
        }
        // SAFETY: the points of the batch have been written, and no other task uses them.
        let (coords, ids) = unsafe { output.points::<D>(&batch.points) };
        let rows = 0..batch.points.len();
        let (coords, ids) = (coords.upload(lane, rows.clone(), D)?, ids.upload(lane, rows, 1)?);
        let mut build = Build::new(&lane.stream, &coords, (&roots, &corners), &self.frame, self.options)?;
        // SAFETY: the buffers are owned here, and wait for the device before they are freed; the arrays that are downloaded have been
        // written, and no other task uses this range of the output.
        unsafe {
            self.options.algorithm.run(&mut build, &mut lane.workspace)?;
            let (in_order, mut ids_out) = (
                build.coords_in_order()?,
                Buffer::<u32>::uninitialized(lane.stream.gpu(), ids.len(), "ids of a batch")?,
            );
            gather_on(&lane.stream, ids.slice(), build.ids.slice(), ids_out.slice_mut())?;
            let NodeBuffers { nodes, cells } = build.nodes;
            let nodes = lane.download::<_, 1>(nodes.slice())?.into_flattened();
            let part = Part { nodes, corners: lane.download(cells.slice())? };
            lane.stream.download_by(in_order.slice(), D, |first, items| {
                output.coords.write((batch.points.start + first) * D, items)
            })?;
            lane.stream.download_by(ids_out.slice(), 1, |first, items| {
                output.ids.write(batch.points.start + first, items)
            })?;
            Ok(Levels::of_part(part, start).below_first())
        }
    }
}

//! A batch of parts on its way through the device.

use crate::device::{Buffer, Layout, Workspace};
use crate::error::{Error, Result};
use crate::memory;
use crate::primitives::generate::iota_on;
use crate::primitives::pairs::Pairs;
use crate::primitives::permute::{Direction, gather_on, permute_parts};
use crate::primitives::radix_sort::{RadixSort, Shape, SortBy};
use crate::quadtree::Builder;
use crate::quadtree::gpu::nodes::Nodes;
use crate::quadtree::gpu::streamed::lanes::Lane;
use crate::quadtree::gpu::streamed::top::{Batch, Top};
use crate::quadtree::gpu::streamed::{Room, Streamed};
use crate::quadtree::gpu::{Asked, codes, levels};
use crate::quadtree::host::{Levels, Part};
use kauri_kernels::quadtree::batches::quadtree_ranks;
use kauri_kernels::quadtree::node::Node;
use kauri_kernels::thread::coord::Coord;
use std::iter::once;

impl<C: Coord, const D: usize> Streamed<'_, C, D> {
    /// Builds what is below the roots of a batch, and puts its points in order; the roots are the first level of what is returned. If the device has no
    /// room for it nothing has been done.
    pub(crate) fn batch(
        &self,
        lane: &mut Lane,
        top: &Top<D>,
        batch: &Batch,
        room: &Room<'_, C>,
    ) -> Result<std::result::Result<Levels<D>, Error>> {
        match self.batch_that_fits(lane, top, batch, room) {
            Err(error @ Error::OutOfMemory { memory: "device", .. }) => {
                lane.workspace = Workspace::new(self.gpu);
                Ok(Err(error))
            }
            result => result.map(Ok),
        }
    }

    fn batch_that_fits(
        &self,
        lane: &mut Lane,
        top: &Top<D>,
        batch: &Batch,
        room: &Room<'_, C>,
    ) -> Result<Levels<D>> {
        let (mut roots, corners) = top.nodes(batch);
        let (gpu, n, start) = (self.gpu, batch.points.len(), batch.points.start as u32);
        if roots.is_empty() && batch.roots.len() == 1 {
            return Ok(Levels::default());
        }
        for root in &mut roots {
            (root.start, root.end) = (root.start - start, root.end - start);
        }
        // SAFETY: the points of the batch are there, and are of this piece of work alone.
        let (coords, ids) = unsafe { room.points::<D>(&batch.points) };
        let (coords, ids) = (lane.upload(coords, D)?, lane.upload(ids, 1)?);
        let mut numbers = Buffer::uninitialized(gpu, n, "ids of a batch")?;
        self.order(lane, top, batch, &coords, &mut numbers)?;
        let stream = &lane.stream;
        let mut nodes = Nodes::of_roots(stream, &roots, &corners)?;
        let mut splits = Vec::new();
        if !roots.is_empty() {
            let asked = Asked {
                stream,
                coords: coords.slice(),
                frame: self.frame_on(stream)?,
                depth: self.depth,
                most: self.options.leaf_points,
            };
            let level = roots[0].level;
            // SAFETY: the buffers are of this call, and wait for the device before they are freed.
            splits = unsafe {
                match self.options.builder {
                    Builder::Codes => codes::build_below(
                        &asked,
                        &mut lane.workspace,
                        &mut numbers,
                        &mut nodes,
                        level,
                        &roots,
                    ),
                    Builder::Levels => {
                        let (workspace, options) = (&mut lane.workspace, self.options.levels);
                        levels::build(
                            &asked,
                            workspace,
                            &mut numbers,
                            &mut nodes,
                            options,
                            (level, roots.len()),
                        )
                    }
                }?
            };
        }
        let mut coords_out = Buffer::<C>::uninitialized(gpu, n * D, "points of a batch")?;
        let mut ids_out = Buffer::<u32>::uninitialized(gpu, n, "ids of a batch")?;
        // SAFETY: as above; what is downloaded has been written, and no other piece of work uses those places.
        unsafe {
            let (order, out) = (numbers.slice(), coords_out.slice_mut());
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
                room.coords.part(begin..begin + items.len()).write_copy_of_slice(items);
            })?;
            lane.staging.download(&lane.stream, ids_out.slice(), 1, |first, items| {
                let begin = batch.points.start + first;
                room.ids.part(begin..begin + items.len()).write_copy_of_slice(items);
            })?;
            Ok(levels)
        }
    }

    /// Writes the numbers of the points of a batch in the order of its roots.
    fn order(
        &self,
        lane: &mut Lane,
        top: &Top<D>,
        batch: &Batch,
        coords: &Buffer<C>,
        numbers: &mut Buffer<u32>,
    ) -> Result<()> {
        let (stream, n) = (&lane.stream, numbers.len());
        let roots = &top.roots[batch.roots.clone()];
        if roots.len() == 1 {
            // SAFETY: the buffer waits for the device before it is freed.
            return unsafe { iota_on(stream, 0, numbers.slice_mut()) };
        }
        let first_cell = roots[0].cells.start;
        let mut ranks = memory::vec_with_capacity(0, "ranks of cells")?;
        for (rank, root) in roots.iter().enumerate() {
            memory::reserve_more(&mut ranks, root.cells.len(), "ranks of cells")?;
            ranks.resize((root.cells.end - first_cell) as usize, rank as u32);
        }
        let (ranks, frame) = (Buffer::from_slice(stream, &ranks, "ranks of cells")?, self.frame_on(stream)?);
        let mut layout = Layout::new();
        let pairs = [0, 1].map(|_| (layout.reserve::<u32>(n), layout.reserve::<u32>(n)));
        let [sort] = RadixSort::plan(&mut layout, n, [Shape::of::<u32, u32>(n)]);
        let temp = lane.workspace.carve(stream, &layout, "points of a batch")?;
        let pairs = pairs.map(|(keys, values)| Pairs { keys: temp.view(keys), values: temp.view(values) });
        let by = SortBy::numbers_below(roots.len());
        // SAFETY: the buffers wait for the device before they are freed; as many of each as are planned.
        unsafe {
            let (level, num_levels) = (top.level, top.num_levels);
            let (keys, values) = (pairs[1].keys, pairs[1].values);
            let args =
                (coords.slice(), frame.slice(), level, num_levels, ranks.slice(), first_cell, keys, values);
            stream.launch_items::<quadtree_ranks<C, D>>(n as u64, args)?;
            let [sorted, _] = sort.run(stream, &temp, by, pairs[1].read_only(), pairs)?;
            stream.copy(numbers.slice_mut(), sorted.read_only().values)?;
            stream.synchronize()
        }
    }
}

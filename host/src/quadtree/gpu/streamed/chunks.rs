//! Passes over the input chunk by chunk: counting by cell, and distribution to roots.

use crate::device::{Buffer, Stream, Workspace};
use crate::error::Result;
use crate::memory;
use crate::parallel::Ranges;
use crate::primitives::permute::{Direction, gather_on, permute_parts};
use crate::primitives::planned::carve;
use crate::primitives::radix_sort::{PairSort, SortBy};
use crate::quadtree::gpu::streamed::lanes::{Lane, Lanes};
use crate::quadtree::gpu::streamed::top::TopNodes;
use crate::quadtree::gpu::streamed::{InputPoints, StreamedBuild, TreePoints};
use cuda_std::mem::Slice;
use kauri_kernels::quadtree::streamed::{quadtree_count_cells, quadtree_ranks};
use kauri_kernels::thread::coord::Coord;
use std::ops::Range;

/// Most points of a chunk.
const MAX_CHUNK: usize = 1 << 24;

/// Consecutive points of the input.
pub(super) struct Chunk {
    points: Range<usize>,
    /// The number of points in each cell.
    pub(super) counts: Vec<u32>,
}

/// Points of a chunk that belong to one root, once the chunk is sorted; they end where the next run begins.
struct Run {
    begin: u32,
    /// The index in the output of the first of them.
    target: u32,
}

impl<C: Coord, const D: usize> StreamedBuild<'_, C, D> {
    /// Cuts the input into chunks that fit on the device, and counts their points in each cell `num_levels` below a node of level `level`.
    pub(super) fn count_cells(
        &self,
        lanes: &mut Lanes<'_>,
        level: u32,
        num_levels: u32,
        input: InputPoints<'_, C>,
        max_points: usize,
    ) -> Result<Vec<Chunk>> {
        let chunks: Vec<_> = Ranges::new(input.len, MAX_CHUNK.min(max_points)).iter().collect();
        let counts = lanes.run("counts", &chunks, |lane, i| {
            let coords = input.coords.upload(lane, chunks[i].clone(), D)?;
            let frame = self.frame_on(&lane.stream)?;
            let num_cells = 1 << (D as u32 * num_levels);
            let mut counts = Buffer::<u32>::of_bytes(&lane.stream, num_cells, 0, "counts of cells")?;
            let args = (coords.slice(), frame.slice(), level, num_levels, counts.slice_mut());
            // SAFETY: the buffers wait for the device before they are freed.
            unsafe {
                lane.stream.launch_items::<quadtree_count_cells<C, D>>(chunks[i].len() as u64, args)?;
            }
            counts.to_vec(&lane.stream)
        })?;
        Ok(chunks.into_iter().zip(counts).map(|(points, counts)| Chunk { points, counts }).collect())
    }

    /// Writes the points of each root to its range of the output, in input order.
    pub(super) fn distribute(
        &self,
        lanes: &mut Lanes<'_>,
        top: &TopNodes<D>,
        chunks: Vec<Chunk>,
        input: InputPoints<'_, C>,
        output: &TreePoints<'_, C>,
    ) -> Result<()> {
        let num_cells = 1 << (D as u32 * top.num_levels);
        let mut cell_ranks: Vec<u32> = memory::vec_with_capacity(num_cells, "ranks of cells")?;
        for (rank, root) in (0..).zip(&top.roots) {
            cell_ranks.resize(root.cells.end as usize, rank);
        }
        // The next free index of each root. A chunk takes its ranges after the chunks before it, so that points stay in input order.
        let mut targets: Vec<u32> = top.roots.iter().map(|root| root.node.start).collect();
        let (mut tasks, mut runs) = (Vec::with_capacity(chunks.len()), Vec::with_capacity(chunks.len()));
        for Chunk { points, counts } in chunks {
            let (mut chunk_runs, mut begin) = (Vec::new(), 0);
            for (root, target) in top.roots.iter().zip(&mut targets) {
                let cells = root.cells.start as usize..root.cells.end as usize;
                let len: u32 = counts[cells].iter().sum();
                if len > 0 {
                    memory::reserve_more(&mut chunk_runs, 1, "runs of points")?;
                    chunk_runs.push(Run { begin, target: *target });
                }
                (begin, *target) = (begin + len, *target + len);
            }
            tasks.push(points);
            runs.push(chunk_runs);
        }
        lanes.run("batches", &tasks, |lane, i| {
            self.distribute_chunk(lane, top, &cell_ranks, (&tasks[i], &runs[i]), input, output)
        })?;
        Ok(())
    }

    /// Sorts a chunk by root, and writes its runs to the output.
    fn distribute_chunk(
        &self,
        lane: &mut Lane,
        top: &TopNodes<D>,
        cell_ranks: &[u32],
        (chunk, runs): (&Range<usize>, &[Run]),
        input: InputPoints<'_, C>,
        output: &TreePoints<'_, C>,
    ) -> Result<()> {
        let coords = input.coords.upload(lane, chunk.clone(), D)?;
        let ids = input.ids.map(|ids| ids.upload(lane, chunk.clone(), 1)).transpose()?;
        let (gpu, stream) = (lane.stream.gpu(), &lane.stream);
        let mut coords_out = Buffer::<C>::uninitialized(gpu, coords.len(), "points of batches")?;
        let num_ids = ids.as_ref().map_or(0, Buffer::len);
        let mut ids_out = Buffer::<u32>::uninitialized(gpu, num_ids, "ids of batches")?;
        // SAFETY: the buffers wait for the device before they are freed, and have one entry per point; the arrays that are downloaded have
        // been written; chunks write disjoint ranges of the output.
        unsafe {
            let order = self.sort_by_root(stream, &mut lane.workspace, &coords, top, cell_ranks)?;
            permute_parts(stream, Direction::Gather, D, coords.slice(), order, coords_out.slice_mut())?;
            // The id of a point is its index if the input has no ids.
            let (mut sorted_ids, mut first_id) = (order, chunk.start as u32);
            if let Some(ids) = &ids {
                gather_on(stream, ids.slice(), order, ids_out.slice_mut())?;
                (sorted_ids, first_id) = (ids_out.slice(), 0);
            }
            stream.download_by(coords_out.slice(), D, |first, items| {
                for_each_run(runs, first, items.len() / D, |to, from| {
                    output.coords.write(to * D, &items[from.start * D..from.end * D])
                })
            })?;
            stream.download_by(sorted_ids, 1, |first, items| {
                let ids: Vec<u32> = items.iter().map(|&id| id + first_id).collect();
                for_each_run(runs, first, items.len(), |to, from| output.ids.write(to, &ids[from]))
            })
        }
    }

    /// Sorts points by the rank of their root. Returns the indices of the points, in input order within a rank.
    ///
    /// # Safety
    /// Nothing writes the buffers until the stream has done the work.
    unsafe fn sort_by_root<'a>(
        &self,
        stream: &Stream,
        workspace: &'a mut Workspace,
        coords: &Buffer<C>,
        top: &TopNodes<D>,
        cell_ranks: &[u32],
    ) -> Result<Slice<'a, u32>> {
        let n = coords.len() / D;
        let plan = |layout: &mut _| PairSort::plan(layout, n);
        let (sort, temp) = carve(stream, workspace, "points of batches", plan)?;
        let frame = self.frame_on(stream)?;
        let cell_ranks = Buffer::from_slice(stream, cell_ranks, "ranks of cells")?;
        // SAFETY: the arrays are as long as planned; the rest is the caller's promise.
        unsafe {
            // At least one bit to sort by.
            let by = SortBy::numbers_below(top.roots.len().max(2));
            let (_, order) = sort.run(&temp, by.end_bit, |keys, values| {
                let (frame, ranks) = (frame.slice(), cell_ranks.slice());
                let args = (coords.slice(), frame, top.level, top.num_levels, ranks, keys, values);
                stream.launch_items::<quadtree_ranks<C, D>>(n as u64, args)
            })?;
            Ok(order)
        }
    }

    /// Copies the frame's words to the device.
    fn frame_on(&self, stream: &Stream) -> Result<Buffer<u64>> {
        let words: Vec<u64> = self.frame.to_words().collect();
        Buffer::from_slice(stream, &words, "quadtree frame")
    }
}

/// Calls `visit` for each run among the points `first..first + len` of a chunk: with its begin in the output, and its range among these
/// points.
fn for_each_run(
    runs: &[Run],
    first: usize,
    len: usize,
    visit: impl Fn(usize, Range<usize>) -> Result<()>,
) -> Result<()> {
    let (mut at, mut run) =
        (first, runs.partition_point(|run| run.begin as usize <= first).saturating_sub(1));
    while at < first + len {
        let end = runs.get(run + 1).map_or(usize::MAX, |next| next.begin as usize).min(first + len);
        let to = runs[run].target as usize + (at - runs[run].begin as usize);
        visit(to, at - first..end - first)?;
        (at, run) = (end, run + 1);
    }
    Ok(())
}

//! Passes over the input chunk by chunk: counting by cell, and distribution to batches.

use crate::device::Buffer;
use crate::error::Result;
use crate::memory;
use crate::primitives::pairs::empty_view;
use crate::primitives::permute::{Direction, gather_on, permute_parts};
use crate::quadtree::gpu::streamed::lanes::{Lane, Lanes, Turns};
use crate::quadtree::gpu::streamed::ranks::CellRanks;
use crate::quadtree::gpu::streamed::top::{Batch, SubtreeRoot, TopNodes};
use crate::quadtree::gpu::streamed::{InputPoints, StreamedBuild, TreePoints};
use kauri_kernels::primitives::search::primitives_search;
use kauri_kernels::quadtree::streamed::quadtree_count_cells;
use kauri_kernels::thread::coord::Coord;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// Most points of a chunk.
const CHUNK: usize = 1 << 24;

impl<C: Coord, const D: usize> StreamedBuild<'_, C, D> {
    /// Counts the points of each cell `num_levels` below a node.
    pub(super) fn count_cells(
        &self,
        lanes: &mut Lanes<'_>,
        root: &SubtreeRoot<D>,
        input: InputPoints<'_, C>,
        num_levels: u32,
        max_points: usize,
    ) -> Result<Vec<u32>> {
        let num_cells = 1 << (D as u32 * num_levels);
        let mut counts = memory::vec_with_capacity(num_cells, "counts of cells")?;
        counts.resize(num_cells, 0);
        let counts = Mutex::new(counts);
        let chunks = chunks(input.coords.len() / D, max_points);
        lanes.run(self.gpu, "counts", &chunks, |lane, i| {
            let chunk = &chunks[i];
            let coords = lane.upload(&input.coords[chunk.start * D..chunk.end * D], D)?;
            let frame = self.frame_on(&lane.stream)?;
            let mut chunk_counts = Buffer::<u32>::uninitialized(self.gpu, num_cells, "counts of cells")?;
            chunk_counts.fill_bytes(&lane.stream, 0)?;
            let args = (coords.slice(), frame.slice(), root.level, num_levels, chunk_counts.slice_mut());
            // SAFETY: the buffers wait for the device before they are freed.
            unsafe { lane.stream.launch_items::<quadtree_count_cells<C, D>>(chunk.len() as u64, args)? };
            let chunk_counts = chunk_counts.to_vec(&lane.stream)?;
            let mut counts = counts.lock().unwrap_or_else(PoisonError::into_inner);
            counts.iter_mut().zip(chunk_counts).for_each(|(count, chunk_count)| *count += chunk_count);
            Ok(())
        })?;
        Ok(counts.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    /// Writes the points of each batch to its range of the output, in input order.
    pub(super) fn distribute(
        &self,
        lanes: &mut Lanes<'_>,
        top: &TopNodes<D>,
        batches: &[Batch],
        input: InputPoints<'_, C>,
        output: &TreePoints<'_, C>,
        max_points: usize,
    ) -> Result<()> {
        let chunks = chunks(input.coords.len() / D, max_points);
        let num_cells = 1 << (D as u32 * top.num_levels);
        let mut cell_batches = memory::vec_with_capacity(num_cells, "batches of cells")?;
        cell_batches.resize(num_cells, 0);
        for (number, batch) in batches.iter().enumerate() {
            for root in &top.roots[batch.roots.clone()] {
                cell_batches[root.cells.start as usize..root.cells.end as usize].fill(number as u32);
            }
        }
        let numbers: Vec<u32> = (0..batches.len() as u32).collect();
        // The next free index of each batch. Chunks reserve their ranges in order, so that points stay in input order.
        let turns = Turns::new(batches.iter().map(|batch| batch.points.start).collect::<Vec<_>>());
        let distribute_chunk = |lane: &mut Lane, i: usize| -> Result<()> {
            let chunk = &chunks[i];
            let (gpu, n) = (self.gpu, chunk.len());
            let coords = lane.upload(&input.coords[chunk.start * D..chunk.end * D], D)?;
            let ids = input.ids.map(|ids| lane.upload(&ids[chunk.clone()], 1)).transpose()?;
            let stream = &lane.stream;
            let cells = CellRanks {
                ranks: Buffer::from_slice(stream, &cell_batches, "batches")?,
                first_cell: 0,
                // At least one bit to sort by.
                num_ranks: batches.len().max(2),
                frame: self.frame_on(stream)?,
            };
            let numbers = Buffer::from_slice(stream, &numbers, "batches")?;
            let mut begins = Buffer::<u64>::uninitialized(gpu, batches.len(), "batches")?;
            let mut coords_out = Buffer::<C>::uninitialized(gpu, n * D, "points of batches")?;
            let mut ids_out =
                Buffer::<u32>::uninitialized(gpu, if ids.is_some() { n } else { 0 }, "ids of batches")?;
            // SAFETY: the buffers wait for the device before they are freed, and have one entry per point or batch.
            let (begins, order) = unsafe {
                let sorted = self.sort_by_rank(stream, &mut lane.workspace, &coords, top, &cells)?;
                let args = (sorted.keys, numbers.slice(), begins.slice_mut(), empty_view());
                stream.launch_items::<primitives_search<u32>>(batches.len() as u64, args)?;
                let (coords, out) = (coords.slice(), coords_out.slice_mut());
                permute_parts(stream, Direction::Gather, D, coords, sorted.values, out)?;
                if let Some(ids) = &ids {
                    gather_on(stream, ids.slice(), sorted.values, ids_out.slice_mut())?;
                }
                (begins.to_vec(stream)?, sorted.values)
            };
            let runs = turns.take(i, |next| {
                let ends = begins[1..].iter().copied().chain([n as u64]);
                let run = |((&begin, end), next): ((&u64, u64), &mut usize)| {
                    let run = Run { begin: begin as usize, target: *next };
                    *next += (end - begin) as usize;
                    run
                };
                begins.iter().zip(ends).zip(next).map(run).collect::<Vec<_>>()
            });
            let Some(runs) = runs else { return Ok(()) };
            // SAFETY: the arrays that are downloaded have been written; chunks write disjoint ranges of the output.
            unsafe {
                lane.staging.download(&lane.stream, coords_out.slice(), D, |first, items| {
                    for_each_run(&runs, first, items.len() / D, |to, from| {
                        let to = output.coords.part(to.start * D..to.end * D);
                        to.write_copy_of_slice(&items[from.start * D..from.end * D]);
                    });
                })?;
                let (sorted, first_id) = match input.ids {
                    Some(_) => (ids_out.slice(), 0),
                    None => (order, chunk.start as u32),
                };
                lane.staging.download(&lane.stream, sorted, 1, |first, items| {
                    for_each_run(&runs, first, items.len(), |to, from| {
                        for (to, &id) in output.ids.part(to).iter_mut().zip(&items[from]) {
                            to.write(id + first_id);
                        }
                    });
                })
            }
        };
        lanes.run(self.gpu, "batches", &chunks, |lane, i| turns.within(|| distribute_chunk(lane, i)))?;
        Ok(())
    }
}

/// Consecutive points of a chunk that belong to one batch; they end where the next run begins.
struct Run {
    begin: usize,
    /// The index in the output of the first of them.
    target: usize,
}

/// Calls `visit` for each run among the points `first..first + len` of a chunk: with its range in the output, and its range among these
/// points.
fn for_each_run(runs: &[Run], first: usize, len: usize, mut visit: impl FnMut(Range<usize>, Range<usize>)) {
    let (mut at, mut run) = (first, runs.partition_point(|run| run.begin <= first).saturating_sub(1));
    while at < first + len {
        let end = runs.get(run + 1).map_or(usize::MAX, |next| next.begin).min(first + len);
        if end > at {
            let to = runs[run].target + (at - runs[run].begin);
            visit(to..to + (end - at), at - first..end - first);
            at = end;
        }
        run += 1;
    }
}

/// Cuts `len` points into chunks that fit on the device.
fn chunks(len: usize, max_points: usize) -> Vec<Range<usize>> {
    let chunk = CHUNK.min(max_points);
    (0..len).step_by(chunk).map(|begin| begin..len.min(begin + chunk)).collect()
}

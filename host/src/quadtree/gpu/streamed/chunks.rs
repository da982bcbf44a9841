//! Points on their first way through the device: counted, and brought to where their batch is.

use crate::device::{Buffer, Layout};
use crate::error::Result;
use crate::memory;
use crate::primitives::pairs::{Pairs, empty_view};
use crate::primitives::permute::{Direction, gather_on, permute_parts};
use crate::primitives::radix_sort::{RadixSort, Shape, SortBy};
use crate::quadtree::gpu::streamed::lanes::{Lane, Lanes, Turns};
use crate::quadtree::gpu::streamed::top::{Batch, Top};
use crate::quadtree::gpu::streamed::{Base, Points, Room, Streamed};
use kauri_kernels::primitives::search::primitives_search;
use kauri_kernels::quadtree::batches::{quadtree_count_cells, quadtree_ranks};
use kauri_kernels::thread::coord::Coord;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// Points of a chunk at most.
const CHUNK: usize = 1 << 24;

impl<C: Coord, const D: usize> Streamed<'_, C, D> {
    /// How many points each cell has, `num_levels` levels below a node.
    pub(crate) fn count(
        &self,
        lanes: &mut Lanes<'_>,
        base: &Base<D>,
        from: Points<'_, C>,
        num_levels: u32,
        fits: usize,
    ) -> Result<Vec<u32>> {
        let num_cells = 1 << (D as u32 * num_levels);
        let mut counts = memory::vec_with_capacity(num_cells, "counts of cells")?;
        counts.resize(num_cells, 0);
        let counts = Mutex::new(counts);
        let chunks = chunks(from.coords.len() / D, fits);
        lanes.run(self.gpu, "counts", &chunks, |lane, i| {
            let chunk = &chunks[i];
            let coords = lane.upload(&from.coords[chunk.start * D..chunk.end * D], D)?;
            let frame = self.frame_on(&lane.stream)?;
            let mut own = Buffer::<u32>::uninitialized(self.gpu, num_cells, "counts of cells")?;
            own.fill_bytes(&lane.stream, 0)?;
            let args = (coords.slice(), frame.slice(), base.level, num_levels, own.slice_mut());
            // SAFETY: the buffers wait for the device before they are freed.
            unsafe { lane.stream.launch_items::<quadtree_count_cells<C, D>>(chunk.len() as u64, args)? };
            let own = own.to_vec(&lane.stream)?;
            let mut counts = counts.lock().unwrap_or_else(PoisonError::into_inner);
            counts.iter_mut().zip(own).for_each(|(count, own)| *count += own);
            Ok(())
        })?;
        Ok(counts.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    /// Brings points to the room of their batches, in their order there.
    pub(crate) fn distribute(
        &self,
        lanes: &mut Lanes<'_>,
        top: &Top<D>,
        batches: &[Batch],
        from: Points<'_, C>,
        room: &Room<'_, C>,
        fits: usize,
    ) -> Result<()> {
        let chunks = chunks(from.coords.len() / D, fits);
        let num_cells = 1 << (D as u32 * top.num_levels);
        let mut of_cells = memory::vec_with_capacity(num_cells, "batches of cells")?;
        of_cells.resize(num_cells, 0);
        for (number, batch) in batches.iter().enumerate() {
            for root in &top.roots[batch.roots.clone()] {
                of_cells[root.cells.start as usize..root.cells.end as usize].fill(number as u32);
            }
        }
        let numbers: Vec<u32> = (0..batches.len() as u32).collect();
        // Where the next points of each batch are put.
        let turns = Turns::new(batches.iter().map(|batch| batch.points.start).collect::<Vec<_>>());
        let bring = |lane: &mut Lane, i: usize| -> Result<()> {
            let chunk = &chunks[i];
            let (gpu, n) = (self.gpu, chunk.len());
            let coords = lane.upload(&from.coords[chunk.start * D..chunk.end * D], D)?;
            let ids = from.ids.map(|ids| lane.upload(&ids[chunk.clone()], 1)).transpose()?;
            let stream = &lane.stream;
            let (frame, of_cells) =
                (self.frame_on(stream)?, Buffer::from_slice(stream, &of_cells, "batches")?);
            let numbers = Buffer::from_slice(stream, &numbers, "batches")?;
            let mut begins = Buffer::<u64>::uninitialized(gpu, batches.len(), "batches")?;
            let mut coords_out = Buffer::<C>::uninitialized(gpu, n * D, "points of batches")?;
            let mut ids_out =
                Buffer::<u32>::uninitialized(gpu, if ids.is_some() { n } else { 0 }, "ids of batches")?;
            let mut layout = Layout::new();
            let pairs = [0, 1].map(|_| (layout.reserve::<u32>(n), layout.reserve::<u32>(n)));
            let [sort] = RadixSort::plan(&mut layout, n, [Shape::of::<u32, u32>(n)]);
            let temp = lane.workspace.carve(stream, &layout, "points of batches")?;
            let pairs =
                pairs.map(|(keys, values)| Pairs { keys: temp.view(keys), values: temp.view(values) });
            let by = SortBy::numbers_below(batches.len().max(2));
            // SAFETY: the buffers wait for the device before they are freed; as many of each as are planned.
            let (begins, order) = unsafe {
                let (level, num_levels) = (top.level, top.num_levels);
                let (ranks, order) = (pairs[1].keys, pairs[1].values);
                let args =
                    (coords.slice(), frame.slice(), level, num_levels, of_cells.slice(), 0, ranks, order);
                stream.launch_items::<quadtree_ranks<C, D>>(n as u64, args)?;
                let [sorted, _] = sort.run(stream, &temp, by, pairs[1].read_only(), pairs)?;
                let sorted = sorted.read_only();
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
            // SAFETY: what is downloaded has been written; no two chunks bring points to the same places.
            unsafe {
                lane.staging.download(&lane.stream, coords_out.slice(), D, |first, items| {
                    each_run(&runs, first, items.len() / D, |places, from| {
                        let to = room.coords.part(places.start * D..places.end * D);
                        to.write_copy_of_slice(&items[from.start * D..from.end * D]);
                    });
                })?;
                let (sorted, first_id) = match from.ids {
                    Some(_) => (ids_out.slice(), 0),
                    None => (order, chunk.start as u32),
                };
                lane.staging.download(&lane.stream, sorted, 1, |first, items| {
                    each_run(&runs, first, items.len(), |places, from| {
                        for (to, &id) in room.ids.part(places).iter_mut().zip(&items[from]) {
                            to.write(id + first_id);
                        }
                    });
                })
            }
        };
        lanes.run(self.gpu, "batches", &chunks, |lane, i| turns.within(|| bring(lane, i)))?;
        Ok(())
    }
}

/// Points of a chunk that are of one batch, up to the begin of the next.
struct Run {
    begin: usize,
    /// Where they go.
    target: usize,
}

/// Shows of so many points of a chunk, from one on, those of each run: where they go, and which of these points they are.
fn each_run(runs: &[Run], first: usize, len: usize, mut show: impl FnMut(Range<usize>, Range<usize>)) {
    let (mut at, mut run) = (first, runs.partition_point(|run| run.begin <= first).saturating_sub(1));
    while at < first + len {
        let end = runs.get(run + 1).map_or(usize::MAX, |next| next.begin).min(first + len);
        if end > at {
            let to = runs[run].target + (at - runs[run].begin);
            show(to..to + (end - at), at - first..end - first);
            at = end;
        }
        run += 1;
    }
}

/// Points in pieces that are large, and that fit.
fn chunks(len: usize, fits: usize) -> Vec<Range<usize>> {
    let chunk = CHUNK.min(fits);
    (0..len).step_by(chunk).map(|begin| begin..len.min(begin + chunk)).collect()
}

//! Results in batches, from host memory to host memory with a callback that does nothing. For comparison: the kernels alone, from device
//! memory to device memory, and a copy of the same number of bytes from the device to pinned memory.

use super::on_device::{Bench, Input};
use super::{Settings, unless_too_large};
use crate::measure::Timing;
use crate::report::{Report, Row};
use kauri::device::{Buffer, Gpu, PinnedBuffer, Workspace};
use kauri::query::{DeviceIndex, DeviceQueries, Queries, QueryOptions, num_found};
use kauri::{Batches, Delivered, KdTree, Result, SpatialIndex};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// Sizes of a batch in bytes: the default and sizes around it.
const BATCH_BYTES: [u64; 3] = [16 << 20, 64 << 20, 256 << 20];

/// Number of neighbors of a query.
const K: usize = 8;

pub(super) fn run(settings: &Settings, report: &mut Report) -> Result<()> {
    let Some(gpu) = settings.device.gpu() else { return Ok(()) };
    settings.sizes.iter().try_for_each(|&n| unless_too_large(of_size(settings, gpu, n, report)))
}

fn of_size(settings: &Settings, gpu: &Gpu, n: usize, report: &mut Report) -> Result<()> {
    let mut bench = Bench::<f32, 3>::new(settings, gpu, Input::uniform(settings, n), report)?;
    bench.within_in_batches(false)?;
    bench.within_in_batches(true)?;
    bench.nearest_in_batches()
}

type Tree = KdTree<[f32; 3]>;

impl Bench<'_, f32, 3> {
    /// Measures the points within a distance of the queries, or of the points themselves.
    fn within_in_batches(&mut self, own: bool) -> Result<()> {
        let radius = self.radius()?;
        let (gpu, stream, num_rows) = (self.gpu, &self.stream, self.input.queries.len());
        let prepared = self.tree.prepare(stream, &QueryOptions::default().radius(radius))?;
        let mut workspace = Workspace::new(gpu);
        let query_set = if own {
            DeviceQueries::SelfQuery { include_self: true }
        } else {
            DeviceQueries::Coordinates(&self.queries)
        };
        let mut offsets = Buffer::uninitialized(gpu, num_rows + 1, "offsets of rows")?;
        let mut ids = Buffer::uninitialized(gpu, 0, "ids of points found")?;
        self.tree.within_on(stream, &mut workspace, query_set, &prepared, &mut offsets, &mut ids, None)?;
        let hits = num_found(stream, &offsets)? as usize;

        let mut ids = Buffer::uninitialized(gpu, hits, "ids of points found")?;
        let mut dist2 = Buffer::uninitialized(gpu, hits, "distances of points found")?;
        let kernels = self.effort.events(stream, || {
            let (offsets, dist2) = (&mut offsets, Some(&mut dist2));
            self.tree.within_on(stream, &mut workspace, query_set, &prepared, offsets, &mut ids, dist2)
        })?;
        drop((ids, dist2, workspace));

        let work = if own { "own within radius, 30 hits" } else { "within radius, 30 hits" };
        let queries = self.input.queries.clone();
        let query_set =
            if own { Queries::SelfQuery { include_self: true } } else { Queries::Points(&queries) };
        self.compared(work, hits, 8 * hits + 8 * num_rows, kernels, |tree, batches| {
            tree.within_batches(query_set, radius, &QueryOptions::default(), batches, |_| {
                ControlFlow::Continue(())
            })
        })?;
        let options = QueryOptions::default();
        let timing = self.effort.wall(|| self.tree.within(query_set, radius, &options))?;
        self.push(&format!("{work}: at once, host to host"), timing, hits, Row::default());
        Ok(())
    }

    fn nearest_in_batches(&mut self) -> Result<()> {
        let (gpu, stream, entries) = (self.gpu, &self.stream, self.input.queries.len() * K);
        let prepared = self.tree.prepare(stream, &QueryOptions::default())?;
        let mut workspace = Workspace::new(gpu);
        let query_set = DeviceQueries::Coordinates(&self.queries);
        let mut ids = Buffer::uninitialized(gpu, entries, "ids of neighbors")?;
        let mut dist2 = Buffer::uninitialized(gpu, entries, "distances of neighbors")?;
        let kernels = self.effort.events(stream, || {
            self.tree.nearest_on(stream, &mut workspace, query_set, K, &prepared, &mut ids, &mut dist2)
        })?;
        drop((ids, dist2, workspace));

        let queries = self.input.queries.clone();
        let work = format!("nearest k={K}");
        self.compared(&work, entries, 8 * entries, kernels, |tree, batches| {
            let options = QueryOptions::default();
            tree.nearest_batches(&queries, K, &options, batches, |_| ControlFlow::Continue(()))
        })?;
        let timing = self.effort.wall(|| self.tree.nearest(&queries, K))?;
        self.push(&format!("{work}: at once, host to host"), timing, entries, Row::default());
        Ok(())
    }

    /// Adds the rows of one kind of work: kernels, copy, and batches.
    fn compared(
        &mut self,
        work: &str,
        items: usize,
        bytes: usize,
        kernels: Timing,
        mut call: impl FnMut(&Tree, &mut Batches<'_>) -> Result<Delivered>,
    ) -> Result<()> {
        let from = Buffer::<u8>::uninitialized(self.gpu, bytes, "bytes of the result")?;
        let mut to = PinnedBuffer::<u8>::zeroed(self.gpu, bytes, "bytes of the result")?;
        let copy = self.effort.events(&self.stream, || from.copy_to_slice(&self.stream, &mut to))?;
        drop((from, to));
        let slower = kernels.median_ms.max(copy.median_ms);
        self.push(&format!("{work}: kernels"), kernels, items, Row::default());
        let copied = Row { bytes: Some(bytes as u64), ..Row::default() };
        self.push(&format!("{work}: copy to pinned memory"), copy, items, copied);

        for batch_bytes in BATCH_BYTES {
            let mut batches = Batches::new().bytes(batch_bytes);
            let runs = self.effort.repeat(|| {
                let begin = Instant::now();
                let delivered = call(&self.tree, &mut batches)?;
                Ok((begin.elapsed(), delivered))
            })?;
            let timing = Timing::of("wall", &runs.iter().map(|(time, _)| *time).collect::<Vec<_>>());
            let delivered = &runs[0].1;
            assert!(
                delivered.items == items as u64,
                "{work}: in batches there are {} items",
                delivered.items
            );
            let note = format!(
                "{:.2} of the slower of kernels and copy; {} batches",
                timing.median_ms / slower,
                delivered.batches
            );
            let what = format!("{work}: batches of {} MiB, host to host", batch_bytes >> 20);
            let (temp_bytes, note) = (Some(delivered.stats.temp_bytes), Some(note));
            self.push(&what, timing, items, Row { temp_bytes, note, ..Row::default() });
            for phase in &delivered.stats.phases {
                let of_run = |(_, delivered): &(Duration, Delivered)| {
                    let phases = delivered.stats.phases.iter();
                    phases.filter(|other| other.name == phase.name).map(|other| other.duration).sum()
                };
                let times: Vec<Duration> = runs.iter().map(of_run).collect();
                self.push(
                    &format!("{what}: {}", phase.name),
                    Timing::of("wall", &times),
                    items,
                    Row::default(),
                );
            }
        }
        Ok(())
    }
}

//! Delivery of batches to the callback of one call, with counts, times and progress.

use super::pipeline::NUM_ARRAYS;
use super::{BatchSource, Batches, Delivered, Limits, Pipeline};
use crate::device::{Device, Stream};
use crate::error::Result;
use crate::progress::Step;
use crate::stats::{Phase, Stats};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// The batches that a call has delivered so far.
pub struct Delivery<'a, 'p> {
    batches: &'a mut Batches<'p>,
    num_rows: u64,
    delivered: Delivered,
    times: Times,
}

/// The time that the thread of the call spent in each phase.
#[derive(Default)]
struct Times {
    make: Duration,
    wait: Duration,
    callback: Duration,
}

impl<'a, 'p> Delivery<'a, 'p> {
    /// Runs `call`, which delivers up to `num_rows` rows and returns whether it was stopped.
    pub(crate) fn run(
        batches: &'a mut Batches<'p>,
        device: &Device,
        num_rows: usize,
        call: impl FnOnce(&mut Self) -> Result<ControlFlow<()>>,
    ) -> Result<Delivered> {
        let (stats, num_rows) = (Stats::new(device), num_rows as u64);
        let delivered = Delivered { rows: 0, items: 0, bytes: 0, batches: 0, is_complete: false, stats };
        let mut delivery = Self { batches, num_rows, delivered, times: Times::default() };
        if delivery.report().is_continue() {
            // A stop after the last batch does not make the result incomplete.
            let _ = call(&mut delivery)?;
        }
        let Self { mut delivered, times: Times { make, wait, callback }, .. } = delivery;
        delivered.is_complete = delivered.rows == num_rows;
        let phases = [("make", make), ("wait", wait), ("callback", callback)];
        delivered.stats.phases = phases.map(|(name, duration)| Phase { name, duration }).into();
        Ok(delivered)
    }

    /// Returns the limits of a batch.
    pub(crate) fn limits(&self) -> Limits {
        self.batches.limits
    }

    /// Runs `make`, which makes a batch on the CPU, and adds its time.
    pub(crate) fn produce<R>(&mut self, make: impl FnOnce() -> R) -> R {
        timed(&mut self.times.make, make)
    }

    /// Calls `callback` with the next batch of `rows` rows and `items` items of `item_bytes` bytes, and reports progress.
    pub(crate) fn deliver(
        &mut self,
        rows: usize,
        items: usize,
        item_bytes: u64,
        callback: impl FnOnce() -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let flow = timed(&mut self.times.callback, callback);
        let delivered = &mut self.delivered;
        delivered.rows += rows as u64;
        delivered.items += items as u64;
        delivered.bytes += items as u64 * item_bytes;
        delivered.batches += 1;
        let reported = self.report();
        if flow.is_break() { flow } else { reported }
    }

    fn report(&mut self) -> ControlFlow<()> {
        let Delivered { rows: done, bytes, .. } = self.delivered;
        let step = Step { phase: "rows", done, total: Some(self.num_rows), bytes };
        match &mut self.batches.progress {
            Some(progress) => progress.report(step),
            None => ControlFlow::Continue(()),
        }
    }

    /// Produces batches on a GPU, after the earlier work of a stream, and calls `visit` with each. Reuses the pipeline of the previous
    /// call if it belongs to the same GPU.
    pub(crate) fn run_pipeline<S: BatchSource>(
        &mut self,
        after: &Stream,
        source: &mut S,
        mut visit: impl FnMut(&mut Self, S::Batch, [&mut [u8]; NUM_ARRAYS]) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>> {
        // Taken out, so that its memory is freed after an error or a panic.
        let kept = self.batches.pipeline.take().filter(|kept| kept.is_of(after.gpu()));
        let mut pipeline = kept.map_or_else(|| Pipeline::new(after.gpu()), Ok)?;
        let begin = Instant::now();
        let callback_before = self.times.callback;
        let (flow, waited) = pipeline.run(after, source, |batch, arrays| visit(self, batch, arrays))?;
        self.times.wait += waited;
        self.times.make += begin.elapsed().saturating_sub(waited + (self.times.callback - callback_before));
        self.delivered.stats.temp_bytes = pipeline.bytes();
        self.batches.pipeline = Some(pipeline);
        Ok(flow)
    }
}

/// Runs `work` and adds its duration to `time`.
fn timed<R>(time: &mut Duration, work: impl FnOnce() -> R) -> R {
    let begin = Instant::now();
    let result = work();
    *time += begin.elapsed();
    result
}

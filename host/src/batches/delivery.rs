//! One call: hands batches over, keeps account of them, reports progress.

use super::{Batches, Delivered, Limits, Pipeline, Work};
use crate::device::{Device, Stream};
use crate::error::Result;
use crate::progress::Step;
use crate::stats::{Phase, Stats};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// What a call has delivered so far.
pub struct Delivery<'a, 'p> {
    batches: &'a mut Batches<'p>,
    num_rows: u64,
    delivered: Delivered,
    times: Times,
}

/// What the thread of the call was busy with.
#[derive(Default)]
struct Times {
    make: Duration,
    wait: Duration,
    look: Duration,
}

impl<'a, 'p> Delivery<'a, 'p> {
    /// Runs a call for so many rows, which delivers them and says whether it was stopped.
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
            // A stop with the last batch stops nothing.
            let _ = call(&mut delivery)?;
        }
        let Self { mut delivered, times: Times { make, wait, look }, .. } = delivery;
        delivered.is_complete = delivered.rows == num_rows;
        let phases = [("make", make), ("wait", wait), ("look", look)];
        delivered.stats.phases = phases.map(|(name, duration)| Phase { name, duration }).into();
        Ok(delivered)
    }

    /// What a batch may take.
    pub(crate) fn limits(&self) -> Limits {
        self.batches.limits
    }

    /// Makes a batch on the CPU.
    pub(crate) fn make<R>(&mut self, make: impl FnOnce() -> R) -> R {
        timed(&mut self.times.make, make)
    }

    /// Hands over the next rows, with so many items of so many bytes each, and reports them.
    pub(crate) fn hand_over(
        &mut self,
        rows: usize,
        items: usize,
        item_bytes: u64,
        look: impl FnOnce() -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let flow = timed(&mut self.times.look, look);
        let delivered = &mut self.delivered;
        delivered.rows += rows as u64;
        delivered.items += items as u64;
        delivered.bytes += items as u64 * item_bytes;
        delivered.batches += 1;
        let reported = self.report();
        if flow.is_break() { flow } else { reported }
    }

    fn report(&mut self) -> ControlFlow<()> {
        let step = Step { phase: "rows", done: self.delivered.rows, total: self.num_rows };
        match &mut self.batches.progress {
            Some(progress) => progress.report(step),
            None => ControlFlow::Continue(()),
        }
    }

    /// Makes batches on a GPU, after all work of a stream so far, and shows them, by the pipeline that was kept if it is of that GPU.
    pub(crate) fn pipelined<W: Work>(
        &mut self,
        after: &Stream,
        work: &mut W,
        mut show: impl FnMut(&mut Self, W::Batch, [&mut [u8]; 3]) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>> {
        // Taken out: after an error or a panic its memory is given back.
        let kept = self.batches.pipeline.take().filter(|kept| kept.is_of(after.gpu()));
        let mut pipeline = kept.map_or_else(|| Pipeline::new(after.gpu()), Ok)?;
        let begin = Instant::now();
        let look_before = self.times.look;
        let (flow, waited) = pipeline.run(after, work, |batch, parts| show(self, batch, parts))?;
        self.times.wait += waited;
        self.times.make += begin.elapsed().saturating_sub(waited + (self.times.look - look_before));
        self.delivered.stats.temp_bytes = pipeline.bytes();
        self.batches.pipeline = Some(pipeline);
        Ok(flow)
    }
}

/// Adds to a time what some work takes.
fn timed<R>(time: &mut Duration, work: impl FnOnce() -> R) -> R {
    let begin = Instant::now();
    let result = work();
    *time += begin.elapsed();
    result
}

//! What a piece of work cost, and where it ran.

use std::time::{Duration, Instant};

use crate::device::Device;

/// Where an index was built and what that cost.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Stats {
    /// The device, as text.
    pub device: String,
    /// Why that device was taken.
    pub reason: String,
    /// The phases in order.
    pub phases: Vec<Phase>,
    /// Most temporary bytes held at one time, beside the input and the index.
    pub temp_bytes: u64,
}

/// One phase of a piece of work.
#[derive(Clone, Debug)]
pub struct Phase {
    /// Its name.
    pub name: &'static str,
    /// Its wall clock time.
    pub duration: Duration,
}

impl Stats {
    /// Empty statistics of work on `device`.
    pub(crate) fn new(device: &Device) -> Self {
        Self { device: device.to_string(), reason: device.reason().into(), ..Self::default() }
    }

    /// Runs one phase in a tracing span and notes its time. A phase that fails is noted as well.
    pub(crate) fn phase<R>(&mut self, name: &'static str, work: impl FnOnce() -> R) -> R {
        let span = tracing::debug_span!("phase", name).entered();
        let start = Instant::now();
        let result = work();
        self.phases.push(Phase { name, duration: start.elapsed() });
        drop(span);
        result
    }

    /// Time of all phases.
    pub fn total(&self) -> Duration {
        self.phases.iter().map(|phase| phase.duration).sum()
    }
}

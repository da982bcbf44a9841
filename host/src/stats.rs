//! Statistics of a build: device, phases, memory.

use std::time::{Duration, Instant};

use tracing::span::EnteredSpan;

use crate::device::Device;

/// The statistics of a build: its device, phases and temporary memory.
///
/// ```
/// use kauri::{Device, KdTree, KdTreeOptions};
///
/// let points = [[0.0f32, 1.0], [2.0, 3.0]];
/// let tree = KdTree::build(&Device::cpu(), &points, &KdTreeOptions::default())?;
/// let stats = tree.stats();
/// println!("{} ({}): {:?}", stats.device, stats.reason, stats.total());
/// # Ok::<(), kauri::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Stats {
    /// The name of the device.
    pub device: String,
    /// The reason for the choice of the device.
    pub reason: String,
    /// The phases, in order.
    pub phases: Vec<Phase>,
    /// The peak of temporary memory in bytes, without the input and the index.
    pub temp_bytes: u64,
}

/// A phase of a build, in [`Stats::phases`].
///
/// ```
/// use kauri::{Device, KdTree, KdTreeOptions};
///
/// let tree = KdTree::build(&Device::cpu(), &[[0.0f32, 1.0]], &KdTreeOptions::default())?;
/// for phase in &tree.stats().phases {
///     println!("{}: {:?}", phase.name, phase.duration);
/// }
/// # Ok::<(), kauri::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Phase {
    /// The name of the phase.
    pub name: &'static str,
    /// The wall-clock time of the phase.
    pub duration: Duration,
}

impl Stats {
    /// Returns empty statistics for a build on `device`.
    pub(crate) fn new(device: &Device) -> Self {
        Self { device: device.to_string(), reason: device.reason().into(), ..Self::default() }
    }

    /// Runs a phase in a tracing span, and records its time. A phase that fails is recorded too.
    pub(crate) fn phase<R>(&mut self, name: &'static str, work: impl FnOnce() -> R) -> R {
        let start = start_phase(name);
        let result = work();
        self.end_phase(name, start);
        result
    }

    /// Makes parts of the last phase phases of their own.
    #[cfg(feature = "research")]
    pub(crate) fn split_phase(&mut self, parts: &[(&'static str, Duration)]) {
        let Some(whole) = self.phases.last_mut() else { return };
        let of_parts = parts.iter().map(|(_, duration)| duration).sum();
        whole.duration = whole.duration.saturating_sub(of_parts);
        self.phases.extend(parts.iter().map(|&(name, duration)| Phase { name, duration }));
    }

    fn end_phase(&mut self, name: &'static str, (_span, start): (EnteredSpan, Instant)) {
        self.phases.push(Phase { name, duration: start.elapsed() });
    }

    /// Returns the total time of all phases.
    pub fn total(&self) -> Duration {
        self.phases.iter().map(|phase| phase.duration).sum()
    }
}

fn start_phase(name: &'static str) -> (EnteredSpan, Instant) {
    (tracing::debug_span!("phase", name).entered(), Instant::now())
}

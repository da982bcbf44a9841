//! Times and memory of the phases of a join of boxes.

use crate::device::Stream;
use crate::error::Result;
use std::time::{Duration, Instant};

/// A phase of a join of boxes, from [`BoxJoin::count_in_phases_on`](crate::join::BoxJoin::count_in_phases_on).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct BoxPhase {
    /// The name of the phase.
    pub name: &'static str,
    /// The wall-clock time of the phase.
    pub duration: Duration,
    /// The bytes of scratch memory that the phase is the first to write.
    pub bytes: u64,
}

/// Measures the phases of a join.
pub(super) struct PhaseClock {
    /// `None` if phases are not measured.
    phases: Option<Vec<BoxPhase>>,
    begin: Instant,
}

impl PhaseClock {
    /// Creates a clock that measures nothing.
    pub(super) fn off() -> Self {
        Self { phases: None, begin: Instant::now() }
    }

    /// Starts the first phase.
    pub(super) fn on() -> Self {
        Self { phases: Some(Vec::new()), begin: Instant::now() }
    }

    /// Returns the phases that have ended.
    pub(super) fn into_phases(self) -> Vec<BoxPhase> {
        self.phases.unwrap_or_default()
    }

    /// Ends a phase: waits for its work, and starts the next phase.
    pub(super) fn end(&mut self, stream: &Stream, name: &'static str, bytes: u64) -> Result<()> {
        if let Some(phases) = &mut self.phases {
            stream.synchronize()?;
            phases.push(BoxPhase { name, duration: self.begin.elapsed(), bytes });
            self.begin = Instant::now();
        }
        Ok(())
    }
}

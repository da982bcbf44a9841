//! Times of the phases of a demo.

use std::time::{Duration, Instant};

use crate::text::milliseconds;

/// Wall clock times of the phases.
#[derive(Default)]
pub(super) struct Times(Vec<(&'static str, Duration)>);

impl Times {
    pub(super) fn of<R>(&mut self, phase: &'static str, work: impl FnOnce() -> R) -> R {
        let start = Instant::now();
        let result = work();
        self.0.push((phase, start.elapsed()));
        result
    }

    pub(super) fn text(&self) -> String {
        let phases: Vec<String> =
            self.0.iter().map(|(phase, time)| format!("{phase} {}", milliseconds(*time))).collect();
        phases.join("   ")
    }
}

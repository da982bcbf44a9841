//! A step of a command, possibly repeated, and its time.

use std::time::{Duration, Instant};

use super::text::{milliseconds, table, thousands};

pub(super) struct Step {
    name: &'static str,
    of: &'static str,
    /// Number of processed items.
    pub(super) count: usize,
    time: Duration,
}

impl Step {
    pub(super) fn of(name: &'static str, of: &'static str) -> Self {
        Self { name, of, count: 0, time: Duration::ZERO }
    }

    /// Runs and times a part of the step.
    pub(super) fn time<R>(&mut self, work: impl FnOnce() -> R) -> R {
        let begin = Instant::now();
        let result = work();
        self.time += begin.elapsed();
        result
    }

    /// Returns a table of steps: name, count, time, rate per second.
    pub(super) fn table<'a>(steps: impl IntoIterator<Item = &'a Self>) -> String {
        let mut rows = vec![["step", "of", "time", "a second"].map(String::from)];
        rows.extend(steps.into_iter().map(Self::row));
        table(&rows)
    }

    fn row(&self) -> [String; 4] {
        let in_second = self.count as f64 / self.time.as_secs_f64().max(1e-9);
        let of = format!("{} {}", thousands(self.count), self.of);
        [self.name.into(), of, milliseconds(self.time), thousands(in_second as usize)]
    }
}

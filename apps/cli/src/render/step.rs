//! A step of a command, done once or again and again, and what it took.

use std::time::{Duration, Instant};

use crate::text::{milliseconds, thousands};

pub(super) struct Step {
    name: &'static str,
    of: &'static str,
    /// How many it went through.
    pub(super) count: usize,
    time: Duration,
}

impl Step {
    pub(super) fn of(name: &'static str, of: &'static str) -> Self {
        Self { name, of, count: 0, time: Duration::ZERO }
    }

    /// Does some of it.
    pub(super) fn time<R>(&mut self, work: impl FnOnce() -> R) -> R {
        let begin = Instant::now();
        let result = work();
        self.time += begin.elapsed();
        result
    }

    /// A row of a table: name, of what, time, and how many a second.
    pub(super) fn row(&self) -> [String; 4] {
        let in_second = self.count as f64 / self.time.as_secs_f64().max(1e-9);
        let of = format!("{} {}", thousands(self.count), self.of);
        [self.name.into(), of, milliseconds(self.time), thousands(in_second as usize)]
    }
}

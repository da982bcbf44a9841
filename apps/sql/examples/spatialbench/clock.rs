//! Time on the clock and CPU time. The second changes less if other programs run on the machine.

use std::time::Instant;

/// The ticks of a second in Linux's `/proc`.
const TICKS: f64 = 100.0;

/// The shortest times of some runs, in seconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    pub(crate) wall: f64,
    /// Of all threads; 0 on systems without Linux's `/proc`.
    pub(crate) cpu: f64,
}

impl Times {
    /// The times before the first run.
    pub(crate) const NONE: Self = Self { wall: f64::INFINITY, cpu: f64::INFINITY };

    /// Counts a run that has begun at `begin`.
    pub(crate) fn add(&mut self, begin: &Begin) {
        self.wall = self.wall.min(begin.wall.elapsed().as_secs_f64());
        self.cpu = self.cpu.min(cpu_seconds() - begin.cpu);
    }
}

/// The begin of a run.
pub(crate) struct Begin {
    wall: Instant,
    cpu: f64,
}

impl Begin {
    pub(crate) fn now() -> Self {
        Self { wall: Instant::now(), cpu: cpu_seconds() }
    }
}

/// Returns the CPU time of this process.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name of the program, in parentheses, may have spaces. The times in and outside of the kernel are fields 14 and 15.
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    let ticks: f64 = fields.skip(11).take(2).filter_map(|ticks| ticks.parse::<f64>().ok()).sum();
    ticks / TICKS
}

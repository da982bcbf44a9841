//! Timing: many runs after warm-up, by events on the device or by the wall clock.

use crate::interface::{Caller, Moment};
use crate::library::record_launches;
use kauri::Result;
use kauri::device::{Event, Stream};
use serde::Serialize;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Number of runs of a measurement.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Runs before the first counted run.
    pub warm_up: usize,
    /// Counted runs.
    pub runs: usize,
    /// Time after which no further run starts; at least one run is counted.
    pub limit: Duration,
    /// Decides about each run, if there is one, and may let the runs of other libraries take turns.
    pub caller: Option<Caller>,
}

/// Times of the runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Timing {
    /// `device events`, or `wall` for work that includes the host's part.
    pub clock: &'static str,
    /// Number of runs.
    pub runs: usize,
    /// Median of the runs, in milliseconds.
    pub median_ms: f64,
    /// Shortest run.
    pub min_ms: f64,
    /// Longest run.
    pub max_ms: f64,
    /// Interquartile range of the runs, divided by the median.
    pub spread: f64,
    /// The runs in their order, in milliseconds; empty if only their summary is known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub times_ms: Vec<f64>,
}

impl Timing {
    /// Summarizes runs.
    ///
    /// # Panics
    /// If there is none.
    pub fn of(clock: &'static str, runs: &[Duration]) -> Timing {
        let times_ms: Vec<f64> = runs.iter().map(|run| run.as_secs_f64() * 1e3).collect();
        let mut ms = times_ms.clone();
        ms.sort_by(f64::total_cmp);
        let at = |part: f64| ms[((ms.len() - 1) as f64 * part).round() as usize];
        let median_ms = at(0.5);
        let spread = (at(0.75) - at(0.25)) / median_ms;
        Timing { clock, runs: ms.len(), median_ms, min_ms: at(0.0), max_ms: at(1.0), spread, times_ms }
    }
}

impl Effort {
    /// Returns the usual effort: three runs of warm-up, at least one counted run.
    pub fn new(runs: usize, limit: Duration) -> Effort {
        Effort { warm_up: 3, runs: runs.max(1), limit, caller: None }
    }

    /// Repeats `run` and returns its results after warm-up.
    ///
    /// # Errors
    /// That of the first run that fails.
    pub fn repeat<T>(&self, mut run: impl FnMut() -> Result<T>) -> Result<Vec<T>> {
        let mut is_first = true;
        let mut run = || {
            record_launches(self.caller.is_some() && is_first);
            is_first = false;
            run().inspect_err(|_| record_launches(false))
        };
        let begin = Instant::now();
        for index in 0.. {
            let wants = index < self.warm_up && (index == 0 || begin.elapsed() <= self.limit / 2);
            if !self.may_run(Moment::WarmUp, index, wants) {
                break;
            }
            run()?;
        }
        let begin = Instant::now();
        let mut results = Vec::new();
        loop {
            let index = results.len();
            let wants = index == 0 || (index < self.runs && begin.elapsed() < self.limit);
            // One run is always counted.
            if !self.may_run(Moment::Run, index, wants) && index > 0 {
                break;
            }
            results.push(run()?);
        }
        record_launches(false);
        self.may_run(Moment::End, 0, false);
        Ok(results)
    }

    /// Returns the caller's decision, or `wants` without a caller.
    fn may_run(&self, moment: Moment, index: usize, wants: bool) -> bool {
        self.caller.map_or(wants, |caller| caller.may_run(moment, index, wants))
    }

    /// Times work by the wall clock, including the host's part.
    ///
    /// # Errors
    /// That of the first run that fails.
    pub fn wall<T>(&self, mut work: impl FnMut() -> Result<T>) -> Result<Timing> {
        let runs = self.repeat(|| {
            let begin = Instant::now();
            let result = work()?;
            let time = begin.elapsed();
            // The time to drop the result is not part of the work.
            drop(result);
            Ok(time)
        })?;
        Ok(Timing::of("wall", &runs))
    }

    /// Times work on a stream by events around it.
    ///
    /// # Errors
    /// That of the first run that fails.
    pub fn events(&self, stream: &Stream, mut work: impl FnMut() -> Result<()>) -> Result<Timing> {
        let (start, end) = (Event::new(stream.gpu())?, Event::new(stream.gpu())?);
        let runs = self.repeat(|| {
            stream.record(&start)?;
            work()?;
            stream.record(&end)?;
            end.synchronize()?;
            end.elapsed_since(&start)
        })?;
        Ok(Timing::of("device events", &runs))
    }
}

/// Runs work, and returns the most bytes of memory that the process had allocated meanwhile, without the pages of files; 0 if the system
/// does not tell.
pub fn peak_of_memory<T>(work: impl FnOnce() -> T) -> (T, u64) {
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        let watch = scope.spawn(|| {
            let mut most = 0;
            while !is_done.load(Ordering::Relaxed) {
                most = most.max(allocated().unwrap_or(0));
                thread::sleep(Duration::from_millis(5));
            }
            most
        });
        let result = work();
        is_done.store(true, Ordering::Relaxed);
        (result, watch.join().unwrap_or(0))
    })
}

/// Returns the bytes of memory of the process without the pages of files, if the system reports them.
fn allocated() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"))?;
    line.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics() {
        let runs: Vec<_> = [5, 1, 2, 4, 3].map(Duration::from_millis).into();
        let timing = Timing::of("wall", &runs);
        assert_eq!((timing.runs, timing.median_ms, timing.min_ms, timing.max_ms), (5, 3.0, 1.0, 5.0));
        assert!((timing.spread - 2.0 / 3.0).abs() < 1e-12);
    }

    #[test]
    fn memory_in_use_is_seen() {
        let work = || {
            let bytes = vec![1_u8; 64 << 20];
            thread::sleep(Duration::from_millis(50));
            bytes.len() as u64
        };
        let (bytes, most) = peak_of_memory(work);
        assert!(most >= bytes || allocated().is_none(), "{most}");
    }

    #[test]
    fn effort_is_bounded() {
        let (mut count, limit) = (0, Duration::from_secs(100));
        let effort = Effort { warm_up: 2, ..Effort::new(3, limit) };
        let mut work = || {
            count += 1;
            Ok(())
        };
        effort.wall(&mut work).unwrap();
        assert_eq!(count, 5);
        let hurried = Effort { limit: Duration::ZERO, ..effort };
        assert_eq!(hurried.wall(|| Ok(())).unwrap().runs, 1);
    }
}

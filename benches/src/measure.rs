//! Timing: many runs after warm-up, by events on the device or by the wall clock.

use kauri::Result;
use kauri::device::{Event, Stream};
use serde::Serialize;
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
}

impl Timing {
    /// Summarizes runs.
    ///
    /// # Panics
    /// If there is none.
    pub fn of(clock: &'static str, runs: &[Duration]) -> Timing {
        let mut ms: Vec<f64> = runs.iter().map(|run| run.as_secs_f64() * 1e3).collect();
        ms.sort_by(f64::total_cmp);
        let at = |part: f64| ms[((ms.len() - 1) as f64 * part).round() as usize];
        let median_ms = at(0.5);
        let spread = (at(0.75) - at(0.25)) / median_ms;
        Timing { clock, runs: ms.len(), median_ms, min_ms: at(0.0), max_ms: at(1.0), spread }
    }
}

impl Effort {
    /// Repeats `run` and returns its results after warm-up.
    ///
    /// # Errors
    /// That of the first run that fails.
    pub fn repeat<T>(&self, mut run: impl FnMut() -> Result<T>) -> Result<Vec<T>> {
        let begin = Instant::now();
        for _ in 0..self.warm_up {
            run()?;
            if begin.elapsed() > self.limit / 2 {
                break;
            }
        }
        let begin = Instant::now();
        let mut results = vec![run()?];
        while results.len() < self.runs && begin.elapsed() < self.limit {
            results.push(run()?);
        }
        Ok(results)
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
    fn effort_is_bounded() {
        let (mut count, limit) = (0, Duration::from_secs(100));
        let effort = Effort { warm_up: 2, runs: 3, limit };
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

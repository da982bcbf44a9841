//! Progress bars of a command on a terminal.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::ops::Range;
use std::time::{Duration, Instant};

use super::Result;
use super::text::thousands;

/// Time between two updates of a progress bar.
const TICK: Duration = Duration::from_millis(100);

/// Shows the steps of a command on standard error if that is a terminal, and nothing otherwise.
#[derive(Clone, Copy)]
pub(super) struct Steps {
    pub(super) are_shown: bool,
}

impl Steps {
    /// Runs a step; at its end prints the rate in `of` per second.
    pub(super) fn step<T>(
        self,
        name: &str,
        of: &str,
        work: impl FnOnce() -> Result<T>,
        count: impl FnOnce(&T) -> usize,
    ) -> Result<T> {
        if !self.are_shown {
            return work();
        }
        let begin = Instant::now();
        let bar = bar(name, None);
        let done = work();
        // After an error only its message is printed.
        if let Ok(done) = &done {
            bar.println(rate(name, of, count(done), begin.elapsed()));
        }
        bar.finish_and_clear();
        done
    }

    /// Runs a step over `total` of `of`, `part` at a time, and shows a progress bar.
    pub(super) fn parts(
        self,
        name: &str,
        of: &str,
        total: usize,
        part: usize,
        mut work: impl FnMut(Range<usize>) -> Result<()>,
    ) -> Result<()> {
        self.advancing(name, of, total, |advance| {
            (0..total).step_by(part).try_for_each(|first| {
                let range = first..total.min(first + part);
                work(range.clone())?;
                advance(range.len());
                Ok(())
            })
        })
    }

    /// Runs a step over `total` of `of`, and shows a progress bar. `work` passes the number that is done since its last call to its
    /// argument.
    pub(super) fn advancing<T>(
        self,
        name: &str,
        of: &str,
        total: usize,
        work: impl FnOnce(&mut dyn FnMut(usize)) -> Result<T>,
    ) -> Result<T> {
        let begin = Instant::now();
        let bar = if self.are_shown { bar(name, Some(total)) } else { ProgressBar::hidden() };
        let done = work(&mut |num| bar.inc(num as u64));
        if done.is_ok() {
            bar.println(rate(name, of, bar.position() as usize, begin.elapsed()));
        }
        bar.finish_and_clear();
        done
    }
}

/// Returns the progress bar of a step, or a spinner if `total` is unknown; hidden if progress is not shown.
fn bar(name: &str, total: Option<usize>) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(total.map(|total| total as u64), ProgressDrawTarget::stderr());
    let template = if total.is_some() { "{spinner} {msg} {percent} % {per_sec}" } else { "{spinner} {msg}" };
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style.tick_chars("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏ "));
    }
    bar.set_message(name.to_owned());
    bar.enable_steady_tick(TICK);
    bar
}

fn rate(name: &str, of: &str, count: usize, time: Duration) -> String {
    let seconds = time.as_secs_f64();
    let in_second = thousands((count as f64 / seconds.max(1e-9)) as usize);
    format!("{name}: {} {of} in {seconds:.2} s, {in_second} a second", thousands(count))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_a_second() {
        assert_eq!(
            rate("join", "points", 3_000_000, Duration::from_millis(1500)),
            "join: 3,000,000 points in 1.50 s, 2,000,000 a second"
        );
        let steps = Steps { are_shown: false };
        assert_eq!(steps.step("join", "points", || Ok(7), |_| unreachable!()).ok(), Some(7));
        let mut seen = Vec::new();
        let parts = steps.parts("scan", "points", 10, 4, |range| {
            seen.push(range);
            Ok(())
        });
        assert!(parts.is_ok());
        assert_eq!(seen, [0..4, 4..8, 8..10]);
    }
}

//! How far a command is, for people at a terminal.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::time::{Duration, Instant};

use super::Result;
use super::text::thousands;

/// Time between two pictures of what goes on.
const TICK: Duration = Duration::from_millis(100);

/// Shows the steps of a command on standard error if that is a terminal, and nothing otherwise.
#[derive(Clone, Copy)]
pub(super) struct Steps {
    pub(super) are_shown: bool,
}

impl Steps {
    /// Runs a step; at its end says how many of `of` it went through in a second.
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
        // Draws nothing where nobody looks.
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg}") {
            bar.set_style(style.tick_chars("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏ "));
        }
        bar.set_message(name.to_owned());
        bar.enable_steady_tick(TICK);
        let done = work();
        // The message of an error says it all.
        if let Ok(done) = &done {
            bar.println(rate(name, of, count(done), begin.elapsed()));
        }
        bar.finish_and_clear();
        done
    }
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
    }
}

//! Progress reports of long calls.

use std::ops::ControlFlow;

/// Receives the progress of a long call, and can stop it. The library itself prints nothing.
///
/// Closures implement this trait. A stopped call returns [`Error::Stopped`](crate::Error::Stopped) as soon as it can,
/// and leaves every object usable.
///
/// ```
/// use kauri::{Progress, Step};
/// use std::ops::ControlFlow;
/// let mut seen = Vec::new();
/// let mut progress = |step: Step| {
///     seen.push((step.phase, step.done, step.total));
///     if step.done < 100 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
/// };
/// let step = Step { phase: "rows", done: 50, total: Some(200), bytes: 400 };
/// assert!(progress.report(step).is_continue());
/// assert!(progress.report(Step { done: 100, bytes: 800, ..step }).is_break());
/// ```
pub trait Progress {
    /// Reports a step, on the thread of the call: at the start of a phase with nothing done, and after each advance.
    /// [`ControlFlow::Break`] stops the call.
    fn report(&mut self, step: Step) -> ControlFlow<()>;
}

/// The progress of a long call, which [`Progress`] receives.
///
/// ```
/// let step = kauri::Step { phase: "points", done: 50, total: Some(200), bytes: 600 };
/// assert_eq!(step.total.map(|total| 100 * step.done / total), Some(25));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The name of the current phase. Phases follow each other.
    pub phase: &'static str,
    /// The rows or points done in this phase.
    pub done: u64,
    /// The rows or points of the whole phase, if their number is known before its end.
    pub total: Option<u64>,
    /// The bytes of what is done: the rows delivered, the points copied or read from files.
    pub bytes: u64,
}

impl<F: FnMut(Step) -> ControlFlow<()>> Progress for F {
    fn report(&mut self, step: Step) -> ControlFlow<()> {
        self(step)
    }
}

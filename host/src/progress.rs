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
/// assert!(progress.report(Step { phase: "rows", done: 50, total: 200 }).is_continue());
/// assert!(progress.report(Step { phase: "rows", done: 100, total: 200 }).is_break());
/// ```
pub trait Progress {
    /// Reports a step, on the thread of the call: at the start of a phase with nothing done, and after each advance.
    /// [`ControlFlow::Break`] stops the call.
    fn report(&mut self, step: Step) -> ControlFlow<()>;
}

/// The progress of a long call, which [`Progress`] receives.
///
/// ```
/// let step = kauri::Step { phase: "rows", done: 50, total: 200 };
/// assert_eq!(100 * step.done / step.total, 25);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The name of the current phase. Phases follow each other.
    pub phase: &'static str,
    /// The work done in this phase.
    pub done: u64,
    /// The total work of this phase.
    pub total: u64,
}

impl<F: FnMut(Step) -> ControlFlow<()>> Progress for F {
    fn report(&mut self, step: Step) -> ControlFlow<()> {
        self(step)
    }
}

//! How far a long call is: told to whoever wants to know.

use std::ops::ControlFlow;

/// Is told how far a long call is, and may stop it. The library itself draws and prints nothing.
///
/// Closures are one. A call that is stopped ends as soon as it can, says how far it came, and leaves every object usable.
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
    /// The call is at this step. Comes on the thread of the call, at the begin of a phase with nothing done, and whenever more is.
    fn report(&mut self, step: Step) -> ControlFlow<()>;
}

/// A step of a long call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// What it does: its phases follow each other.
    pub phase: &'static str,
    /// How much of the phase is done.
    pub done: u64,
    /// How much there is to do.
    pub total: u64,
}

impl<F: FnMut(Step) -> ControlFlow<()>> Progress for F {
    fn report(&mut self, step: Step) -> ControlFlow<()> {
        self(step)
    }
}

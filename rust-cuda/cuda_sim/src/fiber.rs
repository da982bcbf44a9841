//! Simulated threads as coroutines.

use crate::chain::RawChain;
use crate::stack;
use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult, Yielder};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// Command of the scheduler to a thread that it resumes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    /// Start, or continue.
    Go,
    /// Capture the call chain and suspend again.
    Report,
    /// Unwind the stack and end.
    Abort,
}

/// Reason for which a thread returned control to the scheduler.
pub(crate) enum Stop {
    /// The thread waits or yields; the engine knows the reason.
    Suspended,
    /// Answer to [`Command::Report`].
    Chain(RawChain),
    /// The kernel function returned. The next `Go` begins another thread.
    Returned,
    /// The kernel function panicked; the panic hook has the details.
    Panicked,
}

/// Handle by which a running thread suspends itself.
pub(crate) type Suspender = Yielder<Command, Stop>;

/// Panic payload that unwinds a thread early.
struct Aborted;

/// A coroutine that runs simulated threads, one after the other.
pub(crate) struct Fiber {
    /// `None` only while dropping.
    coroutine: Option<Coroutine<Command, Stop, (), DefaultStack>>,
}

/// Runs the kernel function once. Not inlined, because it marks the end of a call chain.
#[inline(never)]
pub(crate) fn run_one_thread(run: &dyn Fn()) -> Result<(), Box<dyn Any + Send>> {
    catch_unwind(AssertUnwindSafe(run))
}

impl Fiber {
    /// Creates a fiber that calls `started` with its handle and then runs `run` for each thread.
    ///
    /// # Safety
    /// The borrows of both closures must live until the fiber is dropped.
    pub(crate) unsafe fn new(run: &dyn Fn(), started: impl Fn(*const Suspender)) -> std::io::Result<Self> {
        let stack = stack::take()?;
        let body = move |suspender: &Suspender, mut command: Command| {
            started(suspender);
            while command != Command::Abort {
                command = match run_one_thread(run) {
                    Ok(()) => suspender.suspend(Stop::Returned),
                    Err(payload) if payload.is::<Aborted>() => break,
                    Err(_) => suspender.suspend(Stop::Panicked),
                };
            }
        };
        // SAFETY: the caller keeps alive what the closure borrows.
        let coroutine = unsafe { Coroutine::with_stack_unchecked(stack, body) };
        Ok(Self { coroutine: Some(coroutine) })
    }

    pub(crate) fn resume(&mut self, command: Command) -> Stop {
        match self.coroutine.as_mut().map(|c| c.resume(command)) {
            Some(CoroutineResult::Yield(stop)) => stop,
            Some(CoroutineResult::Return(())) | None => Stop::Returned,
        }
    }
}

impl Drop for Fiber {
    fn drop(&mut self) {
        let Some(mut coroutine) = self.coroutine.take() else { return };
        // A destructor that runs while the stack unwinds may suspend once more: the abort is then repeated.
        for _ in 0..1000 {
            if !coroutine.started() || coroutine.done() {
                break;
            }
            coroutine.resume(Command::Abort);
        }
        coroutine.force_unwind();
        stack::recycle(coroutine.into_stack());
    }
}

/// Suspends the running thread until it is resumed with [`Command::Go`]. Serves [`Command::Report`] meanwhile; unwinds
/// if the launch ends.
pub(crate) fn suspend(suspender: &Suspender) {
    let mut command = suspender.suspend(Stop::Suspended);
    loop {
        match command {
            Command::Go => return,
            Command::Report => command = suspender.suspend(Stop::Chain(RawChain::capture())),
            Command::Abort => resume_unwind(Box::new(Aborted)),
        }
    }
}

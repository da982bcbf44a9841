//! Simulated threads as coroutines.

use crate::chain::RawChain;
use crate::stack;
use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult, Yielder};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// What the scheduler asks of a thread that it resumes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    /// Go on; at the beginning of a thread's life: begin.
    Go,
    /// Say where you are and suspend again.
    Report,
    /// Unwind and end.
    Abort,
}

/// Why a thread gave control back.
pub(crate) enum Stop {
    /// It waits, or lets others run; the engine knows what for.
    Suspended,
    /// Answer to [`Command::Report`].
    Chain(RawChain),
    /// The kernel function returned. The next `Go` begins another thread.
    Returned,
    /// The kernel function panicked; the panic hook has the details.
    Panicked,
}

/// How a running thread suspends itself.
pub(crate) type Hold = Yielder<Command, Stop>;

/// Payload of the unwinding that ends a thread early.
struct Aborted;

/// A coroutine that runs simulated threads, one after the other.
pub(crate) struct Fiber {
    /// Always there, until dropped.
    coroutine: Option<Coroutine<Command, Stop, (), DefaultStack>>,
}

/// Runs the kernel function once. Not inlined: marks where a call chain ends.
#[inline(never)]
pub(crate) fn run_one_thread(run: &dyn Fn()) -> Result<(), Box<dyn Any + Send>> {
    catch_unwind(AssertUnwindSafe(run))
}

impl Fiber {
    /// A fiber that calls `started` with its hold and then runs `run` for each thread.
    ///
    /// # Safety
    /// What the two borrow must live until the fiber is dropped.
    pub(crate) unsafe fn new(run: &dyn Fn(), started: impl Fn(*const Hold)) -> std::io::Result<Self> {
        let stack = stack::take()?;
        let body = move |hold: &Hold, mut command: Command| {
            started(hold);
            while command != Command::Abort {
                command = match run_one_thread(run) {
                    Ok(()) => hold.suspend(Stop::Returned),
                    Err(payload) if payload.is::<Aborted>() => break,
                    Err(_) => hold.suspend(Stop::Panicked),
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

/// Suspends the running thread until it is resumed to go on. Answers reports meanwhile; unwinds if the launch ends.
pub(crate) fn suspend(hold: &Hold) {
    let mut command = hold.suspend(Stop::Suspended);
    loop {
        match command {
            Command::Go => return,
            Command::Report => command = hold.suspend(Stop::Chain(RawChain::capture())),
            Command::Abort => resume_unwind(Box::new(Aborted)),
        }
    }
}

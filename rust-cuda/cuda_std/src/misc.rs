//! Clock, breakpoint, trap.

use crate::sys;

/// Cycles of the multiprocessor the thread runs on.
#[inline(always)]
#[track_caller]
pub fn clock() -> u64 {
    sys::clock()
}

/// Stops in the debugger.
#[inline(always)]
pub fn breakpoint() {
    sys::breakpoint()
}

/// Ends the launch with an error; the context is lost.
#[inline(always)]
#[track_caller]
pub fn trap() -> ! {
    sys::trap()
}

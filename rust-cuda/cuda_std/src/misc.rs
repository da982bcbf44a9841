//! Clock, breakpoint, trap, a hint to the compiler.

use crate::sys;

/// Cycles of the multiprocessor the thread runs on.
#[inline(always)]
#[track_caller]
pub fn clock() -> u64 {
    sys::clock()
}

/// Returns `value`; forces its computation before the next instruction with a side effect. Without it the compiler may
/// delay arithmetic until the result is used, for example after a wait for other threads, and keep all operands in
/// registers until then.
#[inline(always)]
pub fn computed(value: u32) -> u32 {
    sys::computed(value)
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

//! Where to stop in a debugger. The functions do nothing; they are called on the stack of a simulated thread, so that a
//! backtrace shows how the kernel came there:
//!
//! ```text
//! (gdb) break cuda_sim::debug::found
//! (gdb) break cuda_sim::debug::earlier
//! (gdb) run
//! ```

use std::hint::black_box;

/// The running thread has made a mistake: of two accesses that race, it makes the later one.
#[inline(never)]
pub fn found() {
    black_box("found");
}

/// The running thread makes the earlier of two accesses that race. Called after [`found`]: only then is it known which
/// access that was, and the launch runs once more up to it.
#[inline(never)]
pub fn earlier() {
    black_box("earlier");
}

//! Functions for breakpoints. They do nothing; the simulator calls them on the stack of a simulated thread, so that a
//! backtrace shows the kernel's calls:
//!
//! ```text
//! (gdb) break cuda_sim::debug::error_found
//! (gdb) break cuda_sim::debug::earlier_access
//! (gdb) run
//! ```

use std::hint::black_box;

/// Called when an error is found, on the stack of the thread at fault. For a race this is the thread of the later access.
#[inline(never)]
pub fn error_found() {
    black_box("error_found");
}

/// Called at the earlier access of a race, on the stack of its thread. It comes after [`error_found`], because the simulator
/// runs the launch once more up to that access.
#[inline(never)]
pub fn earlier_access() {
    black_box("earlier_access");
}

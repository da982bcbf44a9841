//! A pool of coroutine stacks: a fresh stack costs microseconds, a pooled one nothing.

use corosensei::stack::DefaultStack;
use std::io;
use std::sync::Mutex;

/// Address space of a stack; untouched pages cost nothing.
const STACK_BYTES: usize = 256 << 10;
/// Stacks kept for later launches.
const KEPT: usize = 8192;

static FREE: Mutex<Vec<DefaultStack>> = Mutex::new(vec![]);

/// Takes a stack from the pool, or creates one.
pub(crate) fn take() -> io::Result<DefaultStack> {
    // The lock is released before a stack is created.
    let used = FREE.lock().unwrap_or_else(|e| e.into_inner()).pop();
    used.map_or_else(|| DefaultStack::new(STACK_BYTES), Ok)
}

/// Returns a stack to the pool.
pub(crate) fn recycle(stack: DefaultStack) {
    let mut free = FREE.lock().unwrap_or_else(|e| e.into_inner());
    if free.len() < KEPT {
        free.push(stack);
    }
}

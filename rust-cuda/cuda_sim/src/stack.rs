//! Stacks for coroutines, used again and again: a fresh one costs microseconds, a used one nothing.

use corosensei::stack::DefaultStack;
use std::io;
use std::sync::Mutex;

/// Address space of a stack; pages that are never touched cost nothing.
const STACK_BYTES: usize = 256 << 10;
/// Stacks kept for later launches.
const KEPT: usize = 8192;

static FREE: Mutex<Vec<DefaultStack>> = Mutex::new(vec![]);

/// A stack, if possible one that was used before.
pub(crate) fn take() -> io::Result<DefaultStack> {
    // The lock is let go before a new one is made.
    let used = FREE.lock().unwrap_or_else(|e| e.into_inner()).pop();
    used.map_or_else(|| DefaultStack::new(STACK_BYTES), Ok)
}

/// Gives a stack back.
pub(crate) fn recycle(stack: DefaultStack) {
    let mut free = FREE.lock().unwrap_or_else(|e| e.into_inner());
    if free.len() < KEPT {
        free.push(stack);
    }
}

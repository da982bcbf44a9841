//! Concurrent work on several devices, and locks.

use std::ops::Range;
use std::panic::resume_unwind;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use crate::error::Result;

/// Locks data that a panic of another thread cannot leave half changed.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Cuts `len` items into nearly equal ranges, one for each of some devices.
pub(crate) fn even(len: usize, ranges: usize) -> impl Iterator<Item = Range<usize>> {
    let begin = move |i: usize| (len as u128 * i as u128 / ranges as u128) as usize;
    (0..ranges).map(move |i| begin(i)..begin(i + 1))
}

/// Processes all items concurrently, each on its own thread. Returns when all are done: the results in order, or the
/// first error.
pub(crate) fn each<T: Send, R: Send>(
    items: impl IntoIterator<Item = T>,
    work: impl Fn(T) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    let items: Vec<_> = items.into_iter().map(|item| Mutex::new(Some(item))).collect();
    let results: Vec<_> = items.iter().map(|_| Mutex::new(None)).collect();
    run_each(items.len(), &|i| {
        let item = lock(&items[i]).take();
        *lock(&results[i]) = item.map(&work);
    });
    results
        .into_iter()
        .filter_map(|result| result.into_inner().unwrap_or_else(PoisonError::into_inner))
        .collect()
}

/// Calls `run` for all numbers below `num` concurrently, each on its own thread, the last one on the calling thread. Returns when all are
/// done.
fn run_each(num: usize, run: &(dyn Fn(usize) + Sync)) {
    let Some(last) = num.checked_sub(1) else { return };
    thread::scope(|scope| {
        let spawn = |i| thread::Builder::new().spawn_scoped(scope, move || run(i)).ok();
        let threads: Vec<_> = (0..last).map(spawn).collect();
        run(last);
        for (i, thread) in threads.into_iter().enumerate() {
            match thread {
                Some(thread) => thread.join().unwrap_or_else(|panic| resume_unwind(panic)),
                // Without a new thread the calling thread does the work.
                None => run(i),
            }
        }
    });
}

/// Runs two closures concurrently, and returns when both are done.
pub(crate) fn both<R: Send>(
    first: impl FnOnce() -> Result<R> + Send,
    second: impl FnOnce() -> Result<R> + Send,
) -> Result<(R, R)> {
    let works: [Box<dyn FnOnce() -> Result<R> + Send + '_>; 2] = [Box::new(first), Box::new(second)];
    let results = each(works, |work| work())?;
    let [first, second] = results.try_into().unwrap_or_else(|_| unreachable!("two results of two works"));
    Ok((first, second))
}

//! Concurrent work on several devices.

use std::panic::resume_unwind;
use std::sync::{Mutex, PoisonError};
use std::thread;

use crate::error::Result;

/// Processes all items concurrently, each on its own thread. Returns when all are done: the results in order, or the
/// first error.
pub(crate) fn each<T: Send, R: Send>(
    items: impl IntoIterator<Item = T>,
    work: impl Fn(T) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    let items: Vec<_> = items.into_iter().map(|item| Mutex::new(Some(item))).collect();
    let run = |item: &Mutex<Option<T>>| {
        let item = item.lock().unwrap_or_else(PoisonError::into_inner).take();
        item.map(&work)
    };
    let results: Vec<_> = thread::scope(|scope| {
        let run = &run;
        let spawn = |item| thread::Builder::new().spawn_scoped(scope, move || run(item)).ok();
        let threads: Vec<_> = items.iter().map(spawn).collect();
        let join = |(item, thread): (_, Option<thread::ScopedJoinHandle<'_, _>>)| match thread {
            Some(thread) => thread.join().unwrap_or_else(|panic| resume_unwind(panic)),
            // Without a new thread the calling thread does the work.
            None => run(item),
        };
        items.iter().zip(threads).map(join).collect()
    });
    results.into_iter().flatten().collect()
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

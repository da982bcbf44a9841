//! Concurrent work on several devices, and locks.

use std::ops::Range;
use std::panic::resume_unwind;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use crate::error::Result;

/// A pause of a thread of a pool that has no work.
const IDLE: Duration = Duration::from_micros(20);

/// Locks data that a panic of another thread cannot leave half changed.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Cuts `len` items into nearly equal ranges, one for each of some devices.
pub(crate) fn even(len: usize, ranges: usize) -> impl Iterator<Item = Range<usize>> {
    let begin = move |i: usize| (len as u128 * i as u128 / ranges as u128) as usize;
    (0..ranges).map(move |i| begin(i)..begin(i + 1))
}

/// Processes all items concurrently, each on its own thread. Returns when all are done: the results in order, or the first error. A thread of
/// a rayon pool meanwhile runs other work of the pool, for which the work may wait.
pub(crate) fn each<T: Send, R: Send>(
    items: impl IntoIterator<Item = T>,
    work: impl Fn(T) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    let items: Vec<_> = items.into_iter().map(|item| Mutex::new(Some(item))).collect();
    let results: Vec<_> = items.iter().map(|_| Mutex::new(None)).collect();
    run_each(items.len(), While::PoolWorks, &|i| {
        let item = lock(&items[i]).take();
        *lock(&results[i]) = item.map(&work);
    });
    results
        .into_iter()
        .filter_map(|result| result.into_inner().unwrap_or_else(PoisonError::into_inner))
        .collect()
}

/// Calls `work` for all numbers below `num` concurrently, each on its own thread. Returns when all are done. The work does not use rayon, so
/// the calling thread only waits.
#[cfg(any(feature = "cuda", test))]
pub(crate) fn each_number(num: usize, work: &(dyn Fn(usize) -> Result<()> + Sync)) -> Result<()> {
    let results: Vec<_> = (0..num).map(|_| Mutex::new(Ok(()))).collect();
    run_each(num, While::PoolWaits, &|i| *lock(&results[i]) = work(i));
    results.into_iter().try_for_each(|result| result.into_inner().unwrap_or_else(PoisonError::into_inner))
}

/// The activity of a thread of a rayon pool that waits for other threads.
#[derive(Clone, Copy, PartialEq, Eq)]
enum While {
    PoolWorks,
    #[cfg(any(feature = "cuda", test))]
    PoolWaits,
}

/// Calls `run` for all numbers below `num` concurrently, each on its own thread, the last one on the calling thread. Returns when all are
/// done.
fn run_each(num: usize, waiting: While, run: &(dyn Fn(usize) + Sync)) {
    let Some(last) = num.checked_sub(1) else { return };
    thread::scope(|scope| {
        let spawn = |i| thread::Builder::new().spawn_scoped(scope, move || run(i)).ok();
        let threads: Vec<_> = (0..last).map(spawn).collect();
        run(last);
        for (i, thread) in threads.into_iter().enumerate() {
            match thread {
                Some(thread) => {
                    while waiting == While::PoolWorks && !thread.is_finished() {
                        match rayon::yield_now() {
                            Some(rayon::Yield::Executed) => {}
                            Some(rayon::Yield::Idle) => thread::sleep(IDLE),
                            None => break,
                        }
                    }
                    thread.join().unwrap_or_else(|panic| resume_unwind(panic));
                }
                // Without a new thread the calling thread does the work.
                None => run(i),
            }
        }
    });
}

/// Runs two closures concurrently, and returns when both are done.
pub(crate) fn both<A: Send, B: Send>(
    first: impl FnOnce() -> Result<A> + Send,
    second: impl FnOnce() -> Result<B> + Send,
) -> Result<(A, B)> {
    let (mut a, mut b) = (None, None);
    let works: [Box<dyn FnOnce() -> Result<()> + Send + '_>; 2] = [
        Box::new(|| first().map(|result| a = Some(result))),
        Box::new(|| second().map(|result| b = Some(result))),
    ];
    each(works, |work| work())?;
    match (a, b) {
        (Some(a), Some(b)) => Ok((a, b)),
        _ => unreachable!("both closures have returned a result"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rayon::prelude::*;

    #[test]
    fn a_pool_whose_threads_all_wait_goes_on() {
        rayon::broadcast(|_| {
            let sums = each(0..3u32, |i| Ok((0..1000).into_par_iter().map(|j| i * j).sum::<u32>()));
            assert_eq!(sums.unwrap(), [0, 499_500, 999_000]);
        });
    }

    #[test]
    fn results_and_errors_of_all_threads() {
        use crate::error::Error;
        assert!(each_number(0, &|_| Err(Error::NoDevice)).is_ok());
        assert!(each_number(5, &|_| Ok(())).is_ok());
        let fails = each_number(5, &|i| if i == 3 { Err(Error::NoDevice) } else { Ok(()) });
        assert!(matches!(fails, Err(Error::NoDevice)));
        assert_eq!(both(|| Ok(1), || Ok("two")).unwrap(), (1, "two"));
        assert!(both(|| Ok(1), || Err::<u8, _>(Error::NoDevice)).is_err());
    }
}

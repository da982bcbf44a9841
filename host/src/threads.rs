//! Concurrent work on several devices, threads of copies, and locks.

#[cfg(any(feature = "cuda", test))]
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::ops::Range;
use std::panic::resume_unwind;
#[cfg(any(feature = "cuda", test))]
use std::sync::OnceLock;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use crate::error::Result;

/// A pause of a thread of a pool that has no work.
const IDLE: Duration = Duration::from_micros(20);

/// Number of threads of the pool of [`each_number`]: enough for several copies at the same time. A copy that waits for a thread would end late.
#[cfg(any(feature = "cuda", test))]
const KEPT_THREADS: usize = 64;

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
    let run = |i: usize| {
        let item = lock(&items[i]).take();
        *lock(&results[i]) = item.map(&work);
    };
    if let Some(last) = items.len().checked_sub(1) {
        thread::scope(|scope| {
            let spawn = |i| thread::Builder::new().spawn_scoped(scope, move || run(i)).ok();
            let threads: Vec<_> = (0..last).map(spawn).collect();
            run(last);
            for (i, thread) in threads.into_iter().enumerate() {
                let Some(thread) = thread else {
                    // Without a new thread the calling thread does the work.
                    run(i);
                    continue;
                };
                while !thread.is_finished() {
                    match rayon::yield_now() {
                        Some(rayon::Yield::Executed) => {}
                        Some(rayon::Yield::Idle) => thread::sleep(IDLE),
                        None => break,
                    }
                }
                thread.join().unwrap_or_else(|panic| resume_unwind(panic));
            }
        });
    }
    results
        .into_iter()
        .filter_map(|result| result.into_inner().unwrap_or_else(PoisonError::into_inner))
        .collect()
}

/// Calls `work` for all numbers below `num`: the first on the calling thread, the others on the threads of a pool for such calls only, as they
/// become free. Returns when all are done. The work does not wait for other work of this pool, and uses no rayon. (`copies`: 268 MB take
/// 7.1 ms, with new threads for each copy 7.3; where other programs use the CPU 7.7 and 8.9.)
#[cfg(any(feature = "cuda", test))]
pub(crate) fn each_number(num: usize, work: &(dyn Fn(usize) -> Result<()> + Sync)) -> Result<()> {
    static POOL: OnceLock<Option<ThreadPool>> = OnceLock::new();
    let one_after_another = || (0..num).try_for_each(work);
    if num <= 1 {
        return one_after_another();
    }
    if rayon::current_thread_index().is_some() {
        // A thread of a rayon pool that waits runs other work of its pool, which may need a lock that the caller holds. A new thread only waits.
        return thread::scope(|scope| {
            match thread::Builder::new().spawn_scoped(scope, || each_number(num, work)) {
                Ok(thread) => thread.join().unwrap_or_else(|panic| resume_unwind(panic)),
                Err(_) => one_after_another(),
            }
        });
    }
    let new_pool = || {
        let name = |i| format!("kauri-copy-{i}");
        ThreadPoolBuilder::new().num_threads(KEPT_THREADS).thread_name(name).build().ok()
    };
    let Some(pool) = POOL.get_or_init(new_pool) else { return one_after_another() };
    let results: Vec<_> = (0..num).map(|_| Mutex::new(Ok(()))).collect();
    pool.in_place_scope(|scope| {
        for (i, result) in results.iter().enumerate().skip(1) {
            scope.spawn(move |_| *lock(result) = work(i));
        }
        *lock(&results[0]) = work(0);
    });
    results.into_iter().try_for_each(|result| result.into_inner().unwrap_or_else(PoisonError::into_inner))
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
    use std::panic::catch_unwind;
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

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

    #[test]
    fn many_calls_from_threads_of_a_pool() {
        rayon::broadcast(|_| {
            for num in [2, 70] {
                let sum = AtomicUsize::new(0);
                let add = |i| {
                    let name = thread::current().name().map(str::to_owned);
                    assert!(
                        rayon::current_thread_index().is_none()
                            || name.is_some_and(|name| name.starts_with("kauri-copy"))
                    );
                    sum.fetch_add(i, Relaxed);
                    Ok(())
                };
                each_number(num, &add).unwrap();
                assert_eq!(sum.into_inner(), num * (num - 1) / 2);
            }
        });
        let panics = catch_unwind(|| each_number(3, &|i| if i == 2 { panic!("test") } else { Ok(()) }));
        assert!(panics.is_err() && each_number(3, &|_| Ok(())).is_ok());
    }
}

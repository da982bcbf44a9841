//! Runs jobs on all cores.

use std::sync::Mutex;
use std::thread;

/// Calls `work` with each job, on as many threads as there are cores. Returns the results in the order of the jobs.
pub(crate) fn map<T: Send, R: Send>(jobs: Vec<T>, work: impl Fn(T) -> R + Sync) -> Vec<R> {
    let done: Mutex<Vec<Option<R>>> = Mutex::new(jobs.iter().map(|_| None).collect());
    let queue = Mutex::new(jobs.into_iter().enumerate());
    let next = || queue.lock().expect("no thread panics with the queue").next();
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some((i, job)) = next() {
                    let result = work(job);
                    done.lock().expect("no thread panics with the results")[i] = Some(result);
                }
            });
        }
    });
    let done = done.into_inner().expect("no thread panics with the results");
    done.into_iter().map(|result| result.expect("every job is done")).collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn results_are_in_order() {
        assert_eq!(
            super::map((0..1000).collect(), |i: u32| i * i),
            (0..1000).map(|i| i * i).collect::<Vec<_>>()
        );
        assert!(super::map(Vec::<u32>::new(), |i| i).is_empty());
    }
}

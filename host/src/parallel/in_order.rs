//! Results in order, while later ones are computed.

use crate::error::Result;
use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::sync::mpsc::{self, Receiver, TryRecvError};

/// Calls `visit` with the results of `task` for the numbers below `num`, in order, on the calling thread, until it breaks or fails. Meanwhile
/// the other threads run up to `ahead` tasks more.
pub(crate) fn in_order<T: Send>(
    num: usize,
    ahead: usize,
    task: impl Fn(usize) -> T + Sync,
    mut visit: impl FnMut(T) -> Result<ControlFlow<()>>,
) -> Result<()> {
    let task = &task;
    rayon::in_place_scope(|scope| {
        let start = |i| {
            let (to, result) = mpsc::sync_channel(1);
            // Nobody receives the result after a break.
            scope.spawn(move |_| drop(to.send(task(i))));
            result
        };
        let mut started = (0..num).map(start);
        let mut results: VecDeque<_> = started.by_ref().take(ahead.max(1)).collect();
        while let Some(result) = results.pop_front() {
            // A task that panics sends nothing; the scope passes the panic on.
            let Some(result) = received(&result) else { break };
            results.extend(started.next());
            if visit(result)?.is_break() {
                break;
            }
        }
        Ok(())
    })
}

/// Waits for the result of a task. A thread of the pool runs other tasks meanwhile, perhaps this one; if there are none, this one runs on
/// another thread.
fn received<T>(result: &Receiver<T>) -> Option<T> {
    loop {
        match result.try_recv() {
            Err(TryRecvError::Empty) => {}
            result => return result.ok(),
        }
        if !matches!(rayon::yield_now(), Some(rayon::Yield::Executed)) {
            return result.recv().ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;

    /// Visits the numbers up to 99 and answers `end` at 70, called by a thread of the pool or by another one. Returns the visited numbers, and
    /// true without an error.
    fn visited(num_threads: usize, is_in_pool: bool, end: Result<ControlFlow<()>>) -> (Vec<usize>, bool) {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(num_threads).build().unwrap();
        let mut end = Some(end);
        let mut run = move || {
            let mut visited = Vec::new();
            let result = in_order(
                100,
                5,
                |i| i,
                |i| {
                    visited.push(i);
                    if i == 70 { end.take().unwrap() } else { Ok(ControlFlow::Continue(())) }
                },
            );
            (visited, result.is_ok())
        };
        if is_in_pool { pool.install(run) } else { run() }
    }

    #[test]
    fn results_are_in_order() {
        for num_threads in [1, 2, 7] {
            for is_in_pool in [false, true] {
                let run = |end| visited(num_threads, is_in_pool, end);
                assert_eq!(run(Ok(ControlFlow::Continue(()))), ((0..100).collect(), true));
                assert_eq!(run(Ok(ControlFlow::Break(()))), ((0..71).collect(), true));
                assert_eq!(run(Err(Error::NoDevice)), ((0..71).collect(), false));
            }
        }
        assert!(in_order(0, 0, |i| i, |_| unreachable!()).is_ok());
    }

    #[test]
    #[should_panic(expected = "task 3")]
    fn panics_are_passed_on() {
        let _ = in_order(9, 2, |i| assert!(i != 3, "task {i}"), |()| Ok(ControlFlow::Continue(())));
    }
}

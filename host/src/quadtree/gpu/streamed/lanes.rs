//! Tasks that overlap: while the device works on one, another is copied.

use crate::device::{Gpu, Stream, Workspace};
use crate::error::{Error, Result};
use crate::memory::{self, Parts};
use crate::progress::{Progress, Step};
use bytemuck::Pod;
use cuda_std::mem::Slice;
use std::ops::Range;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

/// The purpose of memory for points, in errors.
pub(super) const LABEL: &str = "points on their way through the device";

/// Threads with a stream each, which take tasks one after another.
pub(crate) struct Lanes<'a> {
    gpus: &'a [Gpu],
    /// Number of lanes of each device.
    num: usize,
    /// Bytes of a point, for progress.
    point_bytes: u64,
    progress: &'a mut dyn Progress,
}

/// The resources of a lane.
pub(crate) struct Lane {
    pub(crate) stream: Stream,
    pub(crate) workspace: Workspace,
}

impl Lane {
    /// Copies rows of `W` items from the device after the lane's work so far.
    ///
    /// # Safety
    /// The items have been written.
    pub(crate) unsafe fn download<T: Pod + Send, const W: usize>(
        &mut self,
        from: Slice<'_, T>,
    ) -> Result<Vec<[T; W]>> {
        let len = from.len() / W;
        let mut items = memory::vec_with_capacity(len, "parts of a quadtree")?;
        let rows_out = Parts::new(&mut items.spare_capacity_mut()[..len]);
        // SAFETY: each row is passed once, so the parts are disjoint and all of them are written; the rest is the caller's promise.
        unsafe {
            self.stream.download_by(from, W, |first, rows| {
                let rows = rows.as_chunks().0;
                rows_out.part(first..first + rows.len()).write_copy_of_slice(rows);
                Ok(())
            })?;
            items.set_len(len);
        }
        Ok(items)
    }
}

impl<'a> Lanes<'a> {
    pub(crate) fn new(gpus: &'a [Gpu], num: usize, point_bytes: u64, progress: &'a mut dyn Progress) -> Self {
        Self { gpus, num, point_bytes, progress }
    }
}

impl<'a> Lanes<'a> {
    /// Runs all tasks, each given by its range of points, and returns their results in order. Stops at the first error, or when `progress`
    /// says so.
    pub(crate) fn run<R: Send>(
        &mut self,
        phase: &'static str,
        tasks: &[Range<usize>],
        work: impl Fn(&mut Lane, usize) -> Result<R> + Sync,
    ) -> Result<Vec<R>> {
        let total = tasks.iter().map(|task| task.len() as u64).sum();
        let mut step = Step { phase, done: 0, total: Some(total), bytes: 0 };
        let mut is_stopped = self.progress.report(step).is_break();
        let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(is_stopped));
        let mut results: Vec<Option<R>> = tasks.iter().map(|_| None).collect();
        let (sender, finished) = mpsc::channel();
        let run_lane = |gpu: &Gpu, sender: mpsc::Sender<(usize, R)>| -> Result<()> {
            let mut lane = Lane { stream: Stream::new(gpu)?, workspace: Workspace::new(gpu) };
            while !stop.load(Ordering::Relaxed) {
                let i = next.fetch_add(1, Ordering::Relaxed);
                if i >= tasks.len() {
                    break;
                }
                let result = work(&mut lane, i)?;
                // The receiver is gone if the call is unwinding.
                let _ = sender.send((i, result));
            }
            Ok(())
        };
        let run_lane =
            |gpu: &Gpu, sender| run_lane(gpu, sender).inspect_err(|_| stop.store(true, Ordering::Relaxed));
        thread::scope(|scope| {
            let spawn = |gpu: &'a Gpu| {
                let (run_lane, sender) = (&run_lane, sender.clone());
                thread::Builder::new().spawn_scoped(scope, move || run_lane(gpu, sender)).ok()
            };
            let num_lanes = (self.num * self.gpus.len()).min(tasks.len());
            let threads: Vec<_> = self.gpus.iter().cycle().take(num_lanes).filter_map(spawn).collect();
            if threads.is_empty() {
                // No thread could be spawned: run the tasks on this one.
                run_lane(&self.gpus[0], sender)?;
            } else {
                drop(sender);
            }
            for (i, result) in finished {
                results[i] = Some(result);
                step.done += tasks[i].len() as u64;
                step.bytes = step.done * self.point_bytes;
                if !is_stopped && self.progress.report(step).is_break() {
                    is_stopped = true;
                    stop.store(true, Ordering::Relaxed);
                }
            }
            let join = |thread: thread::ScopedJoinHandle<'_, _>| {
                thread.join().unwrap_or_else(|panic| resume_unwind(panic))
            };
            // Joins all threads before it returns the first error.
            threads.into_iter().map(join).collect::<Vec<_>>().into_iter().collect::<Result<()>>()
        })?;
        if is_stopped && step.done < total {
            return Err(Error::Stopped { phase, done: step.done, total: step.total });
        }
        Ok(results.into_iter().flatten().collect())
    }
}

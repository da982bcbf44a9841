//! Pieces of work side by side, so that one is copied while another is worked on.

use crate::device::{Buffer, Gpu, Staging, Stream, Workspace};
use crate::error::{Error, Result};
use crate::memory::{self, Parts};
use crate::progress::{Progress, Step};
use bytemuck::Pod;
use cuda_std::mem::Slice;
use cust_core::DeviceCopy;
use std::ops::Range;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;

/// Lanes that pieces of work go along, one after another.
pub(crate) struct Lanes<'a> {
    num: usize,
    /// Bytes of page-locked memory that each has.
    staged_bytes: u64,
    progress: &'a mut dyn Progress,
    /// Of lanes that have nothing to do what takes long to make: page-locked memory.
    idle: Mutex<Vec<Staging>>,
}

/// What a lane has.
pub(crate) struct Lane {
    pub(crate) stream: Stream,
    pub(crate) workspace: Workspace,
    pub(crate) staging: Staging,
}

impl Lane {
    /// Rows of so many items on the device.
    pub(crate) fn upload<T: DeviceCopy + Pod + Send + Sync>(
        &mut self,
        items: &[T],
        width: usize,
    ) -> Result<Buffer<T>> {
        self.staging.upload_slice(items, width, "points on their way through the device")
    }

    /// What `make` makes of each `W` items of the device, after the lane's work so far.
    ///
    /// # Safety
    /// The view is of device memory that has been written.
    pub(crate) unsafe fn download<T: Pod + Sync, U: Send, const W: usize>(
        &mut self,
        from: Slice<'_, T>,
        make: impl Fn(&[T; W]) -> U + Sync,
    ) -> Result<Vec<U>> {
        let len = from.len() / W;
        let mut items = memory::vec_with_capacity(len, "parts of a quadtree")?;
        let room = Parts::new(&mut items.spare_capacity_mut()[..len]);
        // SAFETY: passed on to the caller; each of them is taken once, and written.
        unsafe {
            self.staging.download(&self.stream, from, W, |first, rows| {
                let rows = rows.as_chunks().0;
                for (to, row) in room.part(first..first + rows.len()).iter_mut().zip(rows) {
                    to.write(make(row));
                }
            })?;
            items.set_len(len);
        }
        Ok(items)
    }
}

impl<'a> Lanes<'a> {
    pub(crate) fn new(num: usize, staged_bytes: u64, progress: &'a mut dyn Progress) -> Self {
        Self { num, staged_bytes, progress, idle: Mutex::default() }
    }
}

impl Lanes<'_> {
    /// Gives back what lanes have that do nothing.
    pub(crate) fn release(&mut self) {
        lock(&self.idle).clear();
    }

    /// Does all pieces of work, of so many points each, and returns what they made, in order. The first error ends it, and so does who is
    /// told of the progress.
    pub(crate) fn run<R: Send>(
        &mut self,
        gpu: &Gpu,
        phase: &'static str,
        pieces: &[Range<usize>],
        work: impl Fn(&mut Lane, usize) -> Result<R> + Sync,
    ) -> Result<Vec<R>> {
        let total = pieces.iter().map(|piece| piece.len() as u64).sum();
        let mut step = Step { phase, done: 0, total };
        let mut is_stopped = self.progress.report(step).is_break();
        let (staged_bytes, idle) = (self.staged_bytes, &self.idle);
        let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(is_stopped));
        let made: Vec<Mutex<Option<R>>> = pieces.iter().map(|_| Mutex::new(None)).collect();
        let (tell, told) = mpsc::channel();
        let lane = |tell: mpsc::Sender<u64>| -> Result<()> {
            let staging = lock(idle).pop().map_or_else(|| Staging::within(gpu, staged_bytes), Ok)?;
            let mut lane = Lane { stream: Stream::new(gpu)?, workspace: Workspace::new(gpu), staging };
            // A piece that is taken is worked on, or fails: others may wait for it.
            while !stop.load(Ordering::Relaxed) {
                let i = next.fetch_add(1, Ordering::Relaxed);
                let Some(piece) = pieces.get(i) else { break };
                *lock(&made[i]) = Some(work(&mut lane, i)?);
                // Nobody listens any more if the call is being unwound.
                let _ = tell.send(piece.len() as u64);
            }
            lock(idle).push(lane.staging);
            Ok(())
        };
        let lane = |tell| lane(tell).inspect_err(|_| stop.store(true, Ordering::Relaxed));
        thread::scope(|scope| {
            let spawn = |_| {
                let (lane, tell) = (&lane, tell.clone());
                thread::Builder::new().spawn_scoped(scope, move || lane(tell)).ok()
            };
            let threads: Vec<_> = (0..self.num.min(pieces.len())).filter_map(spawn).collect();
            if threads.is_empty() {
                // The system has no thread to spare: this one does it.
                lane(tell)?;
            } else {
                drop(tell);
            }
            for points in told {
                step.done += points;
                if !is_stopped && self.progress.report(step).is_break() {
                    is_stopped = true;
                    stop.store(true, Ordering::Relaxed);
                }
            }
            let join = |thread: thread::ScopedJoinHandle<'_, _>| {
                thread.join().unwrap_or_else(|panic| resume_unwind(panic))
            };
            // All of them, also behind an error.
            threads.into_iter().map(join).collect::<Vec<_>>().into_iter().collect::<Result<()>>()
        })?;
        if is_stopped && step.done < total {
            return Err(Error::Stopped { phase, done: step.done, total });
        }
        Ok(made
            .into_iter()
            .filter_map(|made| made.into_inner().unwrap_or_else(PoisonError::into_inner))
            .collect())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Lets pieces of work that are done side by side do something in their order.
pub(crate) struct Turns<T> {
    state: Mutex<(usize, bool, T)>,
    is_next: Condvar,
}

impl<T> Turns<T> {
    pub(crate) fn new(state: T) -> Self {
        Self { state: Mutex::new((0, false, state)), is_next: Condvar::new() }
    }

    /// Does what piece `i` does when all pieces before it have; nothing if one of them never will.
    pub(crate) fn take<R>(&self, i: usize, act: impl FnOnce(&mut T) -> R) -> Option<R> {
        let mut state = lock(&self.state);
        while state.0 != i && !state.1 {
            state = self.is_next.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if state.1 {
            return None;
        }
        let result = act(&mut state.2);
        state.0 += 1;
        self.is_next.notify_all();
        Some(result)
    }

    /// Does a piece of work that takes its turn; if it fails, or panics, nobody waits for it.
    pub(crate) fn within<R>(&self, work: impl FnOnce() -> Result<R>) -> Result<R> {
        struct GiveUp<'a, T>(&'a Turns<T>, bool);
        impl<T> Drop for GiveUp<'_, T> {
            fn drop(&mut self) {
                if self.1 {
                    lock(&self.0.state).1 = true;
                    self.0.is_next.notify_all();
                }
            }
        }
        let mut on_failure = GiveUp(self, true);
        let result = work();
        on_failure.1 = result.is_err();
        result
    }
}

//! A resident block: its threads, what they wait for, and its barriers.

use crate::chain::{may_be_same, same_site};
use crate::clock::{self, Clock, Here};
use crate::delay::StoreBuffer;
use crate::frontier::{Known, Time};
use crate::shared::Shared;
use crate::warp::Warp;
use cuda_std::simt::{Barrier, Site, WarpOp, WarpResult};

/// State of a simulated thread.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Status {
    /// Runs, or could run.
    Ready,
    /// Waits in a spin loop until another thread changes memory.
    Spinning,
    AtBarrier(Barrier, bool),
    /// Waits at a warp operation: operation, mask, the lane's operand.
    InWarp(WarpOp, u32, u64),
    Exited,
}

/// One simulated thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Thread {
    pub(crate) status: Status,
    /// Source location where the thread waits.
    pub(crate) site: Option<Site>,
    /// Number of the call chain to `site`.
    pub(crate) chain: u32,
    /// Number of its last access.
    pub(crate) time: Time,
    /// Result of the barrier or warp operation.
    pub(crate) result: WarpResult,
    /// Version of memory when the thread last left a spin hint; `idle_spins` counts the hints since then that saw no change.
    pub(crate) seen: u64,
    pub(crate) idle_spins: u32,
}

impl Thread {
    const NEW: Self = Self {
        status: Status::Ready,
        site: None,
        chain: 0,
        time: 0,
        result: WarpResult { value: 0, flag: false },
        seen: u64::MAX,
        idle_spins: 0,
    };
}

/// A resident block.
pub(crate) struct Block {
    /// Index in the grid, as one number and as coordinates.
    pub(crate) number: u32,
    pub(crate) index: [u32; 3],
    pub(crate) threads: Vec<Thread>,
    pub(crate) clocks: Vec<Clock>,
    pub(crate) warps: Vec<Warp>,
    pub(crate) shared: Shared,
    pub(crate) delayed: StoreBuffer,
    /// Accesses that earlier sequentially consistent fences of block scope had ordered.
    pub(crate) sequential: Known,
    /// Barriers passed.
    pub(crate) barriers: u32,
    pub(crate) live: u32,
    pub(crate) at_barrier: u32,
    pub(crate) in_warp: u32,
}

/// How the waiting threads of a block can continue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitState {
    /// Some threads still run.
    Open,
    /// All threads wait at one barrier.
    Barrier,
    /// All threads wait at barriers, but not at the same one.
    Mismatch,
    /// No thread can continue.
    Deadlock,
}

impl Block {
    pub(crate) fn new(threads: usize, shared: Shared) -> Self {
        Self {
            number: 0,
            index: [0; 3],
            threads: vec![Thread::NEW; threads],
            clocks: vec![Clock::default(); threads],
            warps: vec![],
            shared,
            delayed: StoreBuffer::default(),
            sequential: None,
            barriers: 0,
            live: 0,
            at_barrier: 0,
            in_warp: 0,
        }
    }

    /// Starts another block in this slot: all threads are before their first step.
    pub(crate) fn start(&mut self, number: u32, index: [u32; 3]) {
        let threads = self.threads.len();
        (self.number, self.index) = (number, index);
        self.threads.fill(Thread::NEW);
        self.clocks.fill(Clock::default());
        self.warps.clear();
        self.warps.extend((0..threads).step_by(32).map(|first| Warp::new(threads - first)));
        self.shared.reset();
        self.sequential = None;
        (self.barriers, self.live, self.at_barrier, self.in_warp) = (0, threads as u32, 0, 0);
    }

    /// Tag of the block in shadows of shared memory; distinguishes it from earlier blocks in this slot.
    pub(crate) fn tag(&self) -> u32 {
        self.number + 1
    }

    pub(crate) fn here(&self, thread: u32) -> Here {
        let time = self.threads[thread as usize].time;
        Here { block: self.number, thread, barriers: self.barriers, time }
    }

    /// Returns how the block's threads can continue.
    pub(crate) fn wait_state(&self) -> WaitState {
        if self.live == 0 || self.at_barrier + self.in_warp < self.live {
            return WaitState::Open;
        }
        if self.in_warp > 0 {
            return WaitState::Deadlock;
        }
        let mut chain = 0;
        let mut first = None;
        for thread in self.threads.iter().filter(|t| t.status != Status::Exited) {
            let (Status::AtBarrier(kind, _), Some(site)) = (thread.status, thread.site) else { continue };
            let (first_kind, first_site) = *first.get_or_insert((kind, site));
            if kind != first_kind || !same_site(site, first_site) || !may_be_same(chain, thread.chain) {
                return WaitState::Mismatch;
            }
            chain = if chain == 0 { thread.chain } else { chain };
        }
        WaitState::Barrier
    }

    /// Completes the barrier at which all live threads wait.
    pub(crate) fn pass_barrier(&mut self) {
        let (mut count, mut kind) = (0, Barrier::Sync);
        for thread in &self.threads {
            if let Status::AtBarrier(k, predicate) = thread.status {
                count += u32::from(predicate);
                kind = k;
            }
        }
        let value = match kind {
            Barrier::Sync => 0,
            Barrier::Count => count,
            Barrier::And => (count == self.live).into(),
            Barrier::Or => (count > 0).into(),
        };
        for thread in &mut self.threads {
            if matches!(thread.status, Status::AtBarrier(..)) {
                thread.status = Status::Ready;
                thread.result.value = value.into();
            }
        }
        clock::barrier(&mut self.clocks);
        self.barriers += 1;
        self.at_barrier = 0;
    }

    /// Completes a warp operation of these lanes.
    ///
    /// # Errors
    /// A reading lane and the lane it reads, if that one is not among them.
    pub(crate) fn complete_warp(
        &mut self,
        warp: usize,
        op: WarpOp,
        mask: u32,
        lanes: u32,
    ) -> Result<(), (u32, u32)> {
        let first = warp * 32;
        let mut values = [0; 32];
        let mut times = [0; 32];
        for (lane, thread) in self.threads[first..].iter().take(32).enumerate() {
            times[lane] = thread.time;
            if let Status::InWarp(_, _, value) = thread.status {
                values[lane] = value;
            }
        }
        for lane in (0..32).filter(|lane| lanes >> lane & 1 != 0) {
            let thread = &mut self.threads[first + lane as usize];
            let Status::InWarp(own, ..) = thread.status else { continue };
            // Each lane's own operand, such as the lane it reads.
            thread.result =
                crate::warp::result(own, mask, lanes, &values, lane).map_err(|from| (lane, from))?;
        }
        for lane in (0..32).filter(|lane| lanes >> lane & 1 != 0) {
            self.threads[first + lane].status = Status::Ready;
        }
        self.in_warp -= lanes.count_ones();
        if op == WarpOp::Sync {
            let end = (first + 32).min(self.clocks.len());
            clock::warp_sync(&mut self.clocks[first..end], &times, lanes);
        }
        Ok(())
    }
}

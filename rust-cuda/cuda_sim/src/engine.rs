//! The simulator as the running thread sees it: every call of a kernel into `cuda_std` comes here.
//!
//! A call borrows the launch's state and ends the borrow before it suspends: no borrow lives while another thread runs.

use crate::access::{Fault, Notice, words};
use crate::block::Status;
use crate::chain::{Chain, RawChain};
use crate::clock::releases;
use crate::debug;
use crate::error::{Action, Event, Kind, Mode, ThreadId};
use crate::fiber::{self, Suspender};
use crate::shadow::{Conflict, Stamp};
use crate::state::{At, Printed, State, Watch, coordinates};
use crate::warp::{self, Arrival};
use cuda_std::atomic::{Ordering, Scope};
use cuda_std::simt::{Access, AccessKind, Barrier, Coordinates, Simt, Site, Space, WarpOp, WarpResult};
use std::cell::{Cell, RefCell};

pub(crate) struct Engine<'a> {
    pub(crate) state: RefCell<State<'a>>,
    /// The running thread, and how it suspends.
    pub(crate) at: Cell<At>,
    pub(crate) suspender: Cell<*const Suspender>,
    pub(crate) coordinates: Cell<Coordinates>,
    /// Copies of constant options, to be read without a borrow.
    pub(crate) shared_bytes: usize,
    pub(crate) call_chains: bool,
}

impl Engine<'_> {
    fn suspender(&self) -> &Suspender {
        // SAFETY: the scheduler sets the suspender of the fiber that it resumes; it lives on that fiber's stack.
        unsafe { &*self.suspender.get() }
    }

    fn suspend(&self) {
        fiber::suspend(self.suspender());
    }

    /// Counts a step; suspends the thread if its turn is over or the schedule preempts it.
    #[inline]
    fn step(&self, atomic: bool, site: Option<Site>) -> At {
        let at = self.at.get();
        let (turn_is_over, preempted) = {
            let state = &mut *self.state.borrow_mut();
            state.stats.steps += 1;
            let step = state.stats.steps;
            (step >= state.turn_end, state.schedule.preempts(step, atomic, &mut state.random))
        };
        if turn_is_over || preempted {
            self.end_turn(at, turn_is_over, site);
        }
        at
    }

    #[cold]
    fn end_turn(&self, at: At, turn_is_over: bool, site: Option<Site>) {
        let (steps, budget) = {
            let state = self.state.borrow();
            (state.stats.steps, state.step_budget)
        };
        if steps >= budget {
            let by = self.event(Action::Other("the step that was too much"), site);
            self.fail(Kind::StepBudget { steps: budget, by });
        }
        {
            let state = &mut *self.state.borrow_mut();
            if turn_is_over {
                // All other threads run before this one runs again.
                state.blocks[at.block].threads[at.thread as usize].idle_spins = 0;
                state.schedule.spin(at.slot);
            } else {
                state.schedule.preempt(at.slot);
            }
        }
        self.suspend();
    }

    /// Reports an error and ends the thread; most errors end the launch.
    fn fail(&self, kind: Kind) -> ! {
        debug::error_found();
        self.state.borrow_mut().report(kind);
        loop {
            // The scheduler resumes the thread only to unwind it.
            self.suspend();
        }
    }

    /// Describes what the running thread does, with its call chain.
    fn event(&self, action: Action, site: Option<Site>) -> Event {
        let raw = RawChain::capture();
        // Resolving takes more stack than a simulated thread may have left.
        let chain = self.suspender().on_parent_stack(move || raw.resolve());
        let thread = self.state.borrow().thread_id(self.at.get());
        Event { thread, action, site, chain }
    }

    fn chain_number(&self) -> u32 {
        if !self.call_chains {
            return 0;
        }
        let raw = RawChain::capture();
        if let Some(number) = self.state.borrow().chain_ids.get(&raw) {
            return number;
        }
        let resolved = raw.clone();
        let chain = self.suspender().on_parent_stack(move || resolved.resolve_known());
        self.state.borrow_mut().chain_ids.add(raw, chain)
    }

    fn access_event(&self, at: At, access: &Access, mode: Mode) -> Event {
        let info = self.state.borrow_mut().describe(at, access, mode);
        self.event(Action::Access(info), Some(access.site))
    }

    #[cold]
    fn access_fault(&self, at: At, access: &Access, mode: Mode, fault: Fault) -> ! {
        let by = self.access_event(at, access, mode);
        let kind = match fault {
            Fault::OutOfBounds => Kind::OutOfBounds { by },
            Fault::BadAddress(why) => Kind::BadAddress { by, why },
            Fault::Conflict(stamp, conflict) => {
                let earlier = self.earlier_event(&stamp);
                match conflict {
                    Conflict::Unordered => Kind::Race { earlier, later: by },
                    Conflict::NarrowScope => Kind::NarrowScope { earlier, later: by },
                    Conflict::ReadOnly => Kind::ReadOnlyWritten { earlier, later: by },
                }
            }
        };
        self.fail(kind)
    }

    /// Describes the earlier access of a conflict. Only its thread and number are known; a second run finds the rest.
    fn earlier_event(&self, stamp: &Stamp) -> Event {
        let mut state = self.state.borrow_mut();
        let thread = ThreadId {
            block: coordinates(stamp.block, state.shape.grid),
            thread: coordinates(stamp.thread.into(), state.shape.block),
        };
        state.rerun_to = Some(Watch { block: stamp.block, thread: stamp.thread.into(), time: stamp.time });
        let action = Action::Other(if stamp.writes { "a store" } else { "a load" });
        Event { thread, action, site: None, chain: Chain::default() }
    }

    #[cold]
    fn notice(&self, at: At, access: &Access, mode: Mode, notice: Notice) {
        if notice.watched {
            debug::earlier_access();
            let event = self.access_event(at, access, mode);
            self.state.borrow_mut().watched = Some(event);
            loop {
                self.suspend();
            }
        }
        let (is_first, races) = {
            let state = self.state.borrow();
            (state.unwritten_read.is_none(), state.options.checks.races)
        };
        if is_first {
            let by = self.access_event(at, access, mode);
            let kind = Kind::Uninitialized { by };
            if !races {
                self.fail(kind);
            }
            // A later write of these bytes in this launch would make the read a race, which is the better report. The
            // kernel may run astray with the unwritten value meanwhile, so its step budget is reduced.
            const STEPS_TO_EXPLAIN: u64 = 1 << 22;
            let state = &mut *self.state.borrow_mut();
            state.unwritten_read = Some(kind);
            state.step_budget = state.step_budget.min(state.stats.steps + STEPS_TO_EXPLAIN);
        }
        self.state.borrow_mut().unwritten_words.extend(words(access).map(|word| (word, ())));
    }

    #[inline]
    fn finish(&self, at: At, access: &Access, mode: Mode, result: Result<Notice, Fault>) {
        match result {
            Ok(Notice { unwritten: false, watched: false }) => {}
            Ok(notice) => self.notice(at, access, mode, notice),
            Err(fault) => self.access_fault(at, access, mode, fault),
        }
    }
}

// SAFETY: `load` fills all bytes or does not return, and `shared` returns memory that the block's `Shared` keeps.
unsafe impl Simt for Engine<'_> {
    fn coordinates(&self) -> Coordinates {
        self.coordinates.get()
    }

    fn barrier(&self, kind: Barrier, predicate: bool, site: Site) -> u32 {
        let at = self.step(false, Some(site));
        let chain = self.chain_number();
        {
            let state = &mut *self.state.borrow_mut();
            let block = &mut state.blocks[at.block];
            let thread = &mut block.threads[at.thread as usize];
            (thread.status, thread.site, thread.chain) =
                (Status::AtBarrier(kind, predicate), Some(site), chain);
            block.at_barrier += 1;
            state.resolve_waits(at.block);
        }
        self.suspend();
        self.state.borrow().blocks[at.block].threads[at.thread as usize].result.value as u32
    }

    fn warp(&self, op: WarpOp, mask: u32, value: u64, site: Site) -> WarpResult {
        let at = self.step(false, Some(site));
        let lane = at.thread % 32;
        if mask >> lane & 1 == 0 {
            self.fail(Kind::NotInMask { by: self.event(Action::Warp(op, mask), Some(site)) });
        }
        if warp::width(op).is_some_and(|w| !w.is_power_of_two() || w > 32) {
            let by = self.event(Action::Warp(op, mask), Some(site));
            let what = "the width of a segment is a power of two up to 32".into();
            self.fail(Kind::BadArgument { by, what });
        }
        let chain = self.chain_number();
        let (arrival, trouble) = {
            let state = &mut *self.state.borrow_mut();
            let block = &mut state.blocks[at.block];
            let thread = &mut block.threads[at.thread as usize];
            (thread.status, thread.site, thread.chain) = (Status::InWarp(op, mask, value), Some(site), chain);
            block.in_warp += 1;
            let operation = warp::PendingOperation { op, mask, site, chain, arrived: 0 };
            let arrival = block.warps[at.thread as usize / 32].arrive(lane, operation);
            let mut trouble = None;
            match arrival {
                Arrival::Waits => state.resolve_waits(at.block),
                Arrival::Complete(lanes) => trouble = state.complete_warp(at, op, mask, lanes).err(),
                Arrival::Mismatch(_) | Arrival::Exited(_) => {}
            }
            (arrival, trouble)
        };
        let first = at.thread / 32 * 32;
        match (arrival, trouble) {
            (_, Some((reader, source))) => {
                let by = self.state.borrow().waiting_event(at.block, first + reader);
                self.fail(Kind::BadSource { by, source })
            }
            (Arrival::Exited(lane), _) => {
                let by = self.event(Action::Warp(op, mask), Some(site));
                self.fail(Kind::ExitedLane { by, lane })
            }
            (Arrival::Mismatch(other), _) => {
                let later = self.event(Action::Warp(op, mask), Some(site));
                let earlier = self.state.borrow().waiting_event(at.block, first + other);
                self.fail(Kind::WarpMismatch { earlier, later })
            }
            (Arrival::Waits | Arrival::Complete(_), None) => self.suspend(),
        }
        self.state.borrow().blocks[at.block].threads[at.thread as usize].result
    }

    fn active_mask(&self, site: Site) -> u32 {
        let at = self.step(false, Some(site));
        let state = &mut *self.state.borrow_mut();
        let first = at.thread as usize / 32 * 32;
        let lanes = state.blocks[at.block].threads[first..].iter().take(32);
        let runnable =
            lanes.enumerate().filter(|(_, t)| t.status == Status::Ready).fold(0, |m, (l, _)| m | 1 << l);
        // The hardware may run any subset of the lanes together.
        let any = state.random.next() as u32 | state.random.next() as u32;
        runnable & any | 1 << (at.thread % 32)
    }

    unsafe fn load(&self, access: Access, to: *mut u8) {
        let at = self.step(is_atomic(&access), Some(access.site));
        // SAFETY: of the caller.
        let result = unsafe { self.state.borrow_mut().load(at, &access, to) };
        self.finish(at, &access, Mode::Load, result);
    }

    unsafe fn store(&self, access: Access, from: *const u8) {
        let at = self.step(is_atomic(&access), Some(access.site));
        // SAFETY: of the caller.
        let result = unsafe { self.state.borrow_mut().store(at, &access, from) };
        self.finish(at, &access, Mode::Store, result);
    }

    unsafe fn update(&self, access: Access, op: &mut dyn FnMut(*mut u8)) {
        let at = self.step(true, Some(access.site));
        let result = self.state.borrow_mut().update(at, &access, op);
        self.finish(at, &access, Mode::Update, result);
    }

    fn fence(&self, order: Ordering, scope: Scope, site: Site) {
        let at = self.step(false, Some(site));
        let state = &mut *self.state.borrow_mut();
        if state.options.checks.races {
            let block = &mut state.blocks[at.block];
            let here = block.here(at.thread);
            let in_block = scope == Scope::Block;
            let sequential = if in_block { &mut block.sequential } else { &mut state.sequential };
            block.clocks[at.thread as usize].fence(here, order, scope, sequential);
        }
        if releases(order) && scope != Scope::Block {
            state.flush_block(at.block);
        }
    }

    fn spin(&self, site: Site) {
        let at = self.step(false, Some(site));
        {
            let state = &mut *self.state.borrow_mut();
            if state.options.delay_stores && state.random.one_in(8) {
                let block = state.random.below(state.blocks.len());
                state.flush_any(block);
            }
            let thread = &mut state.blocks[at.block].threads[at.thread as usize];
            thread.idle_spins = if thread.seen == state.version { thread.idle_spins + 1 } else { 0 };
            (thread.status, thread.site) = (Status::Spinning, Some(site));
            state.schedule.spin(at.slot);
        }
        self.suspend();
        let state = &mut *self.state.borrow_mut();
        let thread = &mut state.blocks[at.block].threads[at.thread as usize];
        (thread.status, thread.seen) = (Status::Ready, state.version);
    }

    fn shared(&self, key: usize, bytes: usize, _align: usize, site: Site) -> *mut u8 {
        let at = self.at.get();
        let region = self.state.borrow_mut().blocks[at.block].shared.region(key, bytes);
        match region {
            Ok(pointer) => pointer,
            Err(available) => {
                let by = self.event(Action::Shared { bytes }, Some(site));
                self.fail(Kind::SharedMemory { by, available })
            }
        }
    }

    fn name_shared(&self, address: usize, bytes: usize, name: &'static str) {
        self.state.borrow_mut().blocks[self.at.get().block].shared.name(address, bytes, name);
    }

    fn dynamic_shared_bytes(&self) -> u32 {
        self.shared_bytes as u32
    }

    fn clock(&self) -> u64 {
        let at = self.step(false, None);
        let state = &mut *self.state.borrow_mut();
        // A loop that polls the clock makes progress.
        state.blocks[at.block].threads[at.thread as usize].seen = u64::MAX;
        state.stats.steps
    }

    fn print(&self, text: &str, site: Site) {
        let at = self.step(false, Some(site));
        let state = &mut *self.state.borrow_mut();
        // A second run, which explains an error, prints nothing again.
        if state.watch.is_none() {
            let thread = state.thread_id(at);
            let text = text.to_owned();
            print!("{thread}: {text}");
            state.printed.push(Printed { thread, text });
        }
    }

    fn space_of(&self, address: usize) -> Option<Space> {
        let state = &mut *self.state.borrow_mut();
        if state.blocks[self.at.get().block].shared.find(address).is_some() {
            return Some(Space::Shared);
        }
        state.memory.find(address).map(|_| Space::Global)
    }

    fn trap(&self, site: Site) -> ! {
        self.fail(Kind::Trap { by: self.event(Action::Other("a trap"), Some(site)) })
    }

    fn outside(&self, begin: usize, len: usize, of: usize, site: Site) -> ! {
        let action = Action::Part { begin: begin as u64, len: len as u64, of: of as u64 };
        self.fail(Kind::OutOfBounds { by: self.event(action, Some(site)) })
    }
}

fn is_atomic(access: &Access) -> bool {
    matches!(access.kind, AccessKind::Atomic(..))
}

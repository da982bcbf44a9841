//! One launch: runs its threads and completes the report of an error.

use crate::block::Block;
use crate::engine::Engine;
use crate::error::{Action, Event, Kind};
use crate::fiber::{Command, Fiber, Stop, Suspender};
use crate::hash::FastMap;
use crate::memory::Memory;
use crate::options::{Options, Start};
use crate::panic;
use crate::random::Random;
use crate::schedule::{Schedule, Slot};
use crate::shadow::Samples;
use crate::shared::Shared;
use crate::state::{At, LaunchStats, NextBlocks, Printed, Shape, State, Watch, coordinates};
use cuda_std::simt::{self, Coordinates};
use std::cell::{Cell, RefCell};
use std::ptr;

/// A launch to simulate.
#[derive(Clone, Copy)]
pub(crate) struct Launch<'a> {
    pub(crate) shape: Shape,
    pub(crate) shared_bytes: usize,
    pub(crate) max_shared_bytes: usize,
    pub(crate) run: &'a dyn Fn(),
    pub(crate) options: &'a Options,
    /// Tag of the launch in shadows.
    pub(crate) tag: u32,
    /// The access that a second run searches.
    pub(crate) watch: Option<Watch>,
}

/// Result of a launch.
pub(crate) struct Outcome {
    pub(crate) stats: LaunchStats,
    pub(crate) printed: Vec<Printed>,
    pub(crate) error: Option<Kind>,
    /// The earlier access of a conflict.
    pub(crate) rerun_to: Option<Watch>,
    /// In a second run, the access that was searched.
    pub(crate) watched: Option<Event>,
}

impl Launch<'_> {
    /// Runs all threads, or until an error is found.
    pub(crate) fn simulate(&self, memory: &mut Memory) -> Outcome {
        let resident = self.resident_blocks();
        let slots = self.shape.slots();
        let engine = Engine {
            state: RefCell::new(self.new_state(memory, resident)),
            at: Cell::default(),
            suspender: Cell::new(ptr::null()),
            coordinates: Cell::new(Coordinates {
                thread_idx: [0; 3],
                block_idx: [0; 3],
                block_dim: self.shape.block,
                grid_dim: self.shape.grid,
            }),
            shared_bytes: self.shared_bytes,
            call_chains: self.options.checks.call_chains,
        };
        for block in 0..resident {
            engine.state.borrow_mut().start_next(block);
        }
        let mut threads = Threads {
            engine: &engine,
            run: self.run,
            suspenders: (0..resident * slots).map(|_| Cell::new(ptr::null())).collect(),
            fibers: (0..resident * slots).map(|_| None).collect(),
        };
        panic::install();
        simt::enter(&engine, || {
            threads.run_all();
            threads.complete_error();
            threads.fibers.clear();
        });
        drop(threads);

        let mut state = engine.state.into_inner();
        if let Some(unwritten) = state.unwritten_read.take()
            && !state.explains_unwritten
        {
            // A later error may be a consequence of the unwritten value.
            state.error = Some(unwritten);
            state.rerun_to = None;
        }
        let State { stats, printed, error, rerun_to, watched, .. } = state;
        Outcome { stats, printed, error, rerun_to, watched }
    }

    fn resident_blocks(&self) -> usize {
        // Each thread has a stack, and a process can have some ten thousand stacks.
        const MAX_SLOTS: usize = 4096;
        let most = self.options.resident.blocks.clamp(1, MAX_SLOTS / self.shape.slots());
        (most as u64).min(self.shape.blocks()) as usize
    }

    fn new_state<'m>(&'m self, memory: &'m mut Memory, resident: usize) -> State<'m> {
        let Self { shape, options, .. } = *self;
        let mut random = Random::new(options.seed);
        let blocks = shape.blocks() as u32;
        let next_blocks = match options.resident.start {
            Start::InOrder => NextBlocks::Ascending(0, blocks),
            Start::LowestLast => NextBlocks::Descending(blocks),
            Start::Random => NextBlocks::List(shuffled(blocks, &mut random)),
        };
        let threads = shape.threads() as usize;
        let block = || Block::new(threads, Shared::new(self.shared_bytes, self.max_shared_bytes));
        State {
            memory,
            options,
            shape,
            blocks: (0..resident).map(|_| block()).collect(),
            schedule: Schedule::new(options.order, resident * shape.slots(), &mut random),
            samples: Samples::new(random.next()),
            random,
            stats: LaunchStats::default(),
            printed: Vec::new(),
            step_budget: options.step_budget,
            turn_end: 0,
            version: 0,
            next_blocks,
            error: None,
            unwritten_read: None,
            unwritten_words: FastMap::default(),
            tag: self.tag,
            released: FastMap::default(),
            sequential: None,
            chain_ids: Default::default(),
            rerun_to: None,
            explains_unwritten: false,
            watch: self.watch,
            watched: None,
        }
    }
}

fn shuffled(n: u32, random: &mut Random) -> Vec<u32> {
    let mut numbers: Vec<u32> = (0..n).collect();
    for i in (1..numbers.len()).rev() {
        numbers.swap(i, random.below(i + 1));
    }
    numbers
}

/// The threads of the resident blocks, each on a fiber.
struct Threads<'e, 'm> {
    engine: &'e Engine<'m>,
    run: &'e dyn Fn(),
    suspenders: Vec<Cell<*const Suspender>>,
    /// By slot; created at first use.
    fibers: Vec<Option<Fiber>>,
}

impl Threads<'_, '_> {
    fn run_all(&mut self) {
        while let Some(slot) = self.next() {
            let at = self.engine.state.borrow().at(slot);
            let stop = match self.resume(at, Command::Go) {
                Ok(stop) => stop,
                Err(error) => {
                    let what = format!("no stack for another thread: {error}");
                    self.engine.state.borrow_mut().error = Some(Kind::BadLaunch { what });
                    return;
                }
            };
            match stop {
                Stop::Returned => self.engine.state.borrow_mut().end_thread(at),
                Stop::Panicked => self.panicked(at),
                Stop::Suspended | Stop::Chain(_) => {}
            }
            let state = self.engine.state.borrow();
            if state.error.is_some() || state.watched.is_some() {
                return;
            }
        }
    }

    /// Returns the thread that runs next; `None` if all have ended or none can run.
    fn next(&self) -> Option<Slot> {
        let state = &mut *self.engine.state.borrow_mut();
        loop {
            if let Some(slot) = state.schedule.pop(&mut state.random) {
                return Some(slot);
            }
            if state.schedule.spinning().is_empty() {
                // A deadlock within one block was reported before.
                return None;
            }
            if state.is_stuck() {
                let before = state.version;
                (0..state.blocks.len()).for_each(|block| state.flush_block(block));
                if state.version == before {
                    let groups = state.groups(0..state.blocks.len());
                    let blocks_not_started = state.next_blocks.left();
                    state.report(Kind::NoProgress { groups, blocks_not_started });
                    return None;
                }
            }
            state.schedule.wake_spinning();
        }
    }

    fn resume(&mut self, at: At, command: Command) -> std::io::Result<Stop> {
        // Steps after which a thread that never waits yields.
        const TURN: u64 = 1 << 16;
        let engine = self.engine;
        let suspender = &self.suspenders[at.slot as usize];
        {
            let state = &mut *engine.state.borrow_mut();
            state.stats.switches += 1;
            state.turn_end = (state.stats.steps + TURN).min(state.step_budget);
            let mut coordinates_of = engine.coordinates.get();
            coordinates_of.block_idx = state.blocks[at.block].index;
            coordinates_of.thread_idx = coordinates(at.thread, state.shape.block);
            engine.coordinates.set(coordinates_of);
        }
        engine.at.set(at);
        engine.suspender.set(suspender.get());
        let fiber = match &mut self.fibers[at.slot as usize] {
            Some(fiber) => fiber,
            none => {
                let suspender: *const Cell<*const Suspender> = suspender;
                let started = move |own: *const Suspender| {
                    // SAFETY: the cells are neither moved nor dropped before the fibers.
                    unsafe { (*suspender).set(own) };
                    engine.suspender.set(own);
                };
                // SAFETY: engine and kernel outlive `self`, which drops the fibers.
                none.insert(unsafe { Fiber::new(self.run, started) }?)
            }
        };
        Ok(panic::in_kernel(|| fiber.resume(command)))
    }

    fn panicked(&self, at: At) {
        let panic = panic::last();
        let state = &mut *self.engine.state.borrow_mut();
        let by = Event {
            thread: state.thread_id(at),
            action: Action::Other("a panic"),
            site: None,
            chain: panic.chain.resolve(),
        };
        state.report(Kind::Panic { message: panic.message, location: panic.location, by });
    }

    /// Adds the call chains of the waiting threads to an error.
    fn complete_error(&mut self) {
        let mut error = self.engine.state.borrow_mut().error.take();
        for event in error.iter_mut().flat_map(Kind::events_mut) {
            if event.chain.0.is_empty()
                && let Some(at) = self.waiting_at(event)
                && let Ok(Stop::Chain(raw)) = self.resume(at, Command::Report)
            {
                event.chain = raw.resolve();
            }
        }
        self.engine.state.borrow_mut().error = error;
    }

    /// Returns the thread of an event, if it waits at the event's location.
    fn waiting_at(&self, event: &Event) -> Option<At> {
        let state = self.engine.state.borrow();
        let slots = state.shape.slots();
        let (block, resident) =
            state.blocks.iter().enumerate().find(|(_, b)| b.index == event.thread.block && b.live > 0)?;
        let thread = (0..resident.threads.len() as u32)
            .find(|&t| coordinates(t, state.shape.block) == event.thread.thread)?;
        let at_place = event.site.is_some() && resident.threads[thread as usize].site == event.site;
        at_place.then_some(At { slot: (block * slots) as Slot + thread, block, thread })
    }
}

//! The state of a running launch, apart from the stacks of its threads.

use crate::block::{Block, Status, WaitState};
use crate::chain::{Chain, ChainIds};
use crate::clock::Released;
use crate::delay::Chunk;
use crate::error::{Action, Event, Group, Kind, ThreadId};
use crate::frontier::Known;
use crate::hash::FastMap;
use crate::memory::Memory;
use crate::options::Options;
use crate::random::Random;
use crate::schedule::{Schedule, Slot};
use crate::shadow::Samples;
use cuda_std::simt::WarpOp;

/// Sizes of a launch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
}

impl Shape {
    pub(crate) fn blocks(&self) -> u64 {
        self.grid.iter().map(|&n| u64::from(n)).product()
    }

    pub(crate) fn threads(&self) -> u64 {
        self.block.iter().map(|&n| u64::from(n)).product()
    }

    /// Slots of a resident block: whole warps.
    pub(crate) fn slots(&self) -> usize {
        (self.threads() as usize).next_multiple_of(32)
    }
}

/// Returns the coordinates of a linear index in a box of the given size.
pub(crate) fn coordinates(number: u32, size: [u32; 3]) -> [u32; 3] {
    if size[1] == 1 && size[2] == 1 {
        return [number, 0, 0];
    }
    [number % size[0], number / size[0] % size[1], number / size[0] / size[1]]
}

/// Position of a thread: its slot, the index of its resident block, its number in the block.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct At {
    pub(crate) slot: Slot,
    pub(crate) block: usize,
    pub(crate) thread: u32,
}

/// An access to find again in a second run: block, thread, number of the access in the thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Watch {
    pub(crate) block: u32,
    pub(crate) thread: u32,
    pub(crate) time: u32,
}

/// Counts of a launch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LaunchStats {
    /// Threads that ran.
    pub threads: u64,
    /// Accesses, fences and suspensions.
    pub steps: u64,
    /// Times that a thread was resumed.
    pub switches: u64,
}

/// A text that a kernel printed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Printed {
    /// The thread.
    pub thread: ThreadId,
    /// The text, without the place of the thread that precedes it on standard output.
    pub text: String,
}

pub(crate) struct State<'a> {
    pub(crate) memory: &'a mut Memory,
    pub(crate) options: &'a Options,
    pub(crate) shape: Shape,
    pub(crate) blocks: Vec<Block>,
    pub(crate) schedule: Schedule,
    pub(crate) random: Random,
    pub(crate) stats: LaunchStats,
    /// Texts that the kernel printed, in their order.
    pub(crate) printed: Vec<Printed>,
    /// Steps that the launch may take.
    pub(crate) step_budget: u64,
    /// Step at which the running thread's turn ends.
    pub(crate) turn_end: u64,
    /// Counts changes of memory.
    pub(crate) version: u64,
    pub(crate) next_blocks: NextBlocks,
    /// Ends the launch.
    pub(crate) error: Option<Kind>,
    /// A read of unwritten bytes, which is a race if a later write of them is unordered.
    pub(crate) unwritten_read: Option<Kind>,
    /// Words that were read before they were written.
    pub(crate) unwritten_words: FastMap<usize, ()>,
    /// Tag of this launch in shadows.
    pub(crate) tag: u32,
    /// Knowledge released by atomic operations on global memory, by address.
    pub(crate) released: FastMap<usize, Released>,
    /// Knowledge of earlier sequentially consistent fences of device scope.
    pub(crate) sequential: Known,
    pub(crate) samples: Samples,
    pub(crate) chain_ids: ChainIds,
    /// The earlier access of the conflict that ended the launch.
    pub(crate) rerun_to: Option<Watch>,
    /// The conflict is about words that were read before they were written.
    pub(crate) explains_unwritten: bool,
    /// In a second run: the access that is searched, and the event found.
    pub(crate) watch: Option<Watch>,
    pub(crate) watched: Option<Event>,
}

/// The blocks that are still to start.
pub(crate) enum NextBlocks {
    /// From the first number up to the second.
    Ascending(u32, u32),
    /// From the first number minus one down to zero.
    Descending(u32),
    /// In this order, the last one first.
    List(Vec<u32>),
}

impl NextBlocks {
    fn take(&mut self) -> Option<u32> {
        match self {
            Self::Ascending(next, end) => (next < end).then(|| {
                *next += 1;
                *next - 1
            }),
            Self::Descending(left) => left.checked_sub(1).inspect(|&next| *left = next),
            Self::List(list) => list.pop(),
        }
    }

    pub(crate) fn left(&self) -> u64 {
        match self {
            Self::Ascending(next, end) => (end - next).into(),
            Self::Descending(left) => (*left).into(),
            Self::List(list) => list.len() as u64,
        }
    }
}

impl State<'_> {
    /// Starts the next block in a resident place; false if there is none.
    pub(crate) fn start_next(&mut self, place: usize) -> bool {
        let Some(number) = self.next_blocks.take() else { return false };
        let shape = self.shape;
        self.blocks[place].start(number, coordinates(number, shape.grid));
        let first = (place * shape.slots()) as Slot;
        for slot in first..first + shape.threads() as Slot {
            self.schedule.start(slot, &mut self.random);
        }
        self.stats.threads += shape.threads();
        true
    }

    pub(crate) fn at(&self, slot: Slot) -> At {
        let slots = self.shape.slots() as u32;
        At { slot, block: (slot / slots) as usize, thread: slot % slots }
    }

    pub(crate) fn thread_id(&self, at: At) -> ThreadId {
        ThreadId { block: self.blocks[at.block].index, thread: coordinates(at.thread, self.shape.block) }
    }

    /// Ends the launch with an error. After a read of what was never written the error may be its consequence: then only
    /// the thread ends, without a word to those who wait for it, while the others go on until the read is explained.
    pub(crate) fn report(&mut self, kind: Kind) {
        if self.unwritten_read.is_none() || self.explains_unwritten {
            self.error.get_or_insert(kind);
        }
    }

    /// Completes the barrier of a block or reports an error, after one of its threads began to wait or ended.
    pub(crate) fn resolve_waits(&mut self, block: usize) {
        match self.blocks[block].wait_state() {
            WaitState::Open => {}
            WaitState::Barrier => {
                let first = (block * self.shape.slots()) as Slot;
                let waiting = (first..).zip(&self.blocks[block].threads);
                for (slot, _) in waiting.filter(|(_, t)| t.status != Status::Exited) {
                    self.schedule.push(slot);
                }
                self.blocks[block].pass_barrier();
            }
            WaitState::Mismatch => self.report(Kind::BarrierMismatch { groups: self.groups([block]) }),
            WaitState::Deadlock => self.report(Kind::Deadlock { groups: self.groups([block]) }),
        }
    }

    /// Completes a warp operation of the running thread's warp.
    ///
    /// # Errors
    /// A reading lane and the lane it reads, if the latter does not take part.
    pub(crate) fn complete_warp(
        &mut self,
        at: At,
        op: WarpOp,
        mask: u32,
        lanes: u32,
    ) -> Result<(), (u32, u32)> {
        self.blocks[at.block].complete_warp(at.thread as usize / 32, op, mask, lanes)?;
        let first = at.slot / 32 * 32;
        (0..32).filter(|lane| lanes >> lane & 1 != 0).for_each(|lane| self.schedule.push(first + lane));
        Ok(())
    }

    /// Ends a thread whose kernel function returned.
    pub(crate) fn end_thread(&mut self, at: At) {
        let block = &mut self.blocks[at.block];
        block.threads[at.thread as usize].status = Status::Exited;
        block.live -= 1;
        let (warp, lane) = (at.thread / 32, at.thread % 32);
        if let Some(waiting) = block.warps[warp as usize].exit(lane) {
            let by = self.waiting_event(at.block, warp * 32 + waiting);
            self.report(Kind::ExitedLane { by, lane });
            return;
        }
        self.resolve_waits(at.block);
        if self.blocks[at.block].live == 0 {
            self.flush_block(at.block);
            let broken = self.blocks[at.block].shared.broken_red_zone();
            if let Some((label, offset)) = broken {
                self.report(Kind::RedZone { label, offset });
            }
            self.start_next(at.block);
        }
    }

    /// Returns the operation that a thread waits for, without the call chain.
    pub(crate) fn waiting_event(&self, block: usize, thread: u32) -> Event {
        let state = &self.blocks[block].threads[thread as usize];
        let action = match state.status {
            Status::AtBarrier(kind, _) => Action::Barrier(kind),
            Status::InWarp(op, mask, _) => Action::Warp(op, mask),
            Status::Spinning => Action::Spin,
            Status::Ready => Action::Other("its next step"),
            Status::Exited => Action::Other("nothing: it has ended"),
        };
        let id = self.thread_id(At { slot: 0, block, thread });
        Event { thread: id, action, site: state.site, chain: Chain::default() }
    }

    /// Groups the live threads of resident blocks by the operation that they wait for.
    pub(crate) fn groups(&self, blocks: impl IntoIterator<Item = usize>) -> Vec<Group> {
        let mut groups: Vec<(u32, Group)> = vec![];
        for block in blocks {
            let threads = self.blocks[block].threads.iter().zip(0..);
            for (state, thread) in threads.filter(|(t, _)| t.status != Status::Exited) {
                let event = self.waiting_event(block, thread);
                let same = |(chain, g): &&mut (u32, Group)| {
                    *chain == state.chain
                        && g.example.thread.block == event.thread.block
                        && g.example.action == event.action
                        && g.example.site == event.site
                };
                match groups.iter_mut().find(same) {
                    Some((_, group)) => group.threads.push(event.thread),
                    None => groups.push((state.chain, Group { threads: vec![event.thread], example: event })),
                }
            }
        }
        groups.into_iter().map(|(_, group)| group).collect()
    }

    /// Writes all delayed stores of a block to memory.
    pub(crate) fn flush_block(&mut self, block: usize) {
        while let Some((key, chunk)) = self.blocks[block].delayed.take_any(&mut self.random) {
            self.write_to_memory(key, &chunk);
        }
    }

    /// Writes one random chunk of a block's delayed stores to memory.
    pub(crate) fn flush_any(&mut self, block: usize) {
        if let Some((key, chunk)) = self.blocks[block].delayed.take_any(&mut self.random) {
            self.write_to_memory(key, &chunk);
        }
    }

    pub(crate) fn write_to_memory(&mut self, key: usize, chunk: &Chunk) {
        let Self { memory, version, .. } = self;
        chunk.for_each(key, |address, value| {
            // Memory is neither allocated nor freed during a launch.
            let Some(index) = memory.find(address) else { return };
            let region = memory.region(index);
            let offset = address - region.base();
            let byte = region.at(offset, 1);
            // SAFETY: within the region; no reference is made, since the kernel may hold references to it.
            unsafe {
                *version += u64::from(*byte != value);
                *byte = value;
            }
            region.written.set(offset, 1);
        });
    }

    /// True if every thread that could run has spun repeatedly without a change of memory.
    pub(crate) fn is_stuck(&self) -> bool {
        // Loops that spin a small fixed number of times end earlier.
        const IDLE_SPINS: u32 = 256;
        self.schedule.spinning().iter().all(|&slot| {
            let at = self.at(slot);
            let thread = &self.blocks[at.block].threads[at.thread as usize];
            thread.idle_spins >= IDLE_SPINS && thread.seen == self.version
        })
    }
}

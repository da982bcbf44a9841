//! Happens-before clocks: the accesses of other threads that are ordered before a thread's next access.
//!
//! Every access has a time, `(barriers its block had passed, number of the access in its thread)`. A thread *knows* an
//! access if the access is ordered before the thread's next one. Most of this knowledge is common to many threads, so
//! threads share its parts instead of a vector clock each:
//!
//! - The thread's block: all accesses before the last barrier (nothing is stored for these), and later accesses of
//!   single threads that warp syncs and acquires made known ([`BlockTimes`]).
//! - Other blocks: a [`Frontier`].
//!
//! Order comes from barriers, warp syncs, and release and acquire patterns whose scopes include the other thread, as the
//! PTX memory model (Lustig, Sahasrabuddhe, Giroux, ASPLOS 2019) defines them. Shuffles and votes order nothing.

use crate::frontier::{BlockKnowledge, Frontier, Known, Time, find, join, merge};
use crate::hash::FastMap;
use cuda_std::atomic::{Ordering, Scope};
use std::rc::Rc;

/// Known times of threads of the same block since its last barrier.
#[derive(Clone, Debug, Default)]
pub(crate) struct BlockTimes {
    /// Times of the lanes of the thread's warp.
    lanes: [Time; 32],
    /// Times of threads of other warps, by thread.
    others: Vec<(u32, Time)>,
}

/// Position of a thread in its block and in time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Here {
    pub(crate) block: u32,
    pub(crate) thread: u32,
    /// Barriers that the block has passed.
    pub(crate) barriers: u32,
    /// Number of the thread's last access.
    pub(crate) time: Time,
}

/// The accesses that one thread knows.
#[derive(Clone, Debug, Default)]
pub(crate) struct Clock {
    same_block: Option<Rc<BlockTimes>>,
    /// Knowledge of other blocks. Entries of the thread's block may be stale and are ignored.
    other_blocks: Known,
    /// Knowledge that the last release fence ordered before later atomic stores, for observers in the block and on the device.
    released: [Known; 2],
    /// Knowledge behind earlier relaxed loads, which the next acquire fence of block or device scope makes known.
    pending: [Known; 2],
}

const BLOCK: usize = 0;
const DEVICE: usize = 1;

/// True for scopes beyond the block; the simulator has one device.
fn is_wide(scope: Scope) -> bool {
    scope != Scope::Block
}

pub(crate) fn acquires(order: Ordering) -> bool {
    matches!(order, Ordering::Acquire | Ordering::AcqRel | Ordering::SeqCst)
}

pub(crate) fn releases(order: Ordering) -> bool {
    matches!(order, Ordering::Release | Ordering::AcqRel | Ordering::SeqCst)
}

impl Clock {
    /// True if an access of another thread is ordered before the thread's next access.
    #[inline]
    pub(crate) fn knows(&self, here: Here, block: u32, thread: u32, barriers: u32, time: Time) -> bool {
        if block == here.block {
            return barriers < here.barriers || self.time_in_block(here, thread) >= time;
        }
        self.other_blocks
            .as_ref()
            .and_then(|f| f.of(block))
            .is_some_and(|known| known.has(thread, barriers, time))
    }

    fn time_in_block(&self, here: Here, thread: u32) -> Time {
        let Some(same_block) = &self.same_block else { return 0 };
        if thread / 32 == here.thread / 32 {
            same_block.lanes[thread as usize % 32]
        } else {
            find(&same_block.others, thread)
        }
    }

    /// Returns all knowledge of the thread, including its own accesses.
    fn snapshot(&self, here: Here) -> Frontier {
        let mut beyond = vec![];
        if let Some(same_block) = &self.same_block {
            let warp = here.thread / 32 * 32;
            let lanes = (warp..).zip(same_block.lanes).filter(|&(_, time)| time > 0).collect::<Vec<_>>();
            beyond = merge(&lanes, &same_block.others, |a, b| *a.max(b));
        }
        let beyond = merge(&beyond, &[(here.thread, here.time)], |a, b| *a.max(b));
        let knowledge = BlockKnowledge { barriers: here.barriers, beyond };
        self.other_blocks.as_deref().unwrap_or(&Frontier::default()).with(here.block, knowledge)
    }

    /// Adds the knowledge of a frontier.
    fn learn(&mut self, here: Here, more: &Known) {
        let Some(frontier) = more else { return };
        if let Some(knowledge) = frontier.of(here.block)
            && knowledge.barriers == here.barriers
            && knowledge.beyond.iter().any(|&(thread, time)| self.time_in_block(here, thread) < time)
        {
            let same_block = Rc::make_mut(self.same_block.get_or_insert_default());
            let warp = here.thread / 32;
            let (lanes, others): (Vec<_>, Vec<_>) =
                knowledge.beyond.iter().partition(|&&(thread, _)| thread / 32 == warp);
            for (thread, time) in lanes {
                let lane = &mut same_block.lanes[thread as usize % 32];
                *lane = time.max(*lane);
            }
            same_block.others = merge(&same_block.others, &others, |a, b| *a.max(b));
        }
        if frontier.goes_beyond(here.block) {
            join(&mut self.other_blocks, more);
        }
    }

    /// Applies a fence. `sequential` is the knowledge of earlier sequentially consistent fences of this scope, which are
    /// ordered among each other.
    pub(crate) fn fence(&mut self, here: Here, order: Ordering, scope: Scope, sequential: &mut Known) {
        let wide = is_wide(scope);
        if acquires(order) {
            let pending = std::mem::take(&mut self.pending[BLOCK]);
            self.learn(here, &pending);
            if wide {
                let pending = std::mem::take(&mut self.pending[DEVICE]);
                self.learn(here, &pending);
            }
        }
        if order == Ordering::SeqCst {
            self.learn(here, sequential);
        }
        if releases(order) {
            let snapshot = Some(Rc::new(self.snapshot(here)));
            if order == Ordering::SeqCst {
                join(sequential, &snapshot);
            }
            self.released[BLOCK] = snapshot.clone();
            if wide {
                self.released[DEVICE] = snapshot;
            }
        }
    }

    /// Applies the reading half of an atomic operation on an address where `clock` was released.
    pub(crate) fn atomic_read(&mut self, here: Here, order: Ordering, scope: Scope, clock: &Released) {
        let from_block = clock.by_block.get(&here.block).cloned();
        let mut usable = from_block.clone();
        if is_wide(scope) {
            join(&mut usable, &clock.by_device);
        }
        if acquires(order) {
            self.learn(here, &usable);
        } else {
            join(&mut self.pending[BLOCK], &from_block);
            join(&mut self.pending[DEVICE], &usable);
        }
    }

    /// Applies the writing half of an atomic operation. Returns the released knowledge for observers in the block and on
    /// the device.
    pub(crate) fn atomic_write(&self, here: Here, order: Ordering, scope: Scope) -> [Known; 2] {
        let snapshot = releases(order).then(|| Rc::new(self.snapshot(here)));
        let of = |scope: usize| {
            let mut known = self.released[scope].clone();
            join(&mut known, &snapshot);
            known
        };
        [of(BLOCK), if is_wide(scope) { of(DEVICE) } else { None }]
    }
}

/// Knowledge released by atomic writes to one address. A plain store clears it, an atomic store replaces it, a
/// read-modify-write adds to it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Released {
    /// Released at device scope.
    by_device: Known,
    /// Released at any scope, by block.
    by_block: FastMap<u32, Rc<Frontier>>,
}

impl Released {
    pub(crate) fn add(&mut self, block: u32, [in_block, on_device]: [Known; 2]) {
        join(&mut self.by_device, &on_device);
        if in_block.is_some() {
            let mut known = self.by_block.remove(&block);
            join(&mut known, &in_block);
            self.by_block.extend(known.map(|k| (block, k)));
        }
    }
}

/// Applies a barrier of the block: each thread learns what any thread knew of other blocks. Their knowledge of each
/// other follows from the number of barriers.
pub(crate) fn barrier(clocks: &mut [Clock]) {
    let mut all = None;
    for clock in clocks.iter() {
        join(&mut all, &clock.other_blocks);
    }
    for clock in clocks {
        clock.same_block = None;
        if all.is_some() {
            clock.other_blocks.clone_from(&all);
        }
    }
}

/// Applies a sync of the lanes of `mask`. `times` are the lanes' last accesses.
pub(crate) fn warp_sync(lanes: &mut [Clock], times: &[Time], mask: u32) {
    let takes_part = |lane: &usize| mask >> lane & 1 != 0;
    let mut same_block = BlockTimes::default();
    let mut other_blocks = None;
    for lane in (0..lanes.len()).filter(takes_part) {
        if let Some(theirs) = &lanes[lane].same_block {
            for (time, &theirs) in same_block.lanes.iter_mut().zip(&theirs.lanes) {
                *time = theirs.max(*time);
            }
            if !theirs.others.is_empty() {
                same_block.others = merge(&same_block.others, &theirs.others, |a, b| *a.max(b));
            }
        }
        same_block.lanes[lane] = times[lane];
        join(&mut other_blocks, &lanes[lane].other_blocks);
    }
    let same_block = Rc::new(same_block);
    for lane in (0..lanes.len()).filter(takes_part) {
        lanes[lane].same_block = Some(same_block.clone());
        lanes[lane].other_blocks.clone_from(&other_blocks);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn here(block: u32, thread: u32, barriers: u32, time: Time) -> Here {
        Here { block, thread, barriers, time }
    }

    #[test]
    fn barriers_and_warp_syncs_order_within_a_block() {
        let mut clocks = vec![Clock::default(); 64];
        assert!(!clocks[1].knows(here(0, 1, 0, 0), 0, 0, 0, 1));
        assert!(clocks[1].knows(here(0, 1, 1, 0), 0, 0, 0, 1), "before the barrier");
        warp_sync(&mut clocks[..32], &[5; 32], 0b11);
        assert!(clocks[1].knows(here(0, 1, 0, 0), 0, 0, 0, 5));
        assert!(!clocks[1].knows(here(0, 1, 0, 0), 0, 0, 0, 6), "after the sync");
        assert!(!clocks[2].knows(here(0, 2, 0, 0), 0, 0, 0, 5), "not in the mask");
        barrier(&mut clocks);
        assert!(clocks[1].same_block.is_none());
    }

    #[test]
    fn release_and_acquire_order_between_blocks_and_on() {
        let (mut a, mut b, mut c) = (Clock::default(), Clock::default(), Clock::default());
        let at = [here(0, 3, 2, 10), here(1, 0, 0, 4), here(2, 0, 0, 1)];
        let mut flag = Released::default();
        flag.add(0, a.atomic_write(at[0], Ordering::Release, Scope::Device));
        b.atomic_read(at[1], Ordering::Relaxed, Scope::Device, &flag);
        assert!(!b.knows(at[1], 0, 3, 2, 10), "no acquire yet");
        b.fence(at[1], Ordering::Acquire, Scope::Device, &mut None);
        assert!(b.knows(at[1], 0, 3, 2, 10) && !b.knows(at[1], 0, 3, 2, 11));
        assert!(b.knows(at[1], 0, 9, 1, 99), "before a barrier of the other block");
        assert!(!b.knows(at[1], 0, 9, 2, 1), "another thread after it");

        // A release carries the knowledge that b acquired before.
        let mut next = Released::default();
        b.fence(at[1], Ordering::Release, Scope::Device, &mut None);
        next.add(1, b.atomic_write(at[1], Ordering::Relaxed, Scope::Device));
        c.atomic_read(at[2], Ordering::Acquire, Scope::Device, &next);
        assert!(c.knows(at[2], 0, 3, 2, 10) && c.knows(at[2], 1, 0, 0, 4));
        // A relaxed store without a fence releases nothing.
        a.fence(at[0], Ordering::Acquire, Scope::Device, &mut None);
        assert_eq!(a.atomic_write(at[0], Ordering::Relaxed, Scope::Device).map(|k| k.is_some()), [false; 2]);
    }

    #[test]
    fn block_scope_orders_in_the_block_only() {
        let (mut writer, mut same, mut other) = (Clock::default(), Clock::default(), Clock::default());
        let at = [here(0, 3, 0, 10), here(0, 40, 0, 0), here(1, 0, 0, 0)];
        for (fence, store) in [(Scope::Block, Scope::Device), (Scope::Device, Scope::Block)] {
            let mut flag = Released::default();
            writer.fence(at[0], Ordering::Release, fence, &mut None);
            flag.add(0, writer.atomic_write(at[0], Ordering::Relaxed, store));
            for (acquire, scope) in [(&mut same, Scope::Block), (&mut other, Scope::Device)] {
                let here = if scope == Scope::Block { at[1] } else { at[2] };
                acquire.atomic_read(here, Ordering::Acquire, scope, &flag);
            }
            assert!(same.knows(at[1], 0, 3, 0, 10));
            assert!(!other.knows(at[2], 0, 3, 0, 10), "{fence:?} {store:?}");
            writer = Clock::default();
        }
    }
}

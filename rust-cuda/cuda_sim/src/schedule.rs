//! The order in which runnable threads run.
//!
//! A slot holds one thread; slot / 32 is its warp, slot % 32 its lane.

use crate::options::Order;
use crate::random::Random;
use std::collections::BinaryHeap;

pub(crate) type Slot = u32;

/// The runnable threads.
pub(crate) struct Schedule {
    ready: Ready,
    /// Threads that wait in a spin loop. They run when no other thread can; in random orders also earlier.
    spinning: Vec<Slot>,
}

enum Ready {
    Lowest(Bits),
    Highest(Bits),
    Any(Vec<Slot>),
    Warps(Warps),
    Priorities(Priorities),
}

impl Schedule {
    pub(crate) fn new(order: Order, slots: usize, random: &mut Random) -> Self {
        let ready = match order {
            Order::Ascending => Ready::Lowest(Bits::new(slots)),
            Order::Descending => Ready::Highest(Bits::new(slots)),
            Order::Random => Ready::Any(vec![]),
            Order::WarpShuffled => Ready::Warps(Warps::new(slots)),
            Order::FewPreemptions { changes } => Ready::Priorities(Priorities::new(slots, changes, random)),
        };
        Self { ready, spinning: vec![] }
    }

    /// Adds a new, runnable thread.
    pub(crate) fn start(&mut self, slot: Slot, random: &mut Random) {
        if let Ready::Priorities(p) = &mut self.ready {
            p.priority[slot as usize] = random.next() | 1 << 63;
        }
        self.push(slot);
    }

    /// Makes a thread runnable again.
    pub(crate) fn push(&mut self, slot: Slot) {
        match &mut self.ready {
            Ready::Lowest(bits) | Ready::Highest(bits) => bits.insert(slot),
            Ready::Any(slots) => slots.push(slot),
            Ready::Warps(warps) => warps.insert(slot),
            Ready::Priorities(p) => p.heap.push((p.priority[slot as usize], slot)),
        }
    }

    /// Adds the running thread to those that wait in a spin loop.
    pub(crate) fn spin(&mut self, slot: Slot) {
        self.spinning.push(slot);
        if let Ready::Priorities(p) = &mut self.ready {
            p.demote(slot);
        }
    }

    /// Preempts the running thread.
    pub(crate) fn preempt(&mut self, slot: Slot) {
        match &mut self.ready {
            Ready::Priorities(p) => p.demote(slot),
            Ready::Warps(warps) => warps.current = None,
            _ => {}
        }
        self.push(slot);
    }

    /// True if the running thread is to be preempted before the access that is step number `step`.
    #[inline]
    pub(crate) fn preempts(&mut self, step: u64, atomic: bool, random: &mut Random) -> bool {
        match &mut self.ready {
            Ready::Lowest(_) | Ready::Highest(_) => false,
            Ready::Any(_) | Ready::Warps(_) => atomic && random.one_in(4),
            Ready::Priorities(p) => {
                let due = p.changes.last().is_some_and(|&at| at <= step);
                if due {
                    p.changes.pop();
                }
                due
            }
        }
    }

    /// Removes and returns the thread that runs next.
    pub(crate) fn pop(&mut self, random: &mut Random) -> Option<Slot> {
        let shuffles = matches!(self.ready, Ready::Any(_) | Ready::Warps(_));
        if !self.spinning.is_empty() && shuffles && random.one_in(8) {
            return Some(self.spinning.swap_remove(random.below(self.spinning.len())));
        }
        match &mut self.ready {
            Ready::Lowest(bits) => bits.take_first(),
            Ready::Highest(bits) => bits.take_last(),
            Ready::Any(slots) if slots.is_empty() => None,
            Ready::Any(slots) => Some(slots.swap_remove(random.below(slots.len()))),
            Ready::Warps(warps) => warps.take(random),
            Ready::Priorities(p) => p.heap.pop().map(|(_, slot)| slot),
        }
    }

    /// Returns the threads in spin loops.
    pub(crate) fn spinning(&self) -> &[Slot] {
        &self.spinning
    }

    /// Makes the threads in spin loops runnable.
    pub(crate) fn wake_spinning(&mut self) {
        for slot in std::mem::take(&mut self.spinning) {
            self.push(slot);
        }
    }
}

/// A set of slots: one bit each, and one bit for each nonempty word of these.
struct Bits {
    words: Vec<u64>,
    summary: Vec<u64>,
}

impl Bits {
    fn new(slots: usize) -> Self {
        let words = slots.div_ceil(64);
        Self { words: vec![0; words], summary: vec![0; words.div_ceil(64)] }
    }

    fn insert(&mut self, slot: Slot) {
        let word = slot as usize / 64;
        self.words[word] |= 1 << (slot % 64);
        self.summary[word / 64] |= 1 << (word % 64);
    }

    fn take_first(&mut self) -> Option<Slot> {
        let s = self.summary.iter().position(|&w| w != 0)?;
        let word = s * 64 + self.summary[s].trailing_zeros() as usize;
        Some(self.take(word, self.words[word].trailing_zeros()))
    }

    fn take_last(&mut self) -> Option<Slot> {
        let s = self.summary.iter().rposition(|&w| w != 0)?;
        let word = s * 64 + self.summary[s].ilog2() as usize;
        Some(self.take(word, self.words[word].ilog2()))
    }

    fn take(&mut self, word: usize, bit: u32) -> Slot {
        self.words[word] &= !(1 << bit);
        if self.words[word] == 0 {
            self.summary[word / 64] &= !(1 << (word % 64));
        }
        (word * 64) as Slot + bit
    }
}

/// Slots by warp: one warp runs until its lanes wait, its lanes in order; then a random other warp.
struct Warps {
    lanes: Vec<u32>,
    /// Warps with runnable lanes, in any order; `position` is each warp's index in this list.
    runnable: Vec<u32>,
    position: Vec<u32>,
    current: Option<u32>,
}

impl Warps {
    fn new(slots: usize) -> Self {
        let warps = slots.div_ceil(32);
        Self { lanes: vec![0; warps], runnable: vec![], position: vec![0; warps], current: None }
    }

    fn insert(&mut self, slot: Slot) {
        let warp = slot as usize / 32;
        if self.lanes[warp] == 0 {
            self.position[warp] = self.runnable.len() as u32;
            self.runnable.push(warp as u32);
        }
        self.lanes[warp] |= 1 << (slot % 32);
    }

    fn take(&mut self, random: &mut Random) -> Option<Slot> {
        if self.runnable.is_empty() {
            return None;
        }
        let warp = match self.current {
            Some(warp) if self.lanes[warp as usize] != 0 => warp,
            _ => self.runnable[random.below(self.runnable.len())],
        };
        self.current = Some(warp);
        let lanes = &mut self.lanes[warp as usize];
        let lane = lanes.trailing_zeros();
        *lanes &= *lanes - 1;
        if *lanes == 0 {
            let position = self.position[warp as usize] as usize;
            self.runnable.swap_remove(position);
            if let Some(&moved) = self.runnable.get(position) {
                self.position[moved as usize] = position as u32;
            }
        }
        Some(warp * 32 + lane)
    }
}

/// Slots by priority (PCT): the highest runs; at the steps in `changes` the running one becomes the lowest.
struct Priorities {
    priority: Vec<u64>,
    heap: BinaryHeap<(u64, Slot)>,
    /// Steps of priority changes, descending, so that the next is last.
    changes: Vec<u64>,
    lowest: u64,
}

impl Priorities {
    fn new(slots: usize, changes: u32, random: &mut Random) -> Self {
        // PCT draws the steps uniformly from a known number of steps. It is unknown here, so steps of all magnitudes are drawn.
        let mut changes: Vec<u64> = (0..changes).map(|_| random.of_any_size(20)).collect();
        changes.sort_unstable_by(|a, b| b.cmp(a));
        Self { priority: vec![0; slots], heap: BinaryHeap::new(), changes, lowest: 1 << 63 }
    }

    fn demote(&mut self, slot: Slot) {
        self.lowest -= 1;
        self.priority[slot as usize] = self.lowest;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_order_gives_every_thread_once() {
        use Order::{Ascending, Descending, FewPreemptions, Random as Any, WarpShuffled};
        for order in [Ascending, Descending, Any, WarpShuffled, FewPreemptions { changes: 2 }] {
            let mut random = Random::new(5);
            let mut schedule = Schedule::new(order, 320, &mut random);
            (0..320).for_each(|slot| schedule.start(slot, &mut random));
            let taken: Vec<Slot> = std::iter::from_fn(|| schedule.pop(&mut random)).collect();
            let mut sorted = taken.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..320).collect::<Vec<_>>(), "{order}");
            match order {
                Ascending => assert_eq!(taken, sorted),
                Descending => assert!(taken.is_sorted_by(|a, b| a > b)),
                WarpShuffled => assert!(taken.chunks(32).all(|warp| warp.is_sorted() && warp[0] % 32 == 0)),
                _ => assert!(!taken.is_sorted()),
            }
        }
    }

    #[test]
    fn spinning_threads_wait_for_the_others() {
        let mut random = Random::new(5);
        let mut schedule = Schedule::new(Order::Ascending, 64, &mut random);
        schedule.spin(3);
        schedule.push(7);
        assert_eq!(schedule.pop(&mut random), Some(7));
        assert_eq!(schedule.pop(&mut random), None);
        schedule.wake_spinning();
        assert_eq!(schedule.pop(&mut random), Some(3));
    }
}

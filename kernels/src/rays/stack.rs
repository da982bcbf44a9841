//! The subtrees that a traversal still has to visit.

use crate::policy::{RAY_STACK, RAY_THREADS as THREADS};
use crate::thread::words::{join, split};
use cuda_std::prelude::*;

/// The subtrees that a traversal still has to visit.
pub trait Stack {
    /// Drops all entries.
    unsafe fn clear(&mut self);
    /// Adds an entry.
    unsafe fn push(&mut self, entry: Entry);
    /// Adds the entries whose numbers are finite.
    #[inline(always)]
    unsafe fn push_near(&mut self, [a, b, c]: [Entry; 3]) {
        self.push_if_near(a);
        self.push_if_near(b);
        self.push_if_near(c);
    }
    /// Adds an entry that is not infinitely far.
    #[inline(always)]
    unsafe fn push_if_near(&mut self, entry: Entry) {
        if entry.at < f32::INFINITY {
            self.push(entry);
        }
    }
    /// Takes the entry that was added last, if there is one.
    unsafe fn pop(&mut self) -> Option<Entry>;
}

/// A subtree, and a number that tells where it is along the ray, or how near to a query.
#[derive(Clone, Copy)]
pub struct Entry {
    /// The number.
    pub at: f32,
    /// The subtree.
    pub subtree: u32,
}

impl Entry {
    #[inline(always)]
    fn to_word(self) -> u64 {
        join([self.subtree, self.at.to_bits(), 0, 0])
    }

    #[inline(always)]
    fn from_word(word: u64) -> Self {
        let [subtree, at, ..] = split(word);
        Self { at: f32::from_bits(at), subtree }
    }
}

/// The entries of the threads' stacks that are in shared memory.
#[repr(C)]
pub struct StackSmem {
    entries: [[u64; THREADS]; RAY_STACK],
}

/// A stack in shared memory, and beyond its room in global memory.
pub struct ThreadStack<'a> {
    /// The index of the next entry, as if all were in shared memory.
    next: u32,
    near: SharedSlice<'a, u64>,
    deep: SliceMut<'a, u64>,
}

/// From an entry of a thread to its next one.
const STEP: u32 = THREADS as u32;

/// The entries of all threads in shared memory.
const ROOM: u32 = RAY_STACK as u32 * STEP;

impl<'a> ThreadStack<'a> {
    /// Makes an empty stack. `deep` is for stacks of more than [`RAY_STACK`] entries: further entries of all threads, then the next ones.
    #[inline(always)]
    pub(crate) unsafe fn new(smem: *mut StackSmem, deep: SliceMut<'a, u64>) -> Self {
        Self { next: thread::thread_idx_x(), near: shared_field!(smem, entries), deep }
    }

    /// Adds an entry that is not infinitely far, for which there is room in shared memory.
    #[inline(always)]
    unsafe fn push_inside(&mut self, entry: Entry) {
        if entry.at < f32::INFINITY {
            self.near.store(self.next as usize, entry.to_word());
            self.next += STEP;
        }
    }

    #[inline(always)]
    unsafe fn deep_index(&self, entry: u32) -> usize {
        let level = (entry - ROOM) / STEP;
        level as usize * (thread::grid_dim_x() as usize * THREADS) + thread::index_1d_u64() as usize
    }
}

impl Stack for ThreadStack<'_> {
    #[inline(always)]
    unsafe fn clear(&mut self) {
        self.next = thread::thread_idx_x();
    }

    #[inline(always)]
    unsafe fn push(&mut self, entry: Entry) {
        if self.next < ROOM {
            self.near.store(self.next as usize, entry.to_word());
        } else {
            self.deep.store(self.deep_index(self.next), entry.to_word());
        }
        self.next += STEP;
    }

    #[inline(always)]
    unsafe fn push_near(&mut self, [a, b, c]: [Entry; 3]) {
        // One test for all: most stacks have room.
        let has_room = self.next < ROOM - 2 * STEP;
        if has_room {
            self.push_inside(a);
            self.push_inside(b);
            self.push_inside(c);
        } else {
            self.push_if_near(a);
            self.push_if_near(b);
            self.push_if_near(c);
        }
    }

    #[inline(always)]
    unsafe fn pop(&mut self) -> Option<Entry> {
        let last = self.next.wrapping_sub(STEP);
        let word = if last < ROOM {
            self.near.load(last as usize)
        } else if self.next < STEP {
            return None;
        } else {
            // Of another kind, so that the compiler does not join both loads to one of an unknown address space.
            self.deep.load_streaming(self.deep_index(last))
        };
        self.next = last;
        Some(Entry::from_word(word))
    }
}

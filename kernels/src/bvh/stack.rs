//! The subtrees that a traversal still has to visit.

use super::node::WIDTH;
use super::subtree::Subtree;
use crate::policy::{BVH_RAY_THREADS as THREADS, BVH_STACK};
use crate::thread::words::{join, split};
use cuda_std::prelude::*;

/// The subtrees that a traversal still has to visit, each with a number that tells how near it is.
pub trait Stack {
    /// Drops all entries.
    unsafe fn clear(&mut self);
    /// Adds an entry.
    unsafe fn push(&mut self, entry: Entry);
    /// Adds those of three entries that are not infinitely far.
    #[inline(always)]
    unsafe fn push_near(&mut self, [a, b, c]: [Entry; WIDTH - 1]) {
        self.push_if_near(a);
        self.push_if_near(b);
        self.push_if_near(c);
    }
    /// Adds an entry that is not infinitely far.
    #[inline(always)]
    unsafe fn push_if_near(&mut self, entry: Entry) {
        if entry.near < f32::INFINITY {
            self.push(entry);
        }
    }
    /// Takes the entry that was added last, of which there is at least one.
    unsafe fn pop(&mut self) -> Entry;
}

/// A subtree, and how near it is: infinite if nothing in it counts.
#[derive(Clone, Copy)]
pub struct Entry {
    near: f32,
    subtree: Subtree,
}

impl Entry {
    /// The first entry of a stack is before every limit, and says that the traversal has ended.
    const LAST: Self = Self { near: f32::NEG_INFINITY, subtree: Subtree::ENDED };

    #[inline(always)]
    fn to_word(self) -> u64 {
        join([self.subtree.0, self.near.to_bits(), 0, 0])
    }

    #[inline(always)]
    fn from_word(word: u64) -> Self {
        let [subtree, near, ..] = split(word);
        Self { near: f32::from_bits(near), subtree: Subtree(subtree) }
    }
}

/// Returns the most entries of a stack in a hierarchy with this number of levels of nodes: all children but one, and the first entry.
pub const fn stack_len(height: u32) -> usize {
    (WIDTH - 1) * height as usize + 1
}

/// Puts the entry that comes first before the other.
#[inline(always)]
fn in_order(a: Entry, b: Entry) -> (Entry, Entry) {
    if b.near < a.near { (b, a) } else { (a, b) }
}

/// Makes the stack of a traversal that begins.
#[inline(always)]
pub(super) unsafe fn begin(stack: &mut impl Stack) {
    stack.clear();
    stack.push(Entry::LAST);
}

/// Takes the next subtree that is not farther than the limit; [`Subtree::ENDED`] if there is none.
#[inline(always)]
pub(super) unsafe fn next(stack: &mut impl Stack, limit: f32) -> Subtree {
    loop {
        let Entry { near, subtree } = stack.pop();
        // Nothing is beyond a limit that is NaN, and the last entry not beyond any.
        let is_beyond = near > limit;
        if !is_beyond {
            return subtree;
        }
    }
}

/// Returns the nearest child of a node, [`Subtree::NONE`] if nothing in it counts. Puts the others on the stack, the nearest last. `near` tells how
/// near the children are.
#[inline(always)]
pub(super) unsafe fn nearest_child(
    children: [Subtree; WIDTH],
    near: [f32; WIDTH],
    stack: &mut impl Stack,
) -> Subtree {
    let entry = |i: usize| Entry { near: near[i], subtree: children[i] };
    let ((a, b), (c, d)) = (in_order(entry(0), entry(1)), in_order(entry(2), entry(3)));
    let ((a, c), (b, d)) = (in_order(a, c), in_order(b, d));
    let (b, c) = in_order(b, c);
    stack.push_near([d, c, b]);
    if a.near < f32::INFINITY { a.subtree } else { Subtree::NONE }
}

/// The entries of the threads' stacks that are in shared memory.
#[repr(C)]
pub struct StackSmem {
    entries: [[u64; THREADS]; BVH_STACK],
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
const ROOM: u32 = BVH_STACK as u32 * STEP;

impl<'a> ThreadStack<'a> {
    /// Makes an empty stack. `deep` is for stacks of more than [`BVH_STACK`] entries: further entries of all threads, then the next ones.
    #[inline(always)]
    pub(super) unsafe fn new(smem: *mut StackSmem, deep: SliceMut<'a, u64>) -> Self {
        Self { next: thread::thread_idx_x(), near: shared_field!(smem, entries), deep }
    }

    /// Adds an entry that is not infinitely far, for which there is room in shared memory.
    #[inline(always)]
    unsafe fn push_inside(&mut self, entry: Entry) {
        if entry.near < f32::INFINITY {
            self.near.store(self.next as usize, entry.to_word());
            self.next += STEP;
        }
    }

    #[inline(always)]
    unsafe fn deep_index(&self) -> usize {
        let level = (self.next - ROOM) / STEP;
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
            self.deep.store(self.deep_index(), entry.to_word());
        }
        self.next += STEP;
    }

    #[inline(always)]
    unsafe fn push_near(&mut self, [a, b, c]: [Entry; WIDTH - 1]) {
        // One test for all: most stacks have room.
        let has_room = self.next < ROOM - (WIDTH as u32 - 2) * STEP;
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
    unsafe fn pop(&mut self) -> Entry {
        self.next -= STEP;
        Entry::from_word(if self.next < ROOM {
            self.near.load(self.next as usize)
        } else {
            // Of another kind, so that the compiler does not join both loads to one of an unknown address space.
            self.deep.load_streaming(self.deep_index())
        })
    }
}

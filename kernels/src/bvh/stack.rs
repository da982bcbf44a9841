//! The subtrees that a traversal still has to visit.

use super::node::{Node, WIDTH};
use super::subtree::Subtree;
use crate::policy::{BVH_RAY_THREADS as THREADS, BVH_STACK};
use crate::rays::aabb::Aabb;
use crate::thread::words::{join, split};
use cuda_std::prelude::*;

/// The subtrees that a traversal still has to visit, each with a number that tells how near it is.
pub trait Stack {
    /// Drops all entries.
    unsafe fn clear(&mut self);
    /// Adds a subtree.
    unsafe fn push(&mut self, entry: u64);
    /// Takes the entry that was added last, of which there is at least one.
    unsafe fn pop(&mut self) -> u64;
}

/// Returns the most entries of a stack in a hierarchy with this number of levels of nodes: all children but one, and the first entry.
pub const fn stack_len(height: u32) -> usize {
    (WIDTH - 1) * height as usize + 1
}

/// A subtree, and how near it is: infinite if nothing in it counts.
type Entry = (f32, Subtree);

/// The first entry of a stack is before every limit, and says that the traversal has ended.
const LAST: Entry = (f32::NEG_INFINITY, Subtree::ENDED);

/// Puts the entry that comes first before the other.
#[inline(always)]
fn in_order(a: Entry, b: Entry) -> (Entry, Entry) {
    if b.0 < a.0 { (b, a) } else { (a, b) }
}

/// Adds a subtree to the stack, unless nothing in it counts.
#[inline(always)]
unsafe fn push(stack: &mut impl Stack, (near, subtree): Entry) {
    if near < f32::INFINITY {
        stack.push(join([subtree.0, near.to_bits(), 0, 0]));
    }
}

/// Makes the stack of a traversal that begins.
#[inline(always)]
pub(super) unsafe fn begin(stack: &mut impl Stack) {
    stack.clear();
    push(stack, LAST);
}

/// Takes the next subtree that is not farther than the limit; [`Subtree::ENDED`] if there is none.
#[inline(always)]
pub(super) unsafe fn next(stack: &mut impl Stack, limit: f32) -> Subtree {
    loop {
        let [subtree, near, ..] = split(stack.pop());
        // Nothing is beyond a limit that is NaN, and the last entry not beyond any.
        let is_beyond = f32::from_bits(near) > limit;
        if !is_beyond {
            return Subtree(subtree);
        }
    }
}

/// Returns the nearest child of a node, [`Subtree::NONE`] if nothing in it counts. Puts the others on the stack, the nearest last.
#[inline(always)]
pub(super) unsafe fn nearest_child(
    node: Node,
    stack: &mut impl Stack,
    near: impl Fn(Aabb) -> f32,
) -> Subtree {
    let entry = |i: usize| {
        let near = near(node.boxes[i]);
        (if node.children[i] == Subtree::NONE { f32::INFINITY } else { near }, node.children[i])
    };
    let ((a, b), (c, d)) = (in_order(entry(0), entry(1)), in_order(entry(2), entry(3)));
    let ((a, c), (b, d)) = (in_order(a, c), in_order(b, d));
    let (b, c) = in_order(b, c);
    push(stack, d);
    push(stack, c);
    push(stack, b);
    if a.0 < f32::INFINITY { a.1 } else { Subtree::NONE }
}

/// The entries of the threads' stacks that are in shared memory.
#[repr(C)]
pub struct StackSmem {
    entries: [[u64; THREADS]; BVH_STACK],
}

/// A stack in shared memory, and beyond its room in global memory.
pub(super) struct ThreadStack<'a> {
    len: usize,
    near: SharedSlice<'a, u64>,
    deep: SliceMut<'a, u64>,
}

impl<'a> ThreadStack<'a> {
    /// Makes an empty stack. `deep` is for stacks of more than [`BVH_STACK`] entries: further entries of all threads, then the next ones.
    #[inline(always)]
    pub(super) unsafe fn new(smem: *mut StackSmem, deep: SliceMut<'a, u64>) -> Self {
        Self { len: 0, near: shared_field!(smem, entries), deep }
    }

    #[inline(always)]
    unsafe fn deep_index(&self) -> usize {
        (self.len - BVH_STACK) * (thread::grid_dim_x() as usize * THREADS) + thread::index_1d_u64() as usize
    }
}

impl Stack for ThreadStack<'_> {
    #[inline(always)]
    unsafe fn clear(&mut self) {
        self.len = 0;
    }
    #[inline(always)]
    unsafe fn push(&mut self, entry: u64) {
        if self.len < BVH_STACK {
            self.near.store(self.len * THREADS + thread::thread_idx_x() as usize, entry);
        } else {
            self.deep.store(self.deep_index(), entry);
        }
        self.len += 1;
    }
    #[inline(always)]
    unsafe fn pop(&mut self) -> u64 {
        self.len -= 1;
        if self.len < BVH_STACK {
            self.near.load(self.len * THREADS + thread::thread_idx_x() as usize)
        } else {
            // Of another kind, so that the compiler does not join both loads to one of an unknown address space.
            self.deep.load_streaming(self.deep_index())
        }
    }
}

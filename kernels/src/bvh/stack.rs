//! The use of stacks by traversals of a hierarchy.

use super::node::WIDTH;
use super::subtree::Subtree;
use crate::rays::stack::{Entry, Stack};

/// The bits of a number that say which child of a node it is of.
const CHILD: u32 = WIDTH as u32 - 1;

/// Returns the most entries of a stack in a hierarchy with this number of levels of nodes: all children but one.
pub const fn stack_len(height: u32) -> usize {
    (WIDTH - 1) * height as usize
}

/// Takes the next subtree that is not farther than the limit; [`Subtree::ENDED`] if there is none.
#[inline(always)]
pub(super) unsafe fn next(stack: &mut impl Stack, limit: f32) -> Subtree {
    while let Some(Entry { at, subtree }) = stack.pop() {
        // Nothing is beyond a limit that is NaN.
        let is_beyond = f32::from_bits(at.to_bits() & !CHILD) > limit;
        if !is_beyond {
            return Subtree(subtree);
        }
    }
    Subtree::ENDED
}

/// Returns the nearest child of a node, [`Subtree::NONE`] if nothing in it counts. Puts the others on the stack, the nearest last. `near` tells how
/// near the children are, by numbers that are not negative, infinity for those in which nothing counts.
///
/// A number and its child are one integer: its last bits, which are the child, are not needed.
#[inline(always)]
pub(super) unsafe fn nearest_child(
    children: [Subtree; WIDTH],
    near: [f32; WIDTH],
    stack: &mut impl Stack,
) -> Subtree {
    let key = |child: usize| near[child].to_bits() & !CHILD | child as u32;
    let [e0, e1, e2, e3] = children;
    let pick = |key: u32| {
        let (x, y) = if key & 1 != 0 { (e1, e3) } else { (e0, e2) };
        if key & 2 != 0 { y } else { x }
    };
    let in_order = |a: u32, b: u32| (a.min(b), a.max(b));
    let ((a, b), (c, d)) = (in_order(key(0), key(1)), in_order(key(2), key(3)));
    let ((a, c), (b, d)) = (in_order(a, c), in_order(b, d));
    let (b, c) = in_order(b, c);
    let entry = |key: u32| Entry { at: f32::from_bits(key), subtree: pick(key).0 };
    stack.push_near([entry(d), entry(c), entry(b)]);
    if f32::from_bits(a) < f32::INFINITY { pick(a) } else { Subtree::NONE }
}

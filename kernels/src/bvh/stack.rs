//! The use of stacks by traversals of a hierarchy.

use super::node::WIDTH;
use super::subtree::Subtree;
use crate::rays::stack::{Entry, Stack};

/// The first entry of a stack is before every limit, and says that the traversal has ended.
const LAST: Entry = Entry { at: f32::NEG_INFINITY, subtree: Subtree::ENDED.0 };

/// Returns the most entries of a stack in a hierarchy with this number of levels of nodes: all children but one, and the first entry.
pub const fn stack_len(height: u32) -> usize {
    (WIDTH - 1) * height as usize + 1
}

/// Puts the entry that comes first before the other.
#[inline(always)]
fn in_order(a: Entry, b: Entry) -> (Entry, Entry) {
    if b.at < a.at { (b, a) } else { (a, b) }
}

/// Makes the stack of a traversal that begins.
#[inline(always)]
pub(super) unsafe fn begin(stack: &mut impl Stack) {
    stack.clear();
    stack.push(LAST);
}

/// Takes the next subtree that is not farther than the limit; [`Subtree::ENDED`] if there is none.
#[inline(always)]
pub(super) unsafe fn next(stack: &mut impl Stack, limit: f32) -> Subtree {
    loop {
        let Entry { at, subtree } = stack.pop();
        // Nothing is beyond a limit that is NaN, and the last entry not beyond any.
        let is_beyond = at > limit;
        if !is_beyond {
            return Subtree(subtree);
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
    let entry = |i: usize| Entry { at: near[i], subtree: children[i].0 };
    let ((a, b), (c, d)) = (in_order(entry(0), entry(1)), in_order(entry(2), entry(3)));
    let ((a, c), (b, d)) = (in_order(a, c), in_order(b, d));
    let (b, c) = in_order(b, c);
    stack.push_near([d, c, b]);
    if a.at < f32::INFINITY { Subtree(a.subtree) } else { Subtree::NONE }
}

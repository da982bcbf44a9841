//! One query's walk through the tree.

use kauri_kernels::thread::coord::{Coord, dist2};

use super::best::Best;

/// A walk never waits at more than one far child a level.
const MAX_LEVELS: usize = 32;

/// A tree: nodes in level order and their ids.
#[derive(Clone, Copy)]
pub(super) struct Nodes<'a, C, const D: usize> {
    pub(super) points: &'a [[C; D]],
    pub(super) ids: &'a [u32],
}

/// The far children that a walk has yet to visit; kept from query to query for its memory.
pub(super) struct Stack<C, const D: usize>([Waiting<C, D>; MAX_LEVELS]);

/// A far child to visit later.
#[derive(Clone, Copy)]
struct Waiting<C, const D: usize> {
    node: usize,
    axis: usize,
    /// Distance from the query to the child's region, axis by axis.
    offsets: [C; D],
    /// Their squared length: no point of the region is nearer.
    bound: C,
}

impl<C: Coord, const D: usize> Stack<C, D> {
    pub(super) fn new() -> Self {
        Self([Waiting { node: 0, axis: 0, offsets: [C::ZERO; D], bound: C::ZERO }; MAX_LEVELS])
    }
}

/// Offers every point that may be among the best, subtrees on the query's side of a plane first.
///
/// A far child is skipped only if its bound is greater than the worst of the best: at equal distance a smaller id may be
/// there. The bound is summed in the order of the distances, and rounding is monotone, so it never exceeds the computed
/// distance of a point in the region.
#[inline(always)]
pub(super) fn walk<C: Coord, const D: usize>(
    tree: Nodes<'_, C, D>,
    query: &[C; D],
    Stack(stack): &mut Stack<C, D>,
    best: &mut impl Best<C>,
) {
    let (mut node, mut axis, mut offsets) = (0, 0, [C::ZERO; D]);
    let mut waiting = 0;
    loop {
        while let Some(point) = tree.points.get(node) {
            let distance = dist2(D, |a| query[a], |a| point[a]);
            if distance <= best.worst() {
                best.offer(distance, tree.ids[node]);
            }
            let offset = query[axis] - point[axis];
            let is_right = usize::from(offset > C::ZERO);
            let far = 2 * node + 2 - is_right;
            node = 2 * node + 1 + is_right;
            let next_axis = if axis + 1 == D { 0 } else { axis + 1 };
            if far < tree.points.len() {
                let mut far_offsets = offsets;
                far_offsets[axis] = offset;
                let bound = dist2(D, |a| far_offsets[a], |_| C::ZERO);
                if bound <= best.worst() {
                    stack[waiting] = Waiting { node: far, axis: next_axis, offsets: far_offsets, bound };
                    waiting += 1;
                }
            }
            axis = next_axis;
        }
        loop {
            if waiting == 0 {
                return;
            }
            waiting -= 1;
            let next = &stack[waiting];
            if next.bound <= best.worst() {
                (node, axis, offsets) = (next.node, next.axis, next.offsets);
                break;
            }
        }
    }
}

/// The node on level `levels` that a walk for `query` would come to first; the nodes of the levels above must all be in
/// the tree.
pub(super) fn descend<C: Coord, const D: usize>(tree: Nodes<'_, C, D>, query: &[C; D], levels: u32) -> usize {
    let (mut node, mut axis) = (0, 0);
    for _ in 0..levels {
        node = 2 * node + 1 + usize::from(query[axis] - tree.points[node][axis] > C::ZERO);
        axis = if axis + 1 == D { 0 } else { axis + 1 };
    }
    node
}

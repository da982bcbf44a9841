//! One query's walk through the tree.

use kauri_kernels::thread::coord::{Coord, dist2};
use kauri_kernels::thread::measure::{along, along_to_range};

use super::best::Best;
use crate::kdtree::query::Wanted;

/// A walk never waits at more than one far child a level.
const MAX_LEVELS: usize = 32;

/// A tree: nodes in level order and their ids.
#[derive(Clone, Copy)]
pub(super) struct Nodes<'a, C, const D: usize> {
    pub(super) points: &'a [[C; D]],
    pub(super) ids: &'a [u32],
    /// The axes of nodes that have children; empty if they go by levels.
    pub(super) axes: &'a [u8],
}

impl<C, const D: usize> Nodes<'_, C, D> {
    /// The axis of a node; `level_axis` is that of its level.
    #[inline(always)]
    pub(super) fn axis(&self, node: usize, level_axis: usize) -> usize {
        // Of what has no children any will do.
        if self.axes.is_empty() { level_axis } else { self.axes.get(node).map_or(0, |&axis| axis as usize) }
    }
}

/// The axis of the level below that of another.
#[inline(always)]
pub(super) fn next_axis<const D: usize>(level_axis: usize) -> usize {
    if level_axis + 1 == D { 0 } else { level_axis + 1 }
}

/// The far children that a walk has yet to visit; kept from query to query for its memory.
pub(super) struct Stack<C, const D: usize>([Waiting<C, D>; MAX_LEVELS]);

/// A far child to visit later.
#[derive(Clone, Copy)]
struct Waiting<C, const D: usize> {
    node: usize,
    level_axis: usize,
    /// Distance from the query to the child's region, axis by axis.
    offsets: [C; D],
    /// Their squared length: no point of the region is nearer.
    bound: C,
}

impl<C: Coord, const D: usize> Stack<C, D> {
    pub(super) fn new() -> Self {
        Self([Waiting { node: 0, level_axis: 0, offsets: [C::ZERO; D], bound: C::ZERO }; MAX_LEVELS])
    }
}

/// How distances are measured, and which points a query takes.
pub(super) struct Rules<'a, C, const D: usize> {
    pub(super) wanted: &'a Wanted<C>,
    pub(super) periods: [C; D],
    /// The box of all points.
    pub(super) low: [C; D],
    pub(super) high: [C; D],
}

impl<'a, C: Coord, const D: usize> Rules<'a, C, D> {
    /// Of queries to points between two corners.
    pub(super) fn new(wanted: &'a Wanted<C>, [low, high]: [[C; D]; 2]) -> Self {
        let periods = std::array::from_fn(|axis| wanted.periods.get(axis).copied().unwrap_or(C::ZERO));
        Self { wanted, periods, low, high }
    }

    /// The corners of all that there is, as far as they are known.
    pub(super) fn corners(&self) -> [[C; D]; 2] {
        [self.low, self.high]
    }

    pub(super) fn distance(&self, query: &[C; D], point: &[C; D]) -> C {
        self.wanted.norm.put_together(D, |axis| along(query[axis], point[axis], self.periods[axis]))
    }

    /// The least distance along an axis to what lies beyond a plane.
    fn beyond(&self, query: &[C; D], axis: usize, plane: C) -> C {
        let (a, period) = (query[axis], self.periods[axis]);
        if period == C::ZERO {
            return (a - plane).abs();
        }
        if a > plane {
            along_to_range(a, self.low[axis], plane, period)
        } else {
            along_to_range(a, plane, self.high[axis], period)
        }
    }

    pub(super) fn takes(&self, id: u32, except: u32) -> bool {
        id != except && self.wanted.mask.as_ref().is_none_or(|mask| mask.takes(id))
    }
}

/// Offers every point that may be among the best, subtrees on the query's side of a plane first. If the walk is `PLAIN`, the
/// distance is the Euclidean, without periods, and the query takes all points.
///
/// A far child is skipped only if its bound is greater than the worst of the best: at equal distance a smaller id may be
/// there. The bound is summed in the order of the distances, and rounding is monotone, so it never exceeds the computed
/// distance of a point in the region.
#[inline(always)]
pub(super) fn walk<C: Coord, const D: usize, const PLAIN: bool>(
    tree: Nodes<'_, C, D>,
    rules: &Rules<'_, C, D>,
    query: &[C; D],
    except: u32,
    Stack(stack): &mut Stack<C, D>,
    best: &mut impl Best<C>,
) {
    let (mut node, mut level_axis, mut offsets) = (0, 0, [C::ZERO; D]);
    let mut waiting = 0;
    loop {
        while let Some(point) = tree.points.get(node) {
            let axis = tree.axis(node, level_axis);
            let distance =
                if PLAIN { dist2(D, |a| query[a], |a| point[a]) } else { rules.distance(query, point) };
            if distance <= best.worst() && (PLAIN || rules.takes(tree.ids[node], except)) {
                best.offer(distance, tree.ids[node]);
            }
            let offset = query[axis] - point[axis];
            let is_right = usize::from(offset > C::ZERO);
            let far = 2 * node + 2 - is_right;
            node = 2 * node + 1 + is_right;
            level_axis = next_axis::<D>(level_axis);
            if far < tree.points.len() {
                let mut far_offsets = offsets;
                far_offsets[axis] = if PLAIN { offset } else { rules.beyond(query, axis, point[axis]) };
                let bound = if PLAIN {
                    dist2(D, |a| far_offsets[a], |_| C::ZERO)
                } else {
                    rules.wanted.norm.put_together(D, |a| far_offsets[a])
                };
                if bound <= best.worst() {
                    stack[waiting] = Waiting { node: far, level_axis, offsets: far_offsets, bound };
                    waiting += 1;
                }
            }
        }
        loop {
            if waiting == 0 {
                return;
            }
            waiting -= 1;
            let next = &stack[waiting];
            if next.bound <= best.worst() {
                (node, level_axis, offsets) = (next.node, next.level_axis, next.offsets);
                break;
            }
        }
    }
}

/// The node on level `levels` that a walk for `query` would come to first; the nodes of the levels above must all be in
/// the tree.
pub(super) fn descend<C: Coord, const D: usize>(tree: Nodes<'_, C, D>, query: &[C; D], levels: u32) -> usize {
    let (mut node, mut level_axis) = (0, 0);
    for _ in 0..levels {
        let axis = tree.axis(node, level_axis);
        node = 2 * node + 1 + usize::from(query[axis] - tree.points[node][axis] > C::ZERO);
        level_axis = next_axis::<D>(level_axis);
    }
    node
}

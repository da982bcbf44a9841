//! The traversal of a tree by one query.

use kauri_kernels::query::axes::AxisCycle;
use kauri_kernels::query::left_balanced::{full_tree, num_levels};
use kauri_kernels::thread::coord::{Coord, Float};
use kauri_kernels::thread::point::widen;

use crate::query::cpu::best::Best;
use crate::query::cpu::boxes::BoxesOf;
use crate::query::cpu::rules::PointQuery;
use crate::query::cpu::within::{RangePredicate, RangeVisitor, Share};

/// Number of levels of subtrees that are scanned without pruning: fewer branches make up for more distances.
const SMALL_LEVELS: u32 = 3;
/// Maximum number of levels; at most one far child per level is pending.
const MAX_LEVELS: usize = 32;
/// Number of levels down to the start buckets: the nodes of these levels fit in a core's cache.
const MAX_START_LEVELS: u32 = 15;

/// A tree that queries traverse: the [`Nodes`] of a k-d tree, or the cells of a quadtree (`quadtree/host/traversal.rs`).
pub(crate) trait Traversable<C: Coord, const D: usize>: Copy + Send + Sync {
    /// Working memory that is reused from query to query.
    type Stack: Default;

    /// The points in the order of the tree.
    fn points(&self) -> &[[C; D]];

    /// Returns a number that is equal or similar for locations near each other, by which queries are sorted. There are no buckets on the CPU.
    fn start_bucket(&self, location: &[C; D]) -> u32;

    /// Offers every point that may be among the best, subtrees on the query's side of a plane first. `PLAIN` requires plain rules and no
    /// excluded point.
    ///
    /// A far child is skipped only if its bound is greater than the worst distance: at equal distance it may have a smaller id.
    fn nearest<B: Best<C::Distance>, const PLAIN: bool>(
        self,
        query: PointQuery<'_, C, D>,
        stack: &mut Self::Stack,
        best: &mut B,
    );

    /// Visits the points of a row with their distances, in the order of the tree unless they are only counted.
    fn visit_range<L: RangePredicate<C, D>>(
        self,
        predicate: &L,
        row: usize,
        visitor: &mut impl RangeVisitor<C::Distance>,
    );

    /// True only if this tree has every point of the index.
    fn has_all(&self) -> bool;
}

/// A k-d tree: nodes in level order and their ids.
#[derive(Clone, Copy)]
pub(crate) struct Nodes<'a, C, const D: usize> {
    pub(crate) points: &'a [[C; D]],
    pub(crate) ids: &'a [u32],
    /// The axes of nodes that have children; empty if levels split on the axes of `cycle` in turn.
    pub(crate) axes: &'a [u8],
    pub(crate) cycle: AxisCycle,
    /// The last level may have nodes without a point, whose id is `u32::MAX`.
    pub(crate) has_gaps: bool,
    pub(crate) boxes: BoxesOf<'a, C, D>,
}

impl<'a, C, const D: usize> Nodes<'a, C, D> {
    /// Returns the first node of the first level with small subtrees.
    pub(crate) fn first_small(&self) -> usize {
        let levels = num_levels(self.points.len() as u32).saturating_sub(SMALL_LEVELS);
        full_tree(levels) as usize
    }

    /// Iterates over the nodes of a small subtree in in-order sequence; none if the tree has no node `root`.
    #[inline(always)]
    pub(crate) fn small(&self, root: usize) -> impl Iterator<Item = usize> + use<'a, C, D> {
        let Self { ids, has_gaps, .. } = *self;
        // In in-order sequence, position i = 2^z (2j + 1) of a full tree, from 1, is node j of the level z above the last.
        let node = move |i: usize| {
            let z = i.trailing_zeros();
            ((root + 1) << (SMALL_LEVELS - 1 - z)) - 1 + (i >> (z + 1))
        };
        (1..1 << SMALL_LEVELS)
            .map(node)
            .filter(move |&node| node < ids.len() && !(has_gaps && ids[node] == u32::MAX))
    }

    /// True if both subtrees have a box, and the least id of the first is less than that of the second.
    #[inline(always)]
    fn has_smaller_id(&self, node: usize, than: usize) -> bool {
        let least_id = |node| self.boxes.of(node).map(|subtree| subtree.least_id);
        matches!((least_id(node), least_id(than)), (Some(id), Some(than)) if id < than)
    }

    /// Returns the split axis of a node; `level_axis` is the axis of its level.
    #[inline(always)]
    pub(crate) fn axis(&self, node: usize, level_axis: usize) -> usize {
        // Nodes without children have no axis; any will do.
        if self.axes.is_empty() { level_axis } else { self.axes.get(node).map_or(0, |&axis| axis as usize) }
    }
}

/// The pending far children of a traversal.
pub(crate) struct Stack<F, const D: usize>([Pending<F, D>; MAX_LEVELS]);

/// A pending far child.
#[derive(Clone, Copy)]
struct Pending<F, const D: usize> {
    node: usize,
    level_axis: usize,
    /// Distance from the query to the child's region, axis by axis.
    offsets: [F; D],
    /// The distance of these offsets: no point of the region is nearer.
    bound: F,
}

impl<F: Float, const D: usize> Default for Stack<F, D> {
    fn default() -> Self {
        Self([Pending { node: 0, level_axis: 0, offsets: [F::ZERO; D], bound: F::ZERO }; MAX_LEVELS])
    }
}

impl<C: Coord, const D: usize> Traversable<C, D> for Nodes<'_, C, D> {
    type Stack = Stack<C::Distance, D>;

    fn points(&self) -> &[[C; D]] {
        self.points
    }

    /// The node on level [`MAX_START_LEVELS`] whose cell has the location.
    fn start_bucket(&self, location: &[C; D]) -> u32 {
        let levels = MAX_START_LEVELS.min(num_levels(self.points.len() as u32) - 1);
        let (mut node, mut level_axis) = (0, self.cycle.first());
        for _ in 0..levels {
            let axis = self.axis(node, level_axis);
            node = 2 * node + 1 + usize::from(location[axis] > self.points[node][axis]);
            level_axis = self.cycle.next(level_axis);
        }
        node as u32
    }

    #[inline(always)]
    fn nearest<B: Best<C::Distance>, const PLAIN: bool>(
        self,
        query: PointQuery<'_, C, D>,
        Stack(stack): &mut Stack<C::Distance, D>,
        best: &mut B,
    ) {
        let PointQuery { point, rules, .. } = query;
        let (mut node, mut level_axis, mut offsets) = (0, self.cycle.first(), [C::Distance::ZERO; D]);
        let mut pending = 0;
        // True if no point of the subtree is nearer than the worst of the best: then only a smaller id counts.
        let mut by_ids = false;
        let first_small = self.first_small();
        loop {
            while node < first_small {
                query.offer::<PLAIN>(self.points, self.ids, node, best);
                let axis = self.axis(node, level_axis);
                let plane = self.points[node][axis];
                let is_right = usize::from(point[axis] > plane);
                let mut near = 2 * node + 1 + is_right;
                let mut far = 2 * node + 2 - is_right;
                level_axis = self.cycle.next(level_axis);
                if far < self.points.len() {
                    let (mut beyond, mut bound) = rules.beyond::<PLAIN>(point, offsets, axis, plane.widen());
                    if bound <= best.worst() {
                        if by_ids && self.has_smaller_id(far, near) {
                            // The swapped child has a box, which gives its distance when it is visited.
                            (near, far, bound) = (far, near, C::Distance::ZERO);
                            std::mem::swap(&mut beyond, &mut offsets);
                        }
                        stack[pending] = Pending { node: far, level_axis, offsets: beyond, bound };
                        pending += 1;
                    }
                }
                node = near;
            }
            for node in self.small(node) {
                query.offer::<PLAIN>(self.points, self.ids, node, best);
            }
            loop {
                if pending == 0 {
                    return;
                }
                pending -= 1;
                let next = &stack[pending];
                if next.bound > best.worst() {
                    continue;
                }
                if let Some(subtree) = self.boxes.of(next.node) {
                    let distance = rules.distance_to_box::<PLAIN>(point, &subtree.corners.map(widen));
                    if !best.may_take(distance, subtree.least_id) {
                        continue;
                    }
                    by_ids = distance == best.worst();
                }
                (node, level_axis, offsets) = (next.node, next.level_axis, next.offsets);
                break;
            }
        }
    }

    fn visit_range<L: RangePredicate<C, D>>(
        self,
        predicate: &L,
        row: usize,
        visitor: &mut impl RangeVisitor<C::Distance>,
    ) {
        let first_small = self.first_small();
        let mut traversal = RangeTraversal { tree: self, first_small, predicate, row, visitor };
        traversal.subtree(0, self.cycle.first(), L::EVERYWHERE);
    }

    fn has_all(&self) -> bool {
        // A single point may be the top node of a tree over several devices, whose other points are elsewhere.
        !self.has_gaps && self.points.len() > 1
    }
}

/// A range query's traversal in in-order sequence.
struct RangeTraversal<'a, C, L, S, const D: usize> {
    tree: Nodes<'a, C, D>,
    first_small: usize,
    predicate: &'a L,
    row: usize,
    visitor: &'a mut S,
}

impl<C: Coord, L: RangePredicate<C, D>, S: RangeVisitor<C::Distance>, const D: usize>
    RangeTraversal<'_, C, L, S, D>
{
    /// Visits the points of a node's subtree; `level_axis` is the axis of the node's level.
    fn subtree(&mut self, node: usize, level_axis: usize, region: L::Region) {
        if let Some(subtree) = self.tree.boxes.of(node) {
            match self.predicate.share(self.row, &subtree.corners.map(widen)) {
                Share::None => return,
                Share::All if S::COUNTS => return self.visitor.count(subtree.len),
                _ => {}
            }
        }
        if node >= self.first_small {
            return self.tree.small(node).for_each(|node| self.visit(node));
        }
        let (axis, next) = (self.tree.axis(node, level_axis), self.tree.cycle.next(level_axis));
        let plane = self.tree.points[node][axis].widen();
        let [left, right] = self.predicate.parts(self.row, region, axis, plane);
        if let Some(region) = left {
            self.subtree(2 * node + 1, next, region);
        }
        self.visit(node);
        if let Some(region) = right {
            self.subtree(2 * node + 2, next, region);
        }
    }

    #[inline(always)]
    fn visit(&mut self, node: usize) {
        let id = self.tree.ids[node];
        if let Some(distance) = self.predicate.distance(self.row, &self.tree.points[node], id) {
            self.visitor.point(id, distance);
        }
    }
}

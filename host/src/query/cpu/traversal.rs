//! One query's walk through a tree.

use kauri_kernels::query::left_balanced::{full_tree, num_levels};
use kauri_kernels::thread::coord::{Coord, dist2};
use kauri_kernels::thread::measure::{Norm, along, along_to_range};

use crate::query::cpu::best::Best;
use crate::query::cpu::boxes::BoxesOf;
use crate::query::cpu::within::{RangePredicate, RangeVisitor, Share};
use crate::query::options::ValidatedOptions;

/// Levels of subtrees whose nodes are looked at one after the other: fewer branches make up for more distances.
const SMALL_LEVELS: u32 = 3;
/// A walk never waits at more than one far child a level.
const MAX_LEVELS: usize = 32;
/// Levels of the nodes that queries are ordered by: those above fit in a core's cache.
const MAX_HOME_LEVELS: u32 = 15;

/// A tree that walks go through.
pub(crate) trait Traversable<C: Coord, const D: usize>: Copy + Sync {
    /// What a walk keeps from query to query for its memory.
    type Stack: Default;

    /// The points in the order of the tree.
    fn points(&self) -> &[[C; D]];

    /// A number that places near each other have in common, or nearly.
    fn start_bucket(&self, place: &[C; D]) -> u32;

    /// Offers every point that may be among the best, subtrees on the query's side of a plane first. If the walk is `PLAIN`, the
    /// rules are, and no point is left out.
    ///
    /// A far child is skipped only if its bound is greater than the worst of the best: at equal distance a smaller id may be there.
    fn nearest<B: Best<C>, const PLAIN: bool>(
        self,
        rules: &Rules<'_, C, D>,
        query: &[C; D],
        except: u32,
        stack: &mut Self::Stack,
        best: &mut B,
    );

    /// Shows the points of a row, with their distances, in the order of the tree unless they are only counted.
    fn visit_range<L: RangePredicate<C, D>>(self, look: &L, row: usize, show: &mut impl RangeVisitor<C>);

    /// True only if every point of the index is in this tree.
    fn has_all(&self) -> bool;
}

/// A k-d tree: nodes in level order and their ids.
#[derive(Clone, Copy)]
pub(crate) struct Nodes<'a, C, const D: usize> {
    pub(crate) points: &'a [[C; D]],
    pub(crate) ids: &'a [u32],
    /// The axes of nodes that have children; empty if they go by levels.
    pub(crate) axes: &'a [u8],
    /// On the last level there may be nodes without a point, whose id is the largest.
    pub(crate) has_gaps: bool,
    pub(crate) boxes: BoxesOf<'a, C, D>,
}

impl<'a, C, const D: usize> Nodes<'a, C, D> {
    /// The first node of the level from which on subtrees are small.
    pub(crate) fn first_small(&self) -> usize {
        let levels = num_levels(self.points.len() as u32).saturating_sub(SMALL_LEVELS);
        full_tree(levels) as usize
    }

    /// The nodes of a small subtree in order; none if there is no such node.
    #[inline(always)]
    pub(crate) fn small(&self, root: usize) -> impl Iterator<Item = usize> + use<'a, C, D> {
        let Self { ids, has_gaps, .. } = *self;
        // Place i in the order of a full tree, from 1, is 2^z (2j + 1): node j of the level z above the last.
        let node = move |i: usize| {
            let z = i.trailing_zeros();
            ((root + 1) << (SMALL_LEVELS - 1 - z)) - 1 + (i >> (z + 1))
        };
        (1..1 << SMALL_LEVELS)
            .map(node)
            .filter(move |&node| node < ids.len() && !(has_gaps && ids[node] == u32::MAX))
    }

    /// True if both subtrees have a box, and the first has a smaller id than all of the second.
    #[inline(always)]
    fn has_smaller_id(&self, node: usize, than: usize) -> bool {
        let least_id = |node| self.boxes.of(node).map(|subtree| subtree.least_id);
        matches!((least_id(node), least_id(than)), (Some(id), Some(than)) if id < than)
    }

    /// The axis of a node; `level_axis` is that of its level.
    #[inline(always)]
    pub(crate) fn axis(&self, node: usize, level_axis: usize) -> usize {
        // Of what has no children any will do.
        if self.axes.is_empty() { level_axis } else { self.axes.get(node).map_or(0, |&axis| axis as usize) }
    }
}

/// The axis of the level below that of another.
#[inline(always)]
pub(crate) fn next_axis<const D: usize>(level_axis: usize) -> usize {
    if level_axis + 1 == D { 0 } else { level_axis + 1 }
}

/// The far children that a walk has yet to visit.
pub(crate) struct Stack<C, const D: usize>([Waiting<C, D>; MAX_LEVELS]);

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

impl<C: Coord, const D: usize> Default for Stack<C, D> {
    fn default() -> Self {
        Self([Waiting { node: 0, level_axis: 0, offsets: [C::ZERO; D], bound: C::ZERO }; MAX_LEVELS])
    }
}

/// How distances are measured, and which points a query takes.
#[derive(Clone)]
pub(crate) struct Rules<'a, C, const D: usize> {
    pub(crate) wanted: &'a ValidatedOptions<C>,
    pub(crate) periods: [C; D],
    /// The box of all points.
    pub(crate) low: [C; D],
    pub(crate) high: [C; D],
}

impl<'a, C: Coord, const D: usize> Rules<'a, C, D> {
    /// Of queries to points between two corners.
    pub(crate) fn new(wanted: &'a ValidatedOptions<C>, [low, high]: [[C; D]; 2]) -> Self {
        let periods = std::array::from_fn(|axis| wanted.periods.get(axis).copied().unwrap_or(C::ZERO));
        Self { wanted, periods, low, high }
    }

    /// True if distances are Euclidean, nothing repeats, and all points may be taken.
    pub(crate) fn are_plain(&self) -> bool {
        self.wanted.is_euclidean() && self.wanted.mask.is_none()
    }

    /// The distance of a point; rules that are `PLAIN` need not be asked.
    #[inline(always)]
    pub(crate) fn distance<const PLAIN: bool>(&self, query: &[C; D], point: &[C; D]) -> C {
        if PLAIN {
            dist2(D, |axis| query[axis], |axis| point[axis])
        } else {
            self.wanted.norm.put_together(D, |axis| along(query[axis], point[axis], self.periods[axis]))
        }
    }

    /// The part of a region that lies beyond a plane: its distances axis by axis, by those of the region, and together. No point
    /// of it is nearer: they are put together as distances are, and rounding is monotone.
    #[inline(always)]
    pub(crate) fn beyond<const PLAIN: bool>(
        &self,
        query: &[C; D],
        mut offsets: [C; D],
        axis: usize,
        plane: C,
    ) -> ([C; D], C) {
        let (a, period) = (query[axis], self.periods[axis]);
        if PLAIN {
            offsets[axis] = a - plane;
            return (offsets, dist2(D, |axis| offsets[axis], |_| C::ZERO));
        }
        offsets[axis] = match period > C::ZERO {
            false => (a - plane).abs(),
            true if a > plane => along_to_range(a, self.low[axis], plane, period),
            true => along_to_range(a, plane, self.high[axis], period),
        };
        (offsets, self.wanted.norm.put_together(D, |axis| offsets[axis]))
    }

    /// The least distance to anything between two corners.
    #[inline(always)]
    pub(crate) fn distance_to_box<const PLAIN: bool>(&self, query: &[C; D], [low, high]: &[[C; D]; 2]) -> C {
        if PLAIN {
            let along = |axis| along_to_range(query[axis], low[axis], high[axis], C::ZERO);
            Norm::Euclidean.put_together(D, along)
        } else {
            // A cell may reach so far beyond all points that it overlaps its image a period away.
            let along = |axis: usize| {
                let (low, high) = (low[axis].max(self.low[axis]), high[axis].min(self.high[axis]));
                along_to_range(query[axis], low, high, self.periods[axis])
            };
            self.wanted.norm.put_together(D, along)
        }
    }

    /// A distance that no point between two corners is beyond.
    #[inline(always)]
    pub(crate) fn farthest_in_box(&self, query: &[C; D], [low, high]: &[[C; D]; 2]) -> C {
        // With a period points are no farther than without.
        let along = |axis: usize| (query[axis] - low[axis]).abs().max((query[axis] - high[axis]).abs());
        self.wanted.norm.put_together(D, along)
    }

    #[inline(always)]
    pub(crate) fn takes<const PLAIN: bool>(&self, id: u32, except: u32) -> bool {
        PLAIN || id != except && self.wanted.mask.as_ref().is_none_or(|mask| mask.takes(id))
    }
}

impl<C: Coord, const D: usize> Traversable<C, D> for Nodes<'_, C, D> {
    type Stack = Stack<C, D>;

    fn points(&self) -> &[[C; D]] {
        self.points
    }

    /// The node on the last level of those whose nodes fit in a core's cache that a walk would come to first.
    fn start_bucket(&self, place: &[C; D]) -> u32 {
        let levels = MAX_HOME_LEVELS.min(num_levels(self.points.len() as u32) - 1);
        let (mut node, mut level_axis) = (0, 0);
        for _ in 0..levels {
            let axis = self.axis(node, level_axis);
            node = 2 * node + 1 + usize::from(place[axis] - self.points[node][axis] > C::ZERO);
            level_axis = next_axis::<D>(level_axis);
        }
        node as u32
    }

    #[inline(always)]
    fn nearest<B: Best<C>, const PLAIN: bool>(
        self,
        rules: &Rules<'_, C, D>,
        query: &[C; D],
        except: u32,
        Stack(stack): &mut Stack<C, D>,
        best: &mut B,
    ) {
        let (mut node, mut level_axis, mut offsets) = (0, 0, [C::ZERO; D]);
        let mut waiting = 0;
        // No point of the subtree is nearer than the last of the best: only a smaller id counts there.
        let mut by_ids = false;
        let first_small = self.first_small();
        loop {
            while node < first_small {
                offer::<C, B, D, PLAIN>(self, rules, query, except, node, best);
                let axis = self.axis(node, level_axis);
                let plane = self.points[node][axis];
                let is_right = usize::from(query[axis] - plane > C::ZERO);
                let mut near = 2 * node + 1 + is_right;
                let mut far = 2 * node + 2 - is_right;
                level_axis = next_axis::<D>(level_axis);
                if far < self.points.len() {
                    let (mut beyond, mut bound) = rules.beyond::<PLAIN>(query, offsets, axis, plane);
                    if bound <= best.worst() {
                        if by_ids && self.has_smaller_id(far, near) {
                            // What waits has a box, which tells how far it is.
                            (near, far, bound) = (far, near, C::ZERO);
                            std::mem::swap(&mut beyond, &mut offsets);
                        }
                        stack[waiting] = Waiting { node: far, level_axis, offsets: beyond, bound };
                        waiting += 1;
                    }
                }
                node = near;
            }
            for node in self.small(node) {
                offer::<C, B, D, PLAIN>(self, rules, query, except, node, best);
            }
            loop {
                if waiting == 0 {
                    return;
                }
                waiting -= 1;
                let next = &stack[waiting];
                if next.bound > best.worst() {
                    continue;
                }
                if let Some(subtree) = self.boxes.of(next.node) {
                    let distance = rules.distance_to_box::<PLAIN>(query, subtree.corners);
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

    fn visit_range<L: RangePredicate<C, D>>(self, look: &L, row: usize, show: &mut impl RangeVisitor<C>) {
        Walk { tree: self, first_small: self.first_small(), look, row, show }.subtree(0, 0, L::EVERYWHERE);
    }

    fn has_all(&self) -> bool {
        // A single point may be the top node of a tree over several devices, whose other points are elsewhere.
        !self.has_gaps && self.points.len() > 1
    }
}

/// Offers the point of a node.
#[inline(always)]
fn offer<C: Coord, B: Best<C>, const D: usize, const PLAIN: bool>(
    tree: Nodes<'_, C, D>,
    rules: &Rules<'_, C, D>,
    query: &[C; D],
    except: u32,
    node: usize,
    best: &mut B,
) {
    let distance = rules.distance::<PLAIN>(query, &tree.points[node]);
    if distance <= best.worst() && rules.takes::<PLAIN>(tree.ids[node], except) {
        best.offer(distance, tree.ids[node]);
    }
}

/// What all steps of a walk in order have in common.
struct Walk<'a, C, L, S, const D: usize> {
    tree: Nodes<'a, C, D>,
    first_small: usize,
    look: &'a L,
    row: usize,
    show: &'a mut S,
}

impl<C: Coord, L: RangePredicate<C, D>, S: RangeVisitor<C>, const D: usize> Walk<'_, C, L, S, D> {
    /// Shows the points of the subtree of a node on a level of `level_axis`.
    fn subtree(&mut self, node: usize, level_axis: usize, region: L::Region) {
        if let Some(subtree) = self.tree.boxes.of(node) {
            match self.look.share(self.row, subtree.corners) {
                Share::None => return,
                Share::All if S::COUNTS => return self.show.count(subtree.len),
                _ => {}
            }
        }
        if node >= self.first_small {
            return self.tree.small(node).for_each(|node| self.show(node));
        }
        let (axis, next) = (self.tree.axis(node, level_axis), next_axis::<D>(level_axis));
        let [left, right] = self.look.parts(self.row, region, axis, self.tree.points[node][axis]);
        if let Some(region) = left {
            self.subtree(2 * node + 1, next, region);
        }
        self.show(node);
        if let Some(region) = right {
            self.subtree(2 * node + 2, next, region);
        }
    }

    #[inline(always)]
    fn show(&mut self, node: usize) {
        let id = self.tree.ids[node];
        if let Some(distance) = self.look.distance(self.row, &self.tree.points[node], id) {
            self.show.point(id, distance);
        }
    }
}

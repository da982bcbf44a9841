//! The traversal of a tree by one query.

use kauri_kernels::query::axes::AxisCycle;
use kauri_kernels::query::buckets::NO_POINT;
use kauri_kernels::thread::coord::{Coord, Float};
use kauri_kernels::thread::point::widen;

use crate::query::cpu::LANES;
use crate::query::cpu::best::Best;
use crate::query::cpu::boxes::BoxesOf;
use crate::query::cpu::buckets::Buckets;
use crate::query::cpu::rules::PointQuery;
use crate::query::cpu::within::{RangePredicate, RangeVisitor, Share};
use std::hint::black_box;

/// Maximum number of levels; at most one far child per level is pending.
const MAX_LEVELS: usize = 32;
/// Number of levels down to the start buckets: the nodes of these levels fit in a core's cache.
const MAX_START_LEVELS: u32 = 15;

/// A tree that queries traverse: the [`Nodes`] of a k-d tree, or the cells of a quadtree (`quadtree/host/traversal.rs`).
pub(crate) trait Traversable<C: Coord, const D: usize>: Copy + Send + Sync {
    /// Working memory that is reused from query to query.
    type Stack: Default;

    /// Number of points, and of slots without one.
    fn num_points(&self) -> usize;

    /// Returns the least and the greatest corner of the bounding box of the points.
    fn bounds(&self) -> [[C; D]; 2];

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

/// A k-d tree.
#[derive(Clone, Copy)]
pub(crate) struct Nodes<'a, C, const D: usize> {
    pub(crate) buckets: Buckets,
    /// The points of the top nodes.
    pub(crate) top: &'a [[C; D]],
    /// The coordinates of the buckets, and [`LANES`] more.
    pub(crate) coords: &'a [C],
    /// The ids of top nodes and buckets; [`NO_POINT`] for nodes without a point.
    pub(crate) ids: &'a [u32],
    /// The axes of nodes that have children; empty if levels split on the axes of `cycle` in turn.
    pub(crate) axes: &'a [u8],
    pub(crate) cycle: AxisCycle,
    pub(crate) has_all: bool,
    pub(crate) boxes: BoxesOf<'a, C, D>,
}

impl<'a, C: Coord, const D: usize> Nodes<'a, C, D> {
    /// Returns the split axis of a node; `level_axis` is the axis of its level.
    #[inline(always)]
    fn axis(&self, node: usize, level_axis: usize) -> usize {
        if self.axes.is_empty() { level_axis } else { self.axes[node].into() }
    }

    /// Returns the bucket of a node.
    #[inline(always)]
    fn bucket(&self, node: usize) -> Bucket<'a, C> {
        let slots = self.buckets.slots(node - self.top.len());
        Bucket { coords: &self.coords[(slots.start - self.top.len()) * D..], ids: &self.ids[slots] }
    }
}

/// The points of a bucket.
#[derive(Clone, Copy)]
pub(crate) struct Bucket<'a, C> {
    /// The coordinates, axis after axis. Others follow, at least [`LANES`].
    pub(crate) coords: &'a [C],
    pub(crate) ids: &'a [u32],
}

impl<C: Coord> Bucket<'_, C> {
    /// Calls `visit` with the number and the distance of each point of the bucket whose distance is at most `bound`, which becomes the
    /// result of `visit`. Points are in the order of the tree. `distance` measures the distance of a point. If `only_nearest`, most points
    /// that are farther than another one are not visited.
    #[inline(always)]
    pub(crate) fn scan<F: Float, const D: usize>(
        &self,
        mut bound: F,
        only_nearest: bool,
        distance: impl Fn(&[C; D]) -> F,
        mut visit: impl FnMut(usize, F) -> F,
    ) {
        let Self { coords, ids } = *self;
        let len = ids.len();
        // Loads ids while the coordinates are loaded, not after them.
        black_box(ids.first().copied());
        for first in (0..len).step_by(LANES) {
            let axes: [&[C; LANES]; D] = std::array::from_fn(|axis| {
                coords[axis * len + first..].first_chunk().expect("coordinates after the last bucket")
            });
            let mut distances = [F::ZERO; LANES];
            for lane in 0..LANES {
                distances[lane] = distance(&std::array::from_fn(|axis| axes[axis][lane]));
            }
            // A byte of each lane. A comparison of all lanes has no branches.
            let near =
                |bound: F| u64::from_le_bytes(std::array::from_fn(|lane| (distances[lane] <= bound).into()));
            // The last lanes may have coordinates of other points.
            let valid = u64::MAX >> (u64::BITS - 8 * (len - first).min(LANES) as u32);
            let mut lanes = near(bound) & valid;
            if only_nearest && lanes != 0 && valid == u64::MAX {
                let mut least = distances;
                for half in [LANES / 2, LANES / 4, LANES / 8] {
                    for lane in 0..half {
                        let (a, b) = (least[lane], least[lane + half]);
                        least[lane] = if a < b { a } else { b };
                    }
                }
                lanes &= near(least[0]);
            }
            while lanes != 0 {
                let lane = lanes.trailing_zeros() as usize / 8;
                lanes &= lanes - 1;
                let distance = distances[lane];
                if distance <= bound {
                    bound = visit(first + lane, distance);
                }
            }
        }
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

    fn num_points(&self) -> usize {
        self.buckets.num_points()
    }

    fn bounds(&self) -> [[C; D]; 2] {
        *self.boxes.of(0).corners
    }

    /// The node on level [`MAX_START_LEVELS`], or the bucket, whose cell has the location.
    fn start_bucket(&self, location: &[C; D]) -> u32 {
        let (mut node, mut level_axis) = (0, self.cycle.first());
        for _ in 0..MAX_START_LEVELS.min(self.buckets.top_levels()) {
            let axis = self.axis(node, level_axis);
            node = 2 * node + 1 + usize::from(location[axis] > self.top[node][axis]);
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
        loop {
            while node < self.top.len() {
                let axis = self.axis(node, level_axis);
                let plane = self.top[node][axis];
                let is_right = usize::from(point[axis] > plane);
                let mut near = 2 * node + 1 + is_right;
                let mut far = 2 * node + 2 - is_right;
                level_axis = self.cycle.next(level_axis);
                let (mut beyond, mut bound) = rules.beyond::<PLAIN>(point, offsets, axis, plane.widen());
                let is_far_pending = bound <= best.worst();
                let have_boxes = 2 * node + 2 < self.top.len();
                if by_ids
                    && is_far_pending
                    && have_boxes
                    && self.boxes.of(far).least_id < self.boxes.of(near).least_id
                {
                    // The box of the swapped child gives its distance when it is visited.
                    (near, far, bound) = (far, near, C::Distance::ZERO);
                    std::mem::swap(&mut beyond, &mut offsets);
                }
                // No branch, which would often be mispredicted.
                stack[pending] = Pending { node: far, level_axis, offsets: beyond, bound };
                pending += usize::from(is_far_pending);
                node = near;
            }
            let bucket = self.bucket(node);
            bucket.scan(
                best.worst(),
                B::IS_ONE && PLAIN,
                |at| rules.distance::<PLAIN>(point, at),
                |i, distance| {
                    query.offer::<PLAIN>(bucket.ids[i], distance, best);
                    best.worst()
                },
            );
            loop {
                if pending == 0 {
                    return;
                }
                pending -= 1;
                let next = &stack[pending];
                if next.bound > best.worst() {
                    continue;
                }
                // The parent's point is on the split plane, so it is not nearer than the bound.
                let parent = (next.node - 1) / 2;
                let distance = rules.distance::<PLAIN>(point, &self.top[parent]);
                if distance <= best.worst() {
                    query.offer::<PLAIN>(self.ids[parent], distance, best);
                }
                if next.node < self.top.len() {
                    let subtree = self.boxes.of(next.node);
                    let distance = rules.distance_to_box::<PLAIN>(point, &subtree.corners.map(widen));
                    by_ids = distance == best.worst();
                    if !best.may_take(distance, subtree.least_id) {
                        continue;
                    }
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
        let mut traversal = RangeTraversal { tree: self, predicate, row, visitor };
        traversal.subtree(0, self.cycle.first(), L::EVERYWHERE);
    }

    fn has_all(&self) -> bool {
        // A single point may be the top node of a tree over several devices, whose other points are elsewhere.
        self.has_all && self.num_points() > 1
    }
}

/// A range query's traversal in in-order sequence.
struct RangeTraversal<'a, C, L, S, const D: usize> {
    tree: Nodes<'a, C, D>,
    predicate: &'a L,
    row: usize,
    visitor: &'a mut S,
}

impl<C: Coord, L: RangePredicate<C, D>, S: RangeVisitor<C::Distance>, const D: usize>
    RangeTraversal<'_, C, L, S, D>
{
    /// Visits the points of a node's subtree; `level_axis` is the axis of the node's level.
    fn subtree(&mut self, node: usize, level_axis: usize, region: L::Region) {
        let Self { tree, predicate, row, .. } = *self;
        if node >= tree.top.len() {
            let bucket = tree.bucket(node);
            return bucket.scan(
                predicate.bound(),
                false,
                |point| predicate.measure(row, point),
                |i, distance| {
                    self.visit(bucket.ids[i], distance);
                    predicate.bound()
                },
            );
        }
        let subtree = tree.boxes.of(node);
        match predicate.share(row, &subtree.corners.map(widen)) {
            Share::None => return,
            Share::All if S::COUNTS => return self.visitor.count(subtree.len),
            _ => {}
        }
        let (axis, next) = (tree.axis(node, level_axis), tree.cycle.next(level_axis));
        let plane = tree.top[node][axis].widen();
        let [left, right] = predicate.parts(row, region, axis, plane);
        if let Some(region) = left {
            self.subtree(2 * node + 1, next, region);
        }
        // The node's point is on the split plane.
        if left.is_some() && right.is_some() {
            let distance = predicate.measure(row, &tree.top[node]);
            if distance <= predicate.bound() {
                self.visit(tree.ids[node], distance);
            }
        }
        if let Some(region) = right {
            self.subtree(2 * node + 2, next, region);
        }
    }

    #[inline(always)]
    fn visit(&mut self, id: u32, distance: C::Distance) {
        if id != NO_POINT && self.predicate.takes(self.row, id) {
            self.visitor.point(id, distance);
        }
    }
}

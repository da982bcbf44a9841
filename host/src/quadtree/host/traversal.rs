//! Queries to quadtrees in host memory: their cells as a [`Traversable`] tree, in which a cell splits once per axis, at its center.
//!
//! The center of a cell is exact in `f64`. Converted to the type of distances it may be rounded, but no coordinate lies between the two, so a point
//! is on the same side of both.

use crate::error::Result;
use crate::primitives::cpu::bounds::bounds;
use crate::quadtree::dims::with_2_or_3;
use crate::quadtree::host::HostTree;
use crate::quadtree::host::deep_leaf::{self, DeepLeaf};
use crate::query::backend::QueryBackend;
use crate::query::cpu::backend::{CpuTree, TreeOf};
use crate::query::cpu::best::Best;
use crate::query::cpu::points;
use crate::query::cpu::rules::PointQuery;
use crate::query::cpu::traversal::{self, Nodes, Traversable};
use crate::query::cpu::within::{RangePredicate, RangeVisitor, Share};
use crate::query::ids::rows_by_id;
use kauri_kernels::quadtree::frame::Frame;
use kauri_kernels::quadtree::node::Node;
use kauri_kernels::thread::coord::{Coord, Float};
use std::borrow::Cow;

/// From this number of points on, a count takes a node as a whole if the region contains its cell, and an overfull leaf gets a k-d tree.
const MANY_POINTS: u32 = 64;

impl<C: Coord> HostTree<C> {
    /// Returns the cells to traverse, and builds the k-d trees of overfull leaves at the first call.
    pub(crate) fn traversable<const D: usize>(&self) -> Result<Cells<'_, C, D>> {
        let (nodes, points, ids) = (&self.nodes[..], points(&self.coords), &self.ids[..]);
        let min_points = self.outline.options.leaf_points.saturating_add(1).max(MANY_POINTS);
        let deep_leaves =
            self.deep_leaves.get_or_try_init(|| deep_leaf::build::<C, D>(nodes, points, ids, min_points))?;
        let (frame, corners) = (self.outline.frame(), self::points(&self.cells));
        Ok(Cells { frame, nodes, corners, points, ids, deep_leaves })
    }
}

impl<C: Coord> CpuTree for HostTree<C> {
    type Coord = C;

    fn coords_by_id(&self) -> Result<Cow<'_, [C]>> {
        Ok(rows_by_id(&self.ids, &self.coords, self.outline.dims, "points as queries")?.into())
    }

    fn with_queries<R>(&self, run: impl FnOnce(&dyn QueryBackend<C>) -> Result<R>) -> Result<R> {
        with_2_or_3!(self.outline.dims, D => {
            run(&TreeOf { index: self, tree: self.traversable::<D>()?, corners: &self.corners })
        })
    }
}

/// The cells of a quadtree.
#[derive(Clone, Copy)]
pub(crate) struct Cells<'a, C, const D: usize> {
    frame: Frame<D>,
    nodes: &'a [Node],
    /// The low corner of each node's cell, in units.
    corners: &'a [[u32; D]],
    points: &'a [[C; D]],
    ids: &'a [u32],
    /// In the order of nodes.
    deep_leaves: &'a [DeepLeaf<C>],
}

/// A node's cell, or a fraction of it: one half on each axis before `axis`. The halves are the leading bits of the child number.
#[derive(Clone, Copy)]
struct PartialCell {
    node: u32,
    axis: usize,
    child: u32,
}

impl PartialCell {
    /// Returns the whole cell of a node.
    fn whole(node: u32) -> Self {
        Self { node, axis: 0, child: 0 }
    }

    /// Returns the lower and the upper half on the next axis.
    fn halves(self) -> [Self; 2] {
        [0, 1].map(|half| Self { axis: self.axis + 1, child: 2 * self.child + half, ..self })
    }
}

impl<'a, C: Coord, const D: usize> Cells<'a, C, D> {
    /// Returns the k-d tree of a leaf, if it has one.
    #[inline]
    fn deep_leaf(&self, node: u32) -> Option<Nodes<'a, C, D>> {
        let at = self.deep_leaves.binary_search_by_key(&node, |leaf| leaf.node).ok()?;
        Some(self.deep_leaves[at].tree.nodes())
    }

    /// Returns the corners of a node's cell; all its points are between them.
    fn cell_box(&self, number: u32) -> [[C::Distance; D]; 2] {
        let side = 1 << (self.frame.levels - self.node(number).level);
        let low = self.corners[number as usize].map(u64::from);
        [low, low.map(|unit| unit + side)].map(|corner| self.frame.corner(corner).map(C::Distance::from_f64))
    }

    fn node(&self, number: u32) -> Node {
        self.nodes[number as usize]
    }

    /// Returns the child if `part` is the cell of one; otherwise the split plane of `part` on its axis.
    fn child_or_plane(&self, part: PartialCell) -> std::result::Result<PartialCell, C::Distance> {
        let node = self.node(part.node);
        if part.axis == D {
            return Ok(PartialCell::whole(node.first_child + part.child));
        }
        let half = 1 << (self.frame.levels - node.level - 1);
        let center = self.corners[part.node as usize].map(|unit| u64::from(unit) + half);
        Err(C::Distance::from_f64(self.frame.corner(center)[part.axis]))
    }
}

/// Stacks of a traversal: partial cells, and nodes of the k-d tree of a leaf.
pub(crate) struct Stack<F, const D: usize>(Vec<StackEntry<F, D>>, traversal::Stack<F, D>);

impl<F: Float, const D: usize> Default for Stack<F, D> {
    fn default() -> Self {
        Self(Vec::new(), traversal::Stack::default())
    }
}

/// A partial cell to visit later.
struct StackEntry<F, const D: usize> {
    part: PartialCell,
    /// Distance from the query to the cell on each axis.
    offsets: [F; D],
    /// Distance from the query to the cell.
    bound: F,
}

impl<C: Coord, const D: usize> Traversable<C, D> for Cells<'_, C, D> {
    type Stack = Stack<C::Distance, D>;

    fn num_points(&self) -> usize {
        self.points.len()
    }

    fn bounds(&self) -> [[C; D]; 2] {
        bounds(self.points)
    }

    /// Returns the first point of the leaf that contains `place`, or of the leaf nearest to it on each axis.
    fn start_bucket(&self, place: &[C; D]) -> u32 {
        let last = (1 << self.frame.levels) - 1;
        let unit = self.frame.unit_of_any(*place).map(|unit| unit.clamp(0, last) as u32);
        let mut node = self.node(0);
        while !node.is_leaf() {
            node = self.node(node.first_child + self.frame.code(unit, node.level, 1));
        }
        node.start
    }

    fn nearest<B: Best<C::Distance>, const PLAIN: bool>(
        self,
        query: PointQuery<'_, C, D>,
        Stack(stack, leaf_stack): &mut Stack<C::Distance, D>,
        best: &mut B,
    ) {
        stack.clear();
        stack.push(StackEntry {
            part: PartialCell::whole(0),
            offsets: [C::Distance::ZERO; D],
            bound: C::Distance::ZERO,
        });
        while let Some(StackEntry { mut part, offsets, bound }) = stack.pop() {
            if bound > best.worst() {
                continue;
            }
            loop {
                let node = self.node(part.node);
                if part.axis == 0 && (node.is_leaf() || node.is_empty()) {
                    if let Some(leaf) = self.deep_leaf(part.node) {
                        leaf.nearest::<B, PLAIN>(query, leaf_stack, best);
                        break;
                    }
                    for i in node.start as usize..node.end as usize {
                        let distance = query.rules.distance::<PLAIN>(query.point, &self.points[i]);
                        if distance <= best.worst() {
                            query.offer::<PLAIN>(self.ids[i], distance, best);
                        }
                    }
                    break;
                }
                part = match self.child_or_plane(part) {
                    Ok(child) => child,
                    Err(plane) => {
                        let axis = part.axis;
                        let [lower, upper] = part.halves();
                        let is_above = query.point[axis].widen() > plane;
                        let (near, far) = if is_above { (upper, lower) } else { (lower, upper) };
                        let (offsets, bound) = query.rules.beyond::<PLAIN>(query.point, offsets, axis, plane);
                        if bound <= best.worst() {
                            stack.push(StackEntry { part: far, offsets, bound });
                        }
                        near
                    }
                };
            }
        }
    }

    fn visit_range<L: RangePredicate<C, D>>(
        self,
        predicate: &L,
        row: usize,
        visitor: &mut impl RangeVisitor<C::Distance>,
    ) {
        self.visit_range_in(PartialCell::whole(0), L::EVERYWHERE, predicate, row, visitor);
    }

    fn has_all(&self) -> bool {
        true
    }
}

impl<C: Coord, const D: usize> Cells<'_, C, D> {
    /// Visits the points of a partial cell that satisfy the predicate.
    fn visit_range_in<L: RangePredicate<C, D>, S: RangeVisitor<C::Distance>>(
        self,
        part: PartialCell,
        region: L::Region,
        predicate: &L,
        row: usize,
        visitor: &mut S,
    ) {
        let node = self.node(part.node);
        if S::COUNTS && part.axis == 0 && node.len() >= MANY_POINTS {
            match predicate.share(row, &self.cell_box(part.node)) {
                Share::None => return,
                Share::Some => {}
                Share::All => return visitor.count(node.len()),
            }
        }
        if part.axis == 0 && (node.is_leaf() || node.is_empty()) {
            if let Some(leaf) = self.deep_leaf(part.node) {
                if S::COUNTS {
                    return leaf.visit_range(predicate, row, visitor);
                }
                if let Some(found) = few_in_leaf(leaf, predicate, row) {
                    return found.into_iter().for_each(|(id, distance)| visitor.point(id, distance));
                }
            }
            for i in node.start as usize..node.end as usize {
                let id = self.ids[i];
                if let Some(distance) = predicate.distance(row, &self.points[i], id) {
                    visitor.point(id, distance);
                }
            }
            return;
        }
        match self.child_or_plane(part) {
            Ok(child) => self.visit_range_in(child, region, predicate, row, visitor),
            Err(plane) => {
                let regions = predicate.parts(row, region, part.axis, plane);
                for (half, region) in part.halves().into_iter().zip(regions) {
                    if let Some(region) = region {
                        self.visit_range_in(half, region, predicate, row, visitor);
                    }
                }
            }
        }
    }
}

/// Finds the points of a row in a leaf through its k-d tree, and sorts them by id, which is their order in the leaf. Returns `None` if they
/// are so many that a scan of the leaf is as good, or if there is no memory for them.
fn few_in_leaf<C: Coord, L: RangePredicate<C, D>, const D: usize>(
    leaf: Nodes<'_, C, D>,
    predicate: &L,
    row: usize,
) -> Option<Vec<(u32, C::Distance)>> {
    let mut few = Few { points: Vec::new(), max: leaf.num_points() / 16, are_few: true };
    leaf.visit_range(predicate, row, &mut few);
    let Few { points: mut found, are_few, .. } = few;
    found.sort_unstable_by_key(|&(id, _)| id);
    are_few.then_some(found)
}

/// Collects points, until there are too many or memory runs out.
struct Few<C> {
    points: Vec<(u32, C)>,
    max: usize,
    are_few: bool,
}

impl<C> RangeVisitor<C> for Few<C> {
    const COUNTS: bool = false;

    #[inline(always)]
    fn point(&mut self, id: u32, distance: C) {
        self.are_few = self.are_few && self.points.len() < self.max && self.points.try_reserve(1).is_ok();
        if self.are_few {
            self.points.push((id, distance));
        }
    }
}

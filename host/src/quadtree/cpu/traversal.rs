//! Quadtrees as walks see them: a cell that splits does so once an axis, at the middle of it.
//!
//! A middle is exact in `f64`; as a coordinate it may be rounded, but then no coordinate is between the two, so that all points below are
//! below, or at, both of them.
//!
//! A cell that cannot split may have any number of points, as those of a cluster where one point is far away. A large one is a k-d tree.

use crate::error::Result;
use crate::kdtree::SplitRule;
use crate::quadtree::{HostTree, frame_of, with_plane_or_space};
use crate::query::backend::ValidatedQueries;
use crate::query::cpu::backend::impl_query_backend;
use crate::query::cpu::best::Best;
use crate::query::cpu::traversal::{self, Nodes, Rules, Traversable};
use crate::query::cpu::within::{RangePredicate, RangeVisitor, Share};
use crate::query::cpu::{CpuIndex, backend, points};
use crate::stats::Stats;
use kauri_kernels::quadtree::frame::Frame;
use kauri_kernels::quadtree::node::Node;
use kauri_kernels::thread::coord::Coord;
use std::borrow::Cow;

/// Least points of a node that is counted as a whole where a row takes all of its cell, and of an overfull leaf that gets a k-d tree.
const MANY_POINTS: u32 = 64;

/// A leaf with many points in a cell that cannot split.
pub(crate) struct DeepLeaf<C> {
    node: u32,
    tree: CpuIndex<C>,
}

impl<C: Coord> HostTree<C> {
    /// The cells that walks go through, and the k-d trees of leaves.
    pub(crate) fn traversable<const D: usize>(&self) -> Result<Cells<'_, C, D>> {
        let mut cells = Cells {
            frame: frame_of(&self.frame),
            nodes: self.nodes(),
            corners: points(&self.cells),
            points: points(&self.coords),
            ids: &self.ids,
            deep_leaves: &[],
        };
        let least = self.options.leaf_points.saturating_add(1).max(MANY_POINTS);
        cells.deep_leaves = self.deep_leaves.get_or_try_init(|| cells.make_deep_leaves(least))?;
        Ok(cells)
    }

    /// The coordinates of the points by id, if they are the queries.
    pub(crate) fn own(&self, queries: ValidatedQueries<'_, C>) -> Result<Cow<'_, [C]>> {
        Ok(match queries {
            ValidatedQueries::Points { .. } => Cow::Borrowed(&[]),
            ValidatedQueries::Own { .. } => backend::by_id(&self.coords, &self.ids, self.dims)?.into(),
        })
    }
}

/// A quadtree.
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

/// A part of a node's cell: of all axes before `axis` one half, which says a bit of its children's numbers.
#[derive(Clone, Copy)]
struct Part {
    node: u32,
    axis: usize,
    child: u32,
}

impl Part {
    /// A whole cell.
    fn of(node: u32) -> Self {
        Self { node, axis: 0, child: 0 }
    }

    /// The lower and the upper half.
    fn halves(self) -> [Self; 2] {
        [0, 1].map(|half| Self { axis: self.axis + 1, child: 2 * self.child + half, ..self })
    }
}

impl<'a, C: Coord, const D: usize> Cells<'a, C, D> {
    /// The leaves with at least so many points.
    fn make_deep_leaves(self, least: u32) -> Result<Vec<DeepLeaf<C>>> {
        let is_deep = |node: &Node| node.is_leaf() && node.len() >= least;
        let deep_leaf = |node: u32| {
            let leaf = self.node(node);
            let range = leaf.start as usize..leaf.end as usize;
            let (coords, ids) = (self.points[range.clone()].as_flattened(), &self.ids[range]);
            // Ids of a leaf rise, so that those of the k-d tree have the same order.
            let tree = crate::kdtree::cpu::build(coords, D, SplitRule::Widest, &mut Stats::default())?;
            Ok(DeepLeaf { node, tree: tree.with_ids(ids)? })
        };
        (0..self.nodes.len() as u32).filter(|&node| is_deep(&self.node(node))).map(deep_leaf).collect()
    }

    /// The k-d tree of a leaf, if it has one.
    #[inline]
    fn deep_leaf(&self, node: u32) -> Option<Nodes<'a, C, D>> {
        let at = self.deep_leaves.binary_search_by_key(&node, |leaf| leaf.node).ok()?;
        self.deep_leaves[at].tree.made()
    }

    /// The box of a node's cell: all of its points are there.
    fn cell_box(&self, number: u32) -> [[C; D]; 2] {
        let side = 1 << (self.frame.levels - self.node(number).level);
        let low = self.corners[number as usize].map(u64::from);
        [low, low.map(|unit| unit + side)].map(|corner| self.frame.corner(corner).map(C::from_f64))
    }

    fn node(&self, number: u32) -> Node {
        self.nodes[number as usize]
    }

    /// The child that a part is, if it is one; where the part splits otherwise.
    fn child_or_split(&self, part: Part) -> std::result::Result<Part, C> {
        let node = self.node(part.node);
        if part.axis == D {
            return Ok(Part::of(node.first_child + part.child));
        }
        let half = 1 << (self.frame.levels - node.level - 1);
        let middle = self.corners[part.node as usize].map(|unit| u64::from(unit) + half);
        Err(C::from_f64(self.frame.corner(middle)[part.axis]))
    }
}

/// Parts that a walk has yet to visit, and nodes of a leaf's k-d tree.
pub(crate) struct Stack<C, const D: usize>(Vec<Waiting<C, D>>, traversal::Stack<C, D>);

impl<C: Coord, const D: usize> Default for Stack<C, D> {
    fn default() -> Self {
        Self(Vec::new(), traversal::Stack::default())
    }
}

/// A part to visit later.
struct Waiting<C, const D: usize> {
    part: Part,
    /// Distance from the query to the part, axis by axis, and together.
    offsets: [C; D],
    bound: C,
}

impl<C: Coord, const D: usize> Traversable<C, D> for Cells<'_, C, D> {
    type Stack = Stack<C, D>;

    fn points(&self) -> &[[C; D]] {
        self.points
    }

    /// Where the points of its leaf begin.
    fn start_bucket(&self, place: &[C; D]) -> u32 {
        let last = (1 << self.frame.levels) - 1;
        let unit = self.frame.unit_of_any(*place).map(|unit| unit.clamp(0, last) as u32);
        let mut node = self.node(0);
        while !node.is_leaf() {
            node = self.node(node.first_child + self.frame.code(unit, node.level, 1));
        }
        node.start
    }

    fn nearest<B: Best<C>, const PLAIN: bool>(
        self,
        rules: &Rules<'_, C, D>,
        query: &[C; D],
        except: u32,
        Stack(stack, of_leaves): &mut Stack<C, D>,
        best: &mut B,
    ) {
        stack.clear();
        stack.push(Waiting { part: Part::of(0), offsets: [C::ZERO; D], bound: C::ZERO });
        while let Some(Waiting { mut part, offsets, bound }) = stack.pop() {
            if bound > best.worst() {
                continue;
            }
            loop {
                let node = self.node(part.node);
                if part.axis == 0 && (node.is_leaf() || node.is_empty()) {
                    if let Some(leaf) = self.deep_leaf(part.node) {
                        leaf.nearest::<B, PLAIN>(rules, query, except, of_leaves, best);
                        break;
                    }
                    for place in node.start as usize..node.end as usize {
                        let distance = rules.distance::<PLAIN>(query, &self.points[place]);
                        let id = self.ids[place];
                        if distance <= best.worst() && rules.takes::<PLAIN>(id, except) {
                            best.offer(distance, id);
                        }
                    }
                    break;
                }
                part = match self.child_or_split(part) {
                    Ok(child) => child,
                    Err(plane) => {
                        let axis = part.axis;
                        let [lower, upper] = part.halves();
                        let is_above = query[axis] > plane;
                        let (near, far) = if is_above { (upper, lower) } else { (lower, upper) };
                        let (offsets, bound) = rules.beyond::<PLAIN>(query, offsets, axis, plane);
                        if bound <= best.worst() {
                            stack.push(Waiting { part: far, offsets, bound });
                        }
                        near
                    }
                };
            }
        }
    }

    fn visit_range<L: RangePredicate<C, D>>(self, look: &L, row: usize, show: &mut impl RangeVisitor<C>) {
        self.look_in(Part::of(0), L::EVERYWHERE, look, row, show);
    }

    fn has_all(&self) -> bool {
        true
    }
}

impl<C: Coord, const D: usize> Cells<'_, C, D> {
    /// Shows the points of a part.
    fn look_in<L: RangePredicate<C, D>, S: RangeVisitor<C>>(
        self,
        part: Part,
        region: L::Region,
        look: &L,
        row: usize,
        show: &mut S,
    ) {
        let node = self.node(part.node);
        if S::COUNTS && part.axis == 0 && node.len() >= MANY_POINTS {
            match look.share(row, &self.cell_box(part.node)) {
                Share::None => return,
                Share::Some => {}
                Share::All => return show.count(node.len()),
            }
        }
        if part.axis == 0 && (node.is_leaf() || node.is_empty()) {
            if let Some(leaf) = self.deep_leaf(part.node) {
                if S::COUNTS {
                    return leaf.visit_range(look, row, show);
                }
                if let Some(found) = few_in_leaf(leaf, look, row) {
                    return found.into_iter().for_each(|(id, distance)| show.point(id, distance));
                }
            }
            for place in node.start as usize..node.end as usize {
                let id = self.ids[place];
                if let Some(distance) = look.distance(row, &self.points[place], id) {
                    show.point(id, distance);
                }
            }
            return;
        }
        match self.child_or_split(part) {
            Ok(child) => self.look_in(child, region, look, row, show),
            Err(plane) => {
                let regions = look.parts(row, region, part.axis, plane);
                for (half, region) in part.halves().into_iter().zip(regions) {
                    if let Some(region) = region {
                        self.look_in(half, region, look, row, show);
                    }
                }
            }
        }
    }
}

/// The points of a row in a leaf that is a k-d tree, in the order of the leaf: by ids. None if they are so many that all of the leaf may
/// be looked at, or there is no memory.
fn few_in_leaf<C: Coord, L: RangePredicate<C, D>, const D: usize>(
    leaf: Nodes<'_, C, D>,
    look: &L,
    row: usize,
) -> Option<Vec<(u32, C)>> {
    let (mut found, mut are_few) = (Vec::new(), true);
    leaf.visit_range(look, row, &mut |id, distance| {
        are_few = are_few && found.len() < leaf.points.len() / 16 && found.try_reserve(1).is_ok();
        if are_few {
            found.push((id, distance));
        }
    });
    found.sort_unstable_by_key(|&(id, _)| id);
    are_few.then_some(found)
}

impl_query_backend!(HostTree, with_plane_or_space);

//! Quadtrees as walks see them: a cell that splits does so once an axis, at the middle of it.
//!
//! A middle is exact in `f64`; as a coordinate it may be rounded, but then no coordinate is between the two, so that all points below are
//! below, or at, both of them.

use super::best::Best;
use super::walk::{Rules, Walked};
use super::within::Look;
use super::{answers, points};
use crate::error::Result;
use crate::kdtree::backend::Checked;
use crate::quadtree::{HostTree, frame_of};
use kauri_kernels::quadtree::frame::Frame;
use kauri_kernels::quadtree::node::Node;
use kauri_kernels::thread::coord::Coord;
use std::borrow::Cow;

impl<C: Coord> HostTree<C> {
    pub(super) fn walked<const D: usize>(&self) -> Cells<'_, C, D> {
        Cells {
            frame: frame_of(&self.frame),
            nodes: self.nodes(),
            corners: points(&self.cells),
            points: points(&self.coords),
            ids: &self.ids,
        }
    }

    /// The coordinates of the points by id, if they are the queries.
    pub(super) fn own(&self, queries: Checked<'_, C>) -> Result<Cow<'_, [C]>> {
        Ok(match queries {
            Checked::Points { .. } => Cow::Borrowed(&[]),
            Checked::Own { .. } => answers::by_id(&self.coords, &self.ids, self.dims)?.into(),
        })
    }
}

/// A quadtree.
#[derive(Clone, Copy)]
pub(super) struct Cells<'a, C, const D: usize> {
    frame: Frame<D>,
    nodes: &'a [Node],
    /// The low corner of each node's cell, in units.
    corners: &'a [[u32; D]],
    points: &'a [[C; D]],
    ids: &'a [u32],
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

impl<C: Coord, const D: usize> Cells<'_, C, D> {
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

/// Parts that a walk has yet to visit.
pub(super) struct Stack<C, const D: usize>(Vec<Waiting<C, D>>);

impl<C, const D: usize> Default for Stack<C, D> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

/// A part to visit later.
struct Waiting<C, const D: usize> {
    part: Part,
    /// Distance from the query to the part, axis by axis, and together.
    offsets: [C; D],
    bound: C,
}

impl<C: Coord, const D: usize> Walked<C, D> for Cells<'_, C, D> {
    type Stack = Stack<C, D>;

    fn points(&self) -> &[[C; D]] {
        self.points
    }

    /// Where the points of its leaf begin.
    fn home(&self, place: &[C; D]) -> u32 {
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
        Stack(stack): &mut Stack<C, D>,
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

    fn look<L: Look<C, D>>(self, look: &L, row: usize, show: &mut impl FnMut(u32, C)) {
        self.look_in(Part::of(0), L::EVERYWHERE, look, row, show);
    }
}

impl<C: Coord, const D: usize> Cells<'_, C, D> {
    /// Shows the points of a part.
    fn look_in<L: Look<C, D>>(
        self,
        part: Part,
        region: L::Region,
        look: &L,
        row: usize,
        show: &mut impl FnMut(u32, C),
    ) {
        let node = self.node(part.node);
        if part.axis == 0 && (node.is_leaf() || node.is_empty()) {
            for place in node.start as usize..node.end as usize {
                let id = self.ids[place];
                if let Some(distance) = look.distance(row, &self.points[place], id) {
                    show(id, distance);
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

//! The check of a tree.

use kauri_kernels::kdtree::axes::Cell;
use kauri_kernels::query::axes::AxisCycle;
use kauri_kernels::thread::coord::{Coord, Float};

use crate::error::{Error, Result, check_len};
use crate::kdtree::cpu::varying::varying_axes;
use crate::parallel;
use crate::primitives::cpu::bounds::bounds;
use crate::query::ids::first_invalid;

/// One task checks the whole subtree of a node from this number on.
const PARALLEL_NODES: usize = 1024;

/// The nodes of a tree in level order.
#[derive(Clone, Copy)]
pub(crate) struct Nodes<'a, C, const D: usize> {
    pub(crate) points: &'a [[C; D]],
    pub(crate) ids: &'a [u32],
    /// The axes of nodes that have children; empty if levels split on the axes of `cycle` in turn.
    pub(crate) axes: &'a [u8],
    pub(crate) cycle: AxisCycle,
}

/// The nearest ancestors that bound the points of a subtree on every axis.
#[derive(Clone, Copy)]
struct Bounds<const D: usize> {
    lower: [Option<u32>; D],
    upper: [Option<u32>; D],
}

/// Checks that each id occurs once, that each node lies between the ancestors that bound its subtree in the order (coordinate, id) of each
/// axis, and that each node splits on the axis of its level, or on the widest axis of its cell if axes are stored. Levels split in turn on
/// the axes on which the points are not all equal.
pub(crate) fn verify<C: Coord, const D: usize>(tree: Nodes<'_, C, D>) -> Result<()> {
    let Nodes { points, ids, axes, .. } = tree;
    if !axes.is_empty() {
        check_len("axes of the nodes", points.len() / 2, axes.len())?;
    }
    check_len("ids of the nodes", points.len(), ids.len())?;
    if let Some((node, what)) = first_invalid(ids)? {
        return Err(Error::corrupt(node, what));
    }
    let varying = varying_axes(points);
    if axes.is_empty() && tree.cycle != varying {
        return Err(Error::corrupt(0, out_of_turn(tree.cycle, varying)));
    }
    let cell = (!axes.is_empty()).then(|| Cell::new(bounds(points)));
    let bounds = Bounds { lower: [None; D], upper: [None; D] };
    check_subtree(tree, 0, tree.cycle.first(), bounds, cell)
}

/// Describes a tree whose levels split on other axes than those on which the points differ.
pub(crate) fn out_of_turn(cycle: AxisCycle, varying: AxisCycle) -> String {
    let axes = |cycle: AxisCycle| {
        (0..u32::BITS)
            .filter(|axis| cycle.mask() >> axis & 1 == 1)
            .map(|axis| format!(" {axis}"))
            .collect::<String>()
    };
    format!("levels split on axes{} in turn, but the points differ on axes{}", axes(cycle), axes(varying))
}

/// Checks the subtree of node `s`. `level_axis` is the axis of its level. `cell` is its cell if nodes split on the widest axis of their cell.
fn check_subtree<C: Coord, const D: usize>(
    tree: Nodes<'_, C, D>,
    s: usize,
    level_axis: usize,
    bounds: Bounds<D>,
    cell: Option<Cell<C, D>>,
) -> Result<()> {
    let Nodes { points, ids, .. } = tree;
    let Some(point) = points.get(s) else { return Ok(()) };
    for a in 0..D {
        if !point[a].widen().is_finite() {
            return Err(Error::corrupt(s, format!("{} on axis {a}", point[a].to_f64())));
        }
        let key = |s: usize| (points[s][a].key(), ids[s]);
        let is_wrong = |lower: usize, upper: usize| key(lower) >= key(upper);
        let error = |ancestor: u32, side| {
            let [own, bound] = [s, ancestor as usize].map(|s| (points[s][a].to_f64(), ids[s]));
            misplaced(s, own, ancestor as usize, bound, a, side)
        };
        if let Some(ancestor) = bounds.lower[a].filter(|&lower| is_wrong(lower as usize, s)) {
            return Err(error(ancestor, "right"));
        }
        if let Some(ancestor) = bounds.upper[a].filter(|&upper| is_wrong(s, upper as usize)) {
            return Err(error(ancestor, "left"));
        }
    }
    // Nodes without children have no axis; any will do.
    let axis =
        if tree.axes.is_empty() { level_axis } else { tree.axes.get(s).map_or(0, |&axis| axis.into()) };
    let widest = cell.map(|cell| cell.widest(D)).filter(|&widest| widest != axis && 2 * s + 1 < points.len());
    if let Some(widest) = widest {
        let what = format!("it splits on axis {axis}, but the widest of its cell is axis {widest}");
        return Err(Error::corrupt(s, what));
    }
    let (mut left, mut right) = (bounds, bounds);
    left.upper[axis] = Some(s as u32);
    right.lower[axis] = Some(s as u32);
    let [left_cell, right_cell] = match cell {
        Some(cell) => cell.cut(axis, point[axis]).map(Some),
        None => [None, None],
    };
    let next = tree.cycle.next(level_axis);
    let check_left = || check_subtree(tree, 2 * s + 1, next, left, left_cell);
    let check_right = || check_subtree(tree, 2 * s + 2, next, right, right_cell);
    if s < PARALLEL_NODES && points.len() > 16 * PARALLEL_NODES {
        let (left, right) = parallel::join(check_left, check_right);
        left.and(right)
    } else {
        check_left().and_then(|()| check_right())
    }
}

/// Describes a node on the wrong side of an ancestor. A key is a coordinate on the axis, and an id.
fn misplaced(
    s: usize,
    own: (f64, u32),
    ancestor: usize,
    bound: (f64, u32),
    axis: usize,
    side: &str,
) -> Error {
    let [own, bound] = [own, bound].map(|(at, id)| format!("({at}, id {id})"));
    Error::corrupt(s, format!("{own} on axis {axis} is on the {side} of node {ancestor}, which has {bound}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(points: &[[f32; 2]], ids: &[u32], axes: &[u8]) -> Result<()> {
        let cycle = AxisCycle::all(2);
        verify(Nodes { points, ids, axes, cycle })
    }

    fn reason(points: &[[f32; 2]], ids: &[u32]) -> String {
        check(points, ids, &[]).unwrap_err().to_string()
    }

    #[test]
    fn the_wrong_node_is_named() {
        let points = [[1.0, 0.0], [0.0, 1.0], [2.0, 0.0], [0.5, 0.0]];
        assert!(check(&points, &[0, 1, 2, 3], &[]).is_ok());
        assert!(check(&[], &[], &[]).is_ok());
        assert!(reason(&points, &[0, 1, 2]).contains("shape"));
        assert!(reason(&points, &[0, 1, 2, 4]).contains("node 3 of the tree is wrong: id 4"));
        assert!(reason(&points, &[0, 1, 2, 1]).contains("node 3 of the tree is wrong: id 1 is also"));

        let mut moved = points;
        moved[3][0] = 1.5;
        assert!(reason(&moved, &[0, 1, 2, 3]).contains("node 3"));
        moved[3] = [0.5, 1.0];
        let text = reason(&moved, &[0, 1, 2, 3]);
        assert!(text.contains("(1, id 3) on axis 1 is on the left of node 1, which has (1, id 1)"), "{text}");
        moved[2][1] = f32::NAN;
        assert!(reason(&moved, &[0, 3, 2, 1]).contains("NaN"));

        // The bounding box is wider along the first axis; the cell of its left child is wider along the second axis.
        let points = [[1.0f32, 0.0], [0.0, 1.5], [2.0, 0.0], [0.5, 0.0]];
        let by_axes = |axes: &[u8]| check(&points, &[0, 1, 2, 3], axes);
        assert!(by_axes(&[0, 0]).is_err_and(|error| error.to_string().contains("node 1")));
        assert!(by_axes(&[0, 1]).is_ok());
        assert!(by_axes(&[1, 1]).is_err_and(|error| error.to_string().contains("node 0")));
        assert!(by_axes(&[0]).is_err_and(|error| error.to_string().contains("axes")));

        // Levels may not split on the second axis, on which the points are equal.
        let points = [[1.0, 0.0], [0.0, 0.0], [2.0, 0.0]];
        assert!(reason(&points, &[0, 1, 2]).contains("axes 0 1 in turn, but the points differ on axes 0"));
    }
}

//! The Delaunay triangle that contains a position.

use super::apex::{Apex, Vertex, cross};
use super::tree::{NO_SLOT, Nearest, PointTree, distance2, search};

/// A triangle of the Delaunay triangulation, counterclockwise; the first vertex has the least slot.
pub type Triangle = [Vertex; 3];

/// Returns the nearest point to a position within a squared distance, other than that of slot `excluded`.
///
/// # Safety
/// As [`search`].
#[inline(always)]
pub unsafe fn nearest<T: PointTree>(
    tree: &T,
    position: [i32; 2],
    start: Option<u32>,
    excluded: u32,
) -> Option<(Vertex, i64)> {
    let mut found = Nearest::new(position, excluded, i64::MAX);
    search(tree, start, &mut found);
    (found.slot != NO_SLOT)
        .then(|| (Vertex { position: tree.position(found.slot), slot: found.slot }, found.distance2))
}

/// True if a position is to the right of the line from `a` to `b`. A position on the line counts as if it were moved a little along x, and still
/// less along y, so each position is on one side of each line.
#[inline(always)]
pub fn is_right(a: Vertex, b: Vertex, position: [i32; 2]) -> bool {
    let [x, y] = a.to(b.position);
    match cross([x, y], a.to(position)) {
        0 => y > 0 || (y == 0 && x < 0),
        turn => turn < 0,
    }
}

/// Returns the Delaunay triangle that contains a position, by a walk from the nearest point; `None` outside of the triangulation.
///
/// The walk crosses the edges that separate the position from the triangle. In a Delaunay triangulation it ends (De Floriani, Falcidieno,
/// Nagy, Pienovi 1991).
///
/// # Safety
/// As [`search`].
#[inline(always)]
pub unsafe fn locate<T: PointTree>(tree: &T, position: [i32; 2]) -> Option<Triangle> {
    let (mut a, mut b) = (Vertex::at(position), Vertex::at(position));
    // The nearest point, then the nearest to that: an edge between nearest points is in the triangulation.
    for _ in 0..2 {
        let start = (b.slot != NO_SLOT).then_some(b.slot);
        (a, b) = (b, nearest(tree, b.position, start, b.slot)?.0);
    }
    if is_right(a, b, position) {
        (a, b) = (b, a);
    }
    loop {
        let mut apex = Apex::new(a, b);
        search(tree, Some(a.slot), &mut apex);
        let c = apex.vertex()?;
        if is_right(b, c, position) {
            a = c;
        } else if is_right(c, a, position) {
            b = c;
        } else {
            return Some(from_least([a, b, c]));
        }
    }
}

/// Rotates a triangle so that its first vertex has the least slot.
#[inline(always)]
pub fn from_least([a, b, c]: Triangle) -> Triangle {
    if a.slot < b.slot && a.slot < c.slot {
        [a, b, c]
    } else if b.slot < c.slot {
        [b, c, a]
    } else {
        [c, a, b]
    }
}

/// Returns the height of the plane through the corners of a triangle at a position in it.
#[inline(always)]
pub fn interpolate([a, b, c]: Triangle, heights: [i32; 3], position: [i32; 2]) -> f64 {
    let [of_b, of_c] =
        [(c, a), (a, b)].map(|(from, to)| cross(from.to(to.position), from.to(position)) as f64);
    let all = cross(a.to(b.position), a.to(c.position)) as f64;
    let [first, second, third] = heights.map(f64::from);
    first + (of_b * (second - first) + of_c * (third - first)) / all
}

/// True if no edge of a triangle is longer than the root of `max_edge2`.
#[inline(always)]
pub fn edges_are_within([a, b, c]: Triangle, max_edge2: i64) -> bool {
    [(a, b), (b, c), (c, a)].iter().all(|(from, to)| distance2(from.position, to.position) <= max_edge2)
}

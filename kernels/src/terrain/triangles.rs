//! The Delaunay triangle that contains a position.

use super::apex::{Apex, Vertex, cross};
use super::tree::{Lanes, Missing, NO_SLOT, Nearest, Points, distance2};
use crate::thread::words::computed;

/// A triangle of the Delaunay triangulation, counterclockwise; the first vertex has the least slot.
pub type Triangle = [Vertex; 3];

/// Returns the nearest point to a position, other than that of slot `excluded`, and its squared distance. Without a position there is none.
///
/// # Safety
/// As [`Points::search`].
#[inline(always)]
pub unsafe fn nearest<P: Points>(
    points: &P,
    position: Option<[i32; 2]>,
    start: Option<u32>,
    excluded: u32,
) -> Result<(Vertex, i64), Missing> {
    let mut found = Nearest::new(position, excluded, i64::MAX);
    points.search(start, &mut found);
    if found.slot == NO_SLOT {
        return Err(Missing::NoValue);
    }
    Ok((Vertex { position: points.position(found.slot), slot: found.slot }, found.distance2))
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

/// Returns the Delaunay triangle that contains a position, by a walk from the nearest point, or [`Missing::NoValue`] outside of the
/// triangulation.
///
/// The walk crosses the edges that separate the position from the triangle. In a Delaunay triangulation it ends (De Floriani, Falcidieno,
/// Nagy, Pienovi 1991). If only a part of the cloud is known, its convex hull has to be, so that the walk ends outside only where all of the cloud
/// does; a triangle whose circumcircle is empty is one of the whole cloud.
///
/// # Safety
/// As [`Points::search`].
#[inline(always)]
pub unsafe fn locate<P: Points>(points: &P, position: Option<[i32; 2]>) -> Result<Triangle, Missing> {
    let (mut is_walking, position) = (position.is_some(), position.unwrap_or_default());
    let (mut a, mut b) = (Vertex::at(position), Vertex::at(position));
    // The nearest point, then the nearest to that: an edge between nearest points is in the triangulation.
    // The number is computed, so that the loop is not unrolled.
    for _ in 0..computed(2_u32) {
        let near = nearest(points, is_walking.then_some(b.position), b.slot(), b.slot);
        let (is_found, near) = (near.is_ok(), near.map_or(b, |(near, _)| near));
        // Without this the compiler gives lanes that found no point a copy of the next search.
        is_walking = computed(u32::from(is_walking && is_found)) != 0;
        (a, b) = (b, near);
    }
    if is_right(a, b, position) {
        (a, b) = (b, a);
    }
    let mut triangle = Err(Missing::NoValue);
    while P::Lanes::any(is_walking) {
        let mut apex = Apex::new(a, if is_walking { b } else { a });
        points.search(a.slot(), &mut apex);
        match apex.vertex() {
            Ok(c) if is_right(b, c, position) => a = c,
            Ok(c) if is_right(c, a, position) => b = c,
            Ok(c) => {
                triangle = apex.check_circle(points).map(|()| from_least([a, b, c]));
                is_walking = false;
            }
            Err(_) => is_walking = false,
        }
    }
    triangle
}

/// True if a triangle contains a position.
pub fn contains([a, b, c]: Triangle, position: [i32; 2]) -> bool {
    ![(a, b), (b, c), (c, a)].iter().any(|&(from, to)| is_right(from, to, position))
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
fn interpolate([a, b, c]: Triangle, heights: [i32; 3], position: [i32; 2]) -> f64 {
    let [of_b, of_c] =
        [(c, a), (a, b)].map(|(from, to)| cross(from.to(to.position), from.to(position)) as f64);
    let all = cross(a.to(b.position), a.to(c.position)) as f64;
    let [first, second, third] = heights.map(f64::from);
    first + (of_b * (second - first) + of_c * (third - first)) / all
}

/// True if no edge of a triangle is longer than the root of `max_edge2`.
#[inline(always)]
fn edges_are_within([a, b, c]: Triangle, max_edge2: i64) -> bool {
    [(a, b), (b, c), (c, a)].iter().all(|(from, to)| distance2(from.position, to.position) <= max_edge2)
}

/// Returns the height of the Delaunay triangle at a position, or [`Missing::NoValue`] if an edge is longer than the root of `max_edge2`.
///
/// # Safety
/// As [`Points::search`].
#[inline(always)]
pub unsafe fn linear<P: Points>(
    points: &P,
    position: Option<[i32; 2]>,
    max_edge2: i64,
) -> Result<f64, Missing> {
    let triangle = locate(points, position)?;
    linear_in(points, triangle, position.unwrap_or_default(), max_edge2)
}

/// Returns the height of a triangle at a position in it, or [`Missing::NoValue`] if an edge is longer than the root of `max_edge2`.
///
/// # Safety
/// The triangle is one of these points.
#[inline(always)]
pub unsafe fn linear_in<P: Points>(
    points: &P,
    triangle: Triangle,
    position: [i32; 2],
    max_edge2: i64,
) -> Result<f64, Missing> {
    if !edges_are_within(triangle, max_edge2) {
        return Err(Missing::NoValue);
    }
    let heights = triangle.map(|corner| points.height(corner.slot));
    Ok(interpolate(triangle, heights, position))
}

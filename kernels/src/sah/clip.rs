//! Clipping a triangle at a split plane.

use crate::rays::aabb::{Aabb, Side, component};

/// Returns the bounding box of the part of a triangle on one side of a plane, intersected with `known`, a box that contains
/// the part considered so far. The result is empty if only the box, not the triangle, reaches that side.
///
/// Intersections of edges and plane are computed in `f64` and rounded outwards, so that the box contains every point of the
/// part.
#[inline(always)]
pub fn clipped(corners: [[f32; 3]; 3], known: Aabb, axis: u32, plane: f32, side: Side) -> Aabb {
    let half = known.split_at(axis, plane)[side as usize];
    let mut part = Aabb::EMPTY;
    for i in 0..3 {
        let (p, q) = match i {
            0 => (corners[0], corners[1]),
            1 => (corners[1], corners[2]),
            _ => (corners[2], corners[0]),
        };
        let (from, to) = (component(p, axis), component(q, axis));
        let is_above = side == Side::Above;
        if (is_above && from >= plane) || (!is_above && from <= plane) {
            part = part.union(Aabb::of_point(p));
        }
        if (from < plane) != (to < plane) && from != to {
            let part_of_edge = (f64::from(plane) - f64::from(from)) / (f64::from(to) - f64::from(from));
            part = part.union(place_on(p, q, part_of_edge));
        }
    }
    part.intersection(half)
}

/// Returns a box that contains the point at `part` of an edge.
#[inline(always)]
fn place_on(p: [f32; 3], q: [f32; 3], part: f64) -> Aabb {
    let mut union = Aabb::EMPTY;
    for axis in 0..3 {
        let (from, to) = (f64::from(p[axis]), f64::from(q[axis]));
        let at = from + (to - from) * part;
        // More than four rounding errors of an `f64`.
        let slack = (from.abs() + to.abs()) * (f64::EPSILON * 4.0);
        (union.low[axis], union.high[axis]) = (not_above(at - slack), not_below(at + slack));
    }
    union
}

/// Rounds down to an `f32`.
#[inline(always)]
fn not_above(x: f64) -> f32 {
    let near = x as f32;
    if f64::from(near) > x { near.next_down() } else { near }
}

/// Rounds up to an `f32`.
#[inline(always)]
fn not_below(x: f64) -> f32 {
    let near = x as f32;
    if f64::from(near) < x { near.next_up() } else { near }
}

//! Natural neighbor interpolation (Sibson 1981, *A brief description of natural neighbour interpolation*).
//!
//! Inserted into the triangulation, a position takes its Voronoi cell from the cells of its natural neighbors. The weight of a neighbor
//! is the area taken from it. That region is bounded by the side that the new cell shares with the neighbor's, and by the circumcenters of
//! the old triangles at the neighbor that the new position is in the circumcircle of. These are found one after another around the
//! neighbor, so no list is needed.

use super::apex::{Apex, Vertex};
use super::tree::{Missing, Points};
use super::triangles::nearest;

/// Returns the height at a position in steps, or [`Missing::NoValue`] unless it is a point or strictly inside of the triangulation. If only
/// a part of the cloud is known, its convex hull has to be.
///
/// # Safety
/// As [`Points::search`].
#[inline(always)]
pub unsafe fn natural_neighbor<P: Points>(points: &P, position: [i32; 2]) -> Result<f64, Missing> {
    let center = Vertex::at(position);
    let (first, distance2) = nearest(points, position, None, center.slot)?;
    let reference = f64::from(points.height(first.slot));
    if distance2 == 0 {
        return Ok(reference);
    }
    // The neighbors in counterclockwise order, and the corners of the new cell, relative to the position.
    let (mut previous, mut current) = (first, first);
    let mut last_corner = [0.0; 2];
    let (mut weighted, mut weights) = (0.0, 0.0);
    loop {
        let (next, corner) = third(points, center, current)?;
        if previous != current {
            let offset = center.to(current.position).map(f64::from);
            let mut area = cross(last_corner, corner);
            let (mut edge_end, mut at) = (next, corner);
            while edge_end != previous {
                let (apex, circumcenter) = third(points, current, edge_end)?;
                let old_corner = [offset[0] + circumcenter[0], offset[1] + circumcenter[1]];
                area += cross(at, old_corner);
                (edge_end, at) = (apex, old_corner);
            }
            area += cross(at, last_corner);
            weights += area;
            weighted += area * (f64::from(points.height(current.slot)) - reference);
            if current == first {
                return Ok(reference + weighted / weights);
            }
        }
        (previous, current, last_corner) = (current, next, corner);
    }
}

/// Returns the third corner of the triangle to the left of an edge, and its circumcenter relative to the start of the edge.
#[inline(always)]
unsafe fn third<P: Points>(points: &P, from: Vertex, to: Vertex) -> Result<(Vertex, [f64; 2]), Missing> {
    let mut apex = Apex::new(from, to);
    points.search(Some(to.slot), &mut apex);
    let vertex = apex.vertex()?;
    apex.check_circle(points)?;
    Ok((vertex, apex.center()))
}

#[inline(always)]
fn cross(a: [f64; 2], b: [f64; 2]) -> f64 {
    a[0] * b[1] - a[1] * b[0]
}

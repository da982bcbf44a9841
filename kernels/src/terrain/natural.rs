//! Natural neighbor interpolation (Sibson 1981, *A brief description of natural neighbour interpolation*).
//!
//! Inserted into the triangulation, a position takes its Voronoi cell from the cells of its natural neighbors. The weight of a neighbor
//! is the area taken from it. That region is bounded by the side that the new cell shares with the neighbor's, and by the circumcenters of
//! the old triangles at the neighbor that the new position is in the circumcircle of. These are found one after another around the
//! neighbor, so no list is needed.

use super::apex::{Apex, Vertex};
use super::tree::{PointTree, search};
use super::triangles::nearest;

/// Returns the height at a position in steps; `None` unless it is a point or strictly inside of the triangulation.
///
/// # Safety
/// As [`search`]; `heights` returns the height of each slot.
#[inline(always)]
pub unsafe fn natural_neighbor<T: PointTree>(
    tree: &T,
    heights: impl Fn(u32) -> i32,
    position: [i32; 2],
) -> Option<f64> {
    let center = Vertex::at(position);
    let (first, distance2) = nearest(tree, position, None, center.slot)?;
    let reference = f64::from(heights(first.slot));
    if distance2 == 0 {
        return Some(reference);
    }
    // The neighbors in counterclockwise order, and the corners of the new cell, relative to the position.
    let (mut previous, mut current) = (first, first);
    let mut last_corner = [0.0; 2];
    let (mut weighted, mut weights) = (0.0, 0.0);
    loop {
        let (next, corner) = third(tree, center, current)?;
        if previous != current {
            let offset = center.to(current.position).map(f64::from);
            let mut area = cross(last_corner, corner);
            let (mut edge_end, mut at) = (next, corner);
            while edge_end != previous {
                let (apex, circumcenter) = third(tree, current, edge_end)?;
                let old_corner = [offset[0] + circumcenter[0], offset[1] + circumcenter[1]];
                area += cross(at, old_corner);
                (edge_end, at) = (apex, old_corner);
            }
            area += cross(at, last_corner);
            weights += area;
            weighted += area * (f64::from(heights(current.slot)) - reference);
            if current == first {
                return Some(reference + weighted / weights);
            }
        }
        (previous, current, last_corner) = (current, next, corner);
    }
}

/// Returns the third corner of the triangle to the left of an edge, and its circumcenter relative to the start of the edge.
#[inline(always)]
unsafe fn third<T: PointTree>(tree: &T, from: Vertex, to: Vertex) -> Option<(Vertex, [f64; 2])> {
    let mut apex = Apex::new(from, to);
    search(tree, Some(to.slot), &mut apex);
    Some((apex.vertex()?, apex.center()))
}

#[inline(always)]
fn cross(a: [f64; 2], b: [f64; 2]) -> f64 {
    a[0] * b[1] - a[1] * b[0]
}

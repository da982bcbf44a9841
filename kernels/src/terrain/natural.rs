//! Natural neighbor interpolation (Sibson 1981).
//!
//! Inserted into the triangulation, a position takes its Voronoi cell from the cells of its natural neighbors. The weight of a neighbor
//! is the area taken from it. That region is bounded by the side that the new cell shares with the neighbor's, and by the circumcenters of
//! the old triangles at the neighbor that the new position is in the circumcircle of. These are found one after another around the
//! neighbor, so no list is needed.

use super::apex::{Apex, Vertex};
use super::tree::{Lanes, Missing, Points};
use super::triangles::nearest;

/// Returns the height at a position in steps, or [`Missing::NoValue`] unless it is a point or strictly inside of the triangulation. If only
/// a part of the cloud is known, its convex hull has to be.
///
/// # Safety
/// As [`Points::search`].
#[inline(always)]
pub unsafe fn natural_neighbor<P: Points>(points: &P, position: Option<[i32; 2]>) -> Result<f64, Missing> {
    let center = Vertex::at(position.unwrap_or_default());
    let found = nearest(points, position, None, center.slot);
    let (first, distance2) = found.unwrap_or((center, 0));
    let mut height = found.map(|(first, _)| f64::from(points.height(first.slot)));
    let reference = height.unwrap_or_default();
    let mut is_running = distance2 > 0;
    // Three neighbors in counterclockwise order, and the corners of the new cell between them, relative to the position.
    let (mut previous, mut current, mut next) = (first, first, first);
    let [mut last_corner, mut corner] = [[0.0; 2]; 2];
    // Around the current neighbor: the edge whose triangle is next, and the corner of the region before.
    let (mut is_inner, mut edge_end, mut at, mut area) = (false, first, [0.0; 2], 0.0);
    let (mut weighted, mut weights) = (0.0, 0.0);
    while P::Lanes::any(is_running) {
        let (from, to) = if is_inner { (current, edge_end) } else { (center, current) };
        let mut apex = Apex::new(from, if is_running { to } else { from });
        points.search(to.slot(), &mut apex);
        if !is_running {
            continue;
        }
        let found = apex.vertex().and_then(|vertex| apex.check_circle(points).map(|()| vertex));
        let (vertex, circumcenter) = match found {
            Ok(vertex) => (vertex, apex.center()),
            Err(missing) => {
                height = Err(missing);
                is_running = false;
                continue;
            }
        };
        let mut is_finished = !is_inner && previous == current;
        if is_inner {
            let offset = center.to(current.position).map(f64::from);
            let old_corner = [offset[0] + circumcenter[0], offset[1] + circumcenter[1]];
            area += cross(at, old_corner);
            (edge_end, at) = (vertex, old_corner);
            if edge_end == previous {
                area += cross(at, last_corner);
                weights += area;
                weighted += area * (f64::from(points.height(current.slot)) - reference);
                is_running = current != first;
                height = Ok(reference + weighted / weights);
                is_finished = true;
            }
        } else {
            (next, corner) = (vertex, circumcenter);
            (edge_end, at, area) = (next, corner, cross(last_corner, corner));
        }
        is_inner = !is_finished;
        if is_finished {
            (previous, current, last_corner) = (current, next, corner);
        }
    }
    height
}

#[inline(always)]
fn cross(a: [f64; 2], b: [f64; 2]) -> f64 {
    a[0] * b[1] - a[1] * b[0]
}

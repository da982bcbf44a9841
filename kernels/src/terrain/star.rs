//! The Delaunay triangles around a point.

use super::apex::{Apex, Vertex};
use super::tree::Points;
use super::triangles::nearest;

/// Calls `visit` with the triangles of which the point has the least slot, as the slots of the other corners, counterclockwise.
///
/// The triangles around a point are found one after another: from the edge to the nearest point counterclockwise, and, if that ends at
/// the border of the triangulation, from there clockwise.
///
/// # Safety
/// As [`Points::search`]. Positions differ, and all points of the cloud are known.
#[inline(always)]
pub unsafe fn own_triangles<P: Points>(points: &P, slot: u32, mut visit: impl FnMut(u32, u32)) {
    let own = Vertex { position: points.position(slot), slot };
    let Ok((first, _)) = nearest(points, own.position, Some(slot), slot) else { return };
    let (mut neighbor, mut is_clockwise) = (first, false);
    loop {
        let (from, to) = if is_clockwise { (neighbor, own) } else { (own, neighbor) };
        let mut apex = Apex::new(from, to);
        points.search(Some(slot), &mut apex);
        match apex.vertex() {
            Ok(next) => {
                if slot < neighbor.slot && slot < next.slot {
                    let (second, third) = if is_clockwise { (next, neighbor) } else { (neighbor, next) };
                    visit(second.slot, third.slot);
                }
                if next == first {
                    return;
                }
                neighbor = next;
            }
            Err(_) if is_clockwise => return,
            Err(_) => (neighbor, is_clockwise) = (first, true),
        }
    }
}

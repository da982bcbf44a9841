//! The Delaunay triangles around a point.

use super::apex::{Apex, Vertex};
use super::tree::{Lanes, NO_SLOT, Points};
use super::triangles::nearest;

/// Calls `visit` with the triangles of which the point, if there is one, has the least slot, as the slots of the other corners, counterclockwise.
///
/// The triangles around a point are found one after another: from the edge to the nearest point counterclockwise, and, if that ends at
/// the border of the triangulation, from there clockwise.
///
/// # Safety
/// As [`Points::search`]. Positions differ, and all points of the cloud are known.
#[inline(always)]
pub unsafe fn own_triangles<P: Points>(points: &P, slot: Option<u32>, mut visit: impl FnMut(u32, u32)) {
    let position = slot.map(|slot| points.position(slot));
    let own = Vertex { position: position.unwrap_or_default(), slot: slot.unwrap_or(NO_SLOT) };
    let found = nearest(points, position, slot, own.slot);
    let (first, mut is_running) = (found.map_or(own, |(first, _)| first), found.is_ok());
    let (mut neighbor, mut is_clockwise) = (first, false);
    while P::Lanes::any(is_running) {
        let (from, to) = if is_clockwise { (neighbor, own) } else { (own, neighbor) };
        let mut apex = Apex::new(from, if is_running { to } else { from });
        points.search(slot, &mut apex);
        if !is_running {
            continue;
        }
        match apex.vertex() {
            Ok(next) => {
                if own.slot < neighbor.slot && own.slot < next.slot {
                    let (second, third) = if is_clockwise { (next, neighbor) } else { (neighbor, next) };
                    visit(second.slot, third.slot);
                }
                is_running = next != first;
                neighbor = next;
            }
            Err(_) if is_clockwise => is_running = false,
            Err(_) => (neighbor, is_clockwise) = (first, true),
        }
    }
}

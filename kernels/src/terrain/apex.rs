//! The third corner of the Delaunay triangle on one side of an edge.
//!
//! Of all points to the left of a Delaunay edge, the third corner sees the edge under the greatest angle (Lawson 1977): its angle has the
//! least cotangent. The circles through both ends of the edge are ordered by that cotangent, and on the left of the edge each contains
//! the ones before, so the search shrinks one circle, as a search for the nearest point does.
//!
//! All comparisons are exact. Coordinates differ by at most 2^30: cross and scalar products of differences have 62 bits, products of two of them
//! 124. Points on one circle are triangulated as a fan from the one with the least slot, as if it were a little lower on the paraboloid
//! that lifts the plane (Edelsbrunner, Mücke 1990, *Simulation of simplicity*). Slots are ordered by position, so the triangulation
//! depends on positions only.

use super::tree::{Corners, Missing, NO_SLOT, Points, SLACK, Search};
use cuda_std::float::sqrt_f64;

/// A point with its slot, which orders points on one circle. A position that is no point has [`NO_SLOT`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vertex {
    /// The position.
    pub position: [i32; 2],
    /// The slot.
    pub slot: u32,
}

impl Vertex {
    /// Creates a vertex at a position that is no point.
    #[inline(always)]
    pub fn at(position: [i32; 2]) -> Self {
        Self { position, slot: NO_SLOT }
    }

    /// Returns the slot, if it is a point.
    #[inline(always)]
    pub fn slot(&self) -> Option<u32> {
        (self.slot != NO_SLOT).then_some(self.slot)
    }

    /// Returns the vector from this vertex to another position.
    #[inline(always)]
    pub fn to(&self, position: [i32; 2]) -> [i32; 2] {
        [position[0] - self.position[0], position[1] - self.position[1]]
    }
}

/// Returns the cross product: positive if `b` is to the left of `a`.
#[inline(always)]
pub fn cross(a: [i32; 2], b: [i32; 2]) -> i64 {
    a[0] as i64 * b[1] as i64 - a[1] as i64 * b[0] as i64
}

/// The search for the third corner of the triangle to the left of an edge.
#[derive(Clone, Copy, Debug)]
pub struct Apex {
    from: Vertex,
    to: Vertex,
    edge: [i32; 2],
    /// The best point so far.
    best: Vertex,
    /// The cotangent of its angle is `scalar / cross`.
    scalar: i64,
    cross: i64,
    /// The cotangent, rounded; 0 without a point.
    cotangent: f64,
    /// Twice the center of the circle through the edge and the best point, relative to `from`, and the magnitude of the terms of that sum.
    center2: [f64; 2],
    magnitude: [f64; 2],
}

impl Apex {
    /// Starts a search to the left of the edge between two vertices. If they are at one position, no point is found.
    #[inline(always)]
    pub fn new(from: Vertex, to: Vertex) -> Self {
        let edge = from.to(to.position);
        let mut apex = Self {
            from,
            to,
            edge,
            best: Vertex::at([0; 2]),
            scalar: 0,
            cross: 0,
            cotangent: 0.0,
            center2: [0.0; 2],
            magnitude: [0.0; 2],
        };
        // Before there is a point, the circle whose diameter is the edge orders the boxes.
        apex.set_circle();
        apex
    }

    /// Returns the third corner, or [`Missing::NoValue`] if no point is to the left of the edge.
    #[inline(always)]
    pub fn vertex(&self) -> Result<Vertex, Missing> {
        if self.best.slot == NO_SLOT { Err(Missing::NoValue) } else { Ok(self.best) }
    }

    /// Returns the center of the circumcircle relative to the first vertex, if there is a third corner.
    #[inline(always)]
    pub fn center(&self) -> [f64; 2] {
        self.center2.map(|coordinate| 0.5 * coordinate)
    }

    /// Returns [`Missing::Unresolved`] unless all points of the cloud in the circumcircle are among `points`.
    #[inline(always)]
    pub fn check_circle<P: Points>(&self, points: &P) -> Result<(), Missing> {
        let [x, y] = self.center();
        let [from_x, from_y] = self.from.position.map(f64::from);
        points.check_disk([from_x + x, from_y + y], sqrt_f64(x * x + y * y))
    }

    #[inline(always)]
    fn set_circle(&mut self) {
        let [x, y] = self.edge.map(f64::from);
        self.center2 = [x - self.cotangent * y, y + self.cotangent * x];
        self.magnitude = [x.abs() + (self.cotangent * y).abs(), y.abs() + (self.cotangent * x).abs()];
    }

    /// True if of two points on one circle through the edge, the best one and the one at `position`, the latter is the third corner.
    #[inline(always)]
    fn wins_tie(&self, slot: u32, position: [i32; 2]) -> bool {
        let ends = if self.from.slot < self.to.slot { self.from.slot } else { self.to.slot };
        let points = if slot < self.best.slot { slot } else { self.best.slot };
        if points < ends {
            return slot < self.best.slot;
        }
        // The fan's center is an end of the edge; the corner is the point on the circle next to the other end.
        let turn = cross(self.from.to(position), self.from.to(self.best.position));
        if self.from.slot < self.to.slot { turn > 0 } else { turn < 0 }
    }
}

impl Search for Apex {
    type Key = f64;

    #[inline(always)]
    fn bound(&self) -> f64 {
        if self.best.slot == NO_SLOT { f64::INFINITY } else { 0.0 }
    }

    /// Returns the least value in the box of `|r|^2 - r * center2`, which is negative inside the circle; a little less, for rounding errors.
    #[inline(always)]
    fn key(&self, [low, high]: Corners) -> f64 {
        let (low, high) = (self.from.to(low), self.from.to(high));
        // The corner that is farthest to the left.
        let corner = [
            if self.edge[1] > 0 { low[0] } else { high[0] },
            if self.edge[0] > 0 { high[1] } else { low[1] },
        ];
        if cross(self.edge, corner) <= 0 {
            return f64::NAN;
        }
        let mut sum = 0.0;
        for axis in 0..2 {
            let middle = 0.5 * self.center2[axis];
            let at = middle.max(f64::from(low[axis])).min(f64::from(high[axis]));
            sum += at * (at - self.center2[axis]) - SLACK * at.abs() * (at.abs() + self.magnitude[axis]);
        }
        sum
    }

    #[inline(always)]
    fn visit(&mut self, slot: u32, position: [i32; 2]) {
        let (from, to) = (self.from.to(position), self.to.to(position));
        let new_cross = cross(self.edge, from);
        if new_cross <= 0 {
            return;
        }
        let scalar = from[0] as i64 * to[0] as i64 + from[1] as i64 * to[1] as i64;
        let (cross_float, scalar_float) = (new_cross as f64, scalar as f64);
        if self.best.slot != NO_SLOT {
            let scaled = self.cotangent * cross_float;
            if scalar_float - scaled > SLACK * (scalar_float.abs() + scaled.abs()) {
                return;
            }
            let new = scalar as i128 * self.cross as i128;
            let old = self.scalar as i128 * new_cross as i128;
            if new > old || (new == old && !self.wins_tie(slot, position)) {
                return;
            }
        }
        self.best = Vertex { position, slot };
        (self.scalar, self.cross) = (scalar, new_cross);
        self.cotangent = scalar_float / cross_float;
        self.set_circle();
    }
}

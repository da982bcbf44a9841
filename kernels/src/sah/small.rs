//! Small nodes: up to 64 triangles, each a bit (Zhou et al. 2008, section 4.2).

use super::aabb::{Aabb, of_axis};
use super::large::SMALL_TRIANGLES;
use super::model::{Splits, is_above, is_below};

/// Candidates for planes of a small root: both ends of each of its triangles on each axis.
pub const NUM_CANDIDATES: u32 = 6 * SMALL_TRIANGLES;

/// Where a candidate is from: its axis, its triangle, and 1 for the triangle's high end.
#[inline(always)]
pub fn origin(candidate: u32) -> (u32, u32, u32) {
    (candidate / (2 * SMALL_TRIANGLES), candidate / 2 % SMALL_TRIANGLES, candidate % 2)
}

/// The candidate from there.
#[inline(always)]
pub fn candidate(axis: u32, triangle: u32, end: u32) -> u32 {
    2 * (axis * SMALL_TRIANGLES + triangle) + end
}

/// The plane of a candidate, given the box of its triangle.
#[inline(always)]
pub fn plane(candidate: u32, bounds: Aabb) -> f32 {
    let (axis, _, end) = origin(candidate);
    of_axis(if end == 0 { bounds.low } else { bounds.high }, axis)
}

/// The triangles of a small root on each side of a candidate's plane, a bit each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sides {
    /// Those with something below.
    pub below: u64,
    /// Those with something above.
    pub above: u64,
}

impl Sides {
    /// No triangle.
    pub const NONE: Self = Self { below: 0, above: 0 };

    /// Adds a triangle that reaches from `low` to `high` on the plane's axis.
    #[inline(always)]
    pub fn add(&mut self, triangle: u32, low: f32, high: f32, plane: f32) {
        let bit = 1u64 << triangle;
        self.below |= if is_below(low, high, plane) { bit } else { 0 };
        self.above |= if is_above(high, plane) { bit } else { 0 };
    }

    /// Those that are in a node.
    #[inline(always)]
    pub fn of(self, node: u64) -> Self {
        Self { below: self.below & node, above: self.above & node }
    }
}

/// A candidate, and what it costs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Choice {
    /// What the split costs.
    pub cost: f32,
    /// The candidate.
    pub candidate: u32,
}

impl Choice {
    /// None.
    pub const NONE: Self = Self { cost: f32::INFINITY, candidate: u32::MAX };

    /// A candidate of a node; none if its plane is not in the node's box, or its triangle not in the node: between the ends of those that are the cost goes
    /// up or down all the way, so that it is least at one of them.
    #[inline(always)]
    pub fn of(candidate: u32, plane: f32, sides: Sides, node: u64, splits: &Splits) -> Self {
        let (axis, triangle, _) = origin(candidate);
        if node >> triangle & 1 == 0 || !splits.may_be(axis, plane) {
            return Self::NONE;
        }
        let sides = sides.of(node);
        let cost = splits.cost(axis, plane, sides.below.count_ones(), sides.above.count_ones());
        Self { cost, candidate }
    }

    /// The better one, the first of two that cost the same.
    #[inline(always)]
    pub fn or(self, other: Self) -> Self {
        let is_better = other.cost < self.cost || other.cost == self.cost && other.candidate < self.candidate;
        if is_better { other } else { self }
    }
}

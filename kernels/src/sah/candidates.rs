//! Split candidates of small roots, and bit masks of their triangles (Zhou et al. 2008, section 4.2).

use super::cost::{SplitCost, reaches_above, reaches_below};
use super::large_nodes::SMALL_TRIANGLES;
use crate::rays::aabb::{Aabb, component};

/// Split candidates of a small root: both ends of each triangle on each axis.
pub const NUM_CANDIDATES: u32 = 6 * SMALL_TRIANGLES;

/// Decodes a candidate: its axis, its triangle, and 1 for the triangle's high end.
#[inline(always)]
pub fn decode(candidate: u32) -> (u32, u32, u32) {
    (candidate / (2 * SMALL_TRIANGLES), candidate / 2 % SMALL_TRIANGLES, candidate % 2)
}

/// The inverse of [`decode`].
#[inline(always)]
pub fn encode(axis: u32, triangle: u32, end: u32) -> u32 {
    2 * (axis * SMALL_TRIANGLES + triangle) + end
}

/// Returns the plane of a candidate, given the box of its triangle.
#[inline(always)]
pub fn plane_of(candidate: u32, bounds: Aabb) -> f32 {
    let (axis, _, end) = decode(candidate);
    component(if end == 0 { bounds.low } else { bounds.high }, axis)
}

/// Bit masks of the triangles of a small root on both sides of a plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SideMasks {
    /// Triangles that reach below the plane.
    pub below: u64,
    /// Triangles that reach above the plane.
    pub above: u64,
}

impl SideMasks {
    /// Empty masks.
    pub const NONE: Self = Self { below: 0, above: 0 };

    /// Adds a triangle from `low` to `high` on the plane's axis.
    #[inline(always)]
    pub fn add(&mut self, triangle: u32, low: f32, high: f32, plane: f32) {
        let bit = 1u64 << triangle;
        self.below |= if reaches_below(low, high, plane) { bit } else { 0 };
        self.above |= if reaches_above(high, plane) { bit } else { 0 };
    }

    /// Restricts the masks to the triangles of a node.
    #[inline(always)]
    pub fn within(self, node: u64) -> Self {
        Self { below: self.below & node, above: self.above & node }
    }
}

/// A candidate with its cost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Choice {
    /// Cost of the split.
    pub cost: f32,
    /// The candidate.
    pub candidate: u32,
}

impl Choice {
    /// No candidate.
    pub const NONE: Self = Self { cost: f32::INFINITY, candidate: u32::MAX };

    /// Evaluates a candidate for a node. Returns [`NONE`](Self::NONE) unless the plane is strictly inside the node's box and
    /// the candidate's triangle is in the node. Other planes need not be tried: between the ends of the node's triangles the
    /// cost is linear, so it has its minimum at one of them.
    #[inline(always)]
    pub fn evaluate(candidate: u32, plane: f32, sides: SideMasks, node: u64, splits: &SplitCost) -> Self {
        let (axis, triangle, _) = decode(candidate);
        if node >> triangle & 1 == 0 || !splits.is_inside(axis, plane) {
            return Self::NONE;
        }
        let sides = sides.within(node);
        let cost = splits.cost(axis, plane, sides.below.count_ones(), sides.above.count_ones());
        Self { cost, candidate }
    }

    /// Returns the cheaper candidate, of equal costs the one with the smaller number.
    #[inline(always)]
    pub fn better(self, other: Self) -> Self {
        let is_better = other.cost < self.cost || other.cost == self.cost && other.candidate < self.candidate;
        if is_better { other } else { self }
    }
}

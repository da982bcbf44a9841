//! The cost model: the surface area heuristic (MacDonald, Booth 1990), with the constants of Zhou et al. 2008.

use crate::rays::aabb::{Aabb, component, largest_axis};

/// Returns the cost of a leaf: one intersection test per reference.
///
/// An inner node costs a traversal step, plus the costs of its children, each weighted by the probability that a ray that
/// hits the node hits the child: the ratio of their surface areas. The unit is one intersection test.
#[inline(always)]
pub fn leaf_cost(len: u32) -> f32 {
    len as f32
}

/// Returns half the surface area of a box with these sides.
#[inline(always)]
fn half_area([x, y, z]: [f32; 3]) -> f32 {
    x * y + y * z + z * x
}

/// The cost of the splits of a node.
#[derive(Clone, Copy)]
pub struct SplitCost {
    bounds: Aabb,
    /// Reciprocal of the longest side: areas are relative to it, so that they neither overflow nor underflow.
    scale: f32,
    /// Reciprocal of the scaled area of the box.
    inverse: f32,
    step_cost: f32,
}

impl SplitCost {
    /// For a node with this box. `step_cost` is the cost of a traversal step in intersection tests.
    #[inline(always)]
    pub fn new(bounds: Aabb, step_cost: f32) -> Self {
        let sides = bounds.extents();
        let scale = 1.0 / component(sides, largest_axis(sides));
        let [x, y, z] = sides;
        let inverse = 1.0 / half_area([x * scale, y * scale, z * scale]);
        Self { bounds, scale, inverse, step_cost }
    }

    /// True if the plane is strictly inside the box.
    #[inline(always)]
    pub fn is_inside(&self, axis: u32, plane: f32) -> bool {
        plane > component(self.bounds.low, axis) && plane < component(self.bounds.high, axis)
    }

    /// Returns the cost of a split, given the number of references below and above the plane. If the box has no area the
    /// result is not a number or infinite, which no comparison prefers.
    #[inline(always)]
    pub fn cost(&self, axis: u32, plane: f32, num_below: u32, num_above: u32) -> f32 {
        let [below, above] = self.bounds.split_at(axis, plane);
        let area = |bounds: Aabb| {
            let [x, y, z] = bounds.extents();
            half_area([x * self.scale, y * self.scale, z * self.scale])
        };
        let tests = num_below as f32 * area(below) + num_above as f32 * area(above);
        tests * self.inverse + self.step_cost
    }
}

/// True if a triangle from `low` to `high` reaches below the plane. A triangle in the plane counts as below, so that it is
/// on exactly one side.
#[inline(always)]
pub fn reaches_below(low: f32, high: f32, plane: f32) -> bool {
    low < plane || high <= plane
}

/// True if a triangle up to `high` reaches above the plane.
#[inline(always)]
pub fn reaches_above(high: f32, plane: f32) -> bool {
    high > plane
}

/// Cuts off empty space at the sides of a large node. Returns a bit for each side that is cut (low and high side of each
/// axis in turn), because its empty space is more than a fraction `least` of the node's extent, and the remaining box.
#[inline(always)]
pub fn cut_empty_space(node: Aabb, references_box: Aabb, least: f32) -> (u32, Aabb) {
    let (mut sides, mut rest, extents) = (0, node, node.extents());
    for axis in 0..3 {
        let (low, high) = (references_box.low[axis], references_box.high[axis]);
        if low - node.low[axis] > least * extents[axis] {
            sides |= 1 << (2 * axis);
            rest.low[axis] = low;
        }
        if node.high[axis] - high > least * extents[axis] {
            sides |= 2 << (2 * axis);
            rest.high[axis] = high;
        }
    }
    (sides, rest)
}

/// Returns axis and position of the spatial median on the longest axis, or, after `tried_axes` axes, on the longest of the
/// others. None if the box has no interior on that axis.
#[inline(always)]
pub fn spatial_median(bounds: Aabb, tried_axes: u32) -> Option<(u32, f32)> {
    let mut sides = bounds.extents();
    let mut axis = largest_axis(sides);
    for _ in 0..tried_axes {
        for k in 0..3 {
            if axis == k as u32 {
                sides[k] = -1.0;
            }
        }
        axis = largest_axis(sides);
    }
    let (low, high) = (component(bounds.low, axis), component(bounds.high, axis));
    let plane = low + (high - low) * 0.5;
    (plane > low && plane < high).then_some((axis, plane))
}

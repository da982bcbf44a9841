//! What a split costs: the surface area heuristic (MacDonald, Booth 1990), with the constants of Zhou et al. 2008.

use super::aabb::{Aabb, greatest_axis, of_axis};

/// What a node costs that is a leaf: a test for each triangle.
///
/// A node that splits costs a step, and of each child its own cost as often as a ray comes to it: as often as its surface is larger. Tests are
/// the unit.
#[inline(always)]
pub fn leaf_cost(len: u32) -> f32 {
    len as f32
}

/// Half of the surface of a box with these sides.
#[inline(always)]
fn half_area([x, y, z]: [f32; 3]) -> f32 {
    x * y + y * z + z * x
}

/// Splits of a node.
#[derive(Clone, Copy)]
pub struct Splits {
    bounds: Aabb,
    /// One by the longest side: areas are relative to it, so that they neither overflow nor vanish.
    scale: f32,
    /// One by the area of the box.
    inverse: f32,
    step_cost: f32,
}

impl Splits {
    /// Of a node with this box, where a step costs so much as that many tests.
    #[inline(always)]
    pub fn new(bounds: Aabb, step_cost: f32) -> Self {
        let sides = bounds.extents();
        let scale = 1.0 / of_axis(sides, greatest_axis(sides));
        let [x, y, z] = sides;
        let inverse = 1.0 / half_area([x * scale, y * scale, z * scale]);
        Self { bounds, scale, inverse, step_cost }
    }

    /// True if a plane is in the box, and not at its border.
    #[inline(always)]
    pub fn may_be(&self, axis: u32, plane: f32) -> bool {
        plane > of_axis(self.bounds.low, axis) && plane < of_axis(self.bounds.high, axis)
    }

    /// What a split costs that leaves so many triangles below and above its plane; nothing that a comparison takes for less if the box has no area.
    #[inline(always)]
    pub fn cost(&self, axis: u32, plane: f32, num_below: u32, num_above: u32) -> f32 {
        let [below, above] = self.bounds.halves(axis, plane);
        let area = |of: Aabb| {
            let [x, y, z] = of.extents();
            half_area([x * self.scale, y * self.scale, z * self.scale])
        };
        let tests = num_below as f32 * area(below) + num_above as f32 * area(above);
        tests * self.inverse + self.step_cost
    }
}

/// Where a triangle lies that is in a plane: below it, so that it is on one side always.
#[inline(always)]
pub fn is_below(low: f32, high: f32, plane: f32) -> bool {
    low < plane || high <= plane
}

/// True if some of it is above the plane.
#[inline(always)]
pub fn is_above(high: f32, plane: f32) -> bool {
    high > plane
}

/// Empty space at the sides of a large node, which is cut off: the sides that have at least a fraction of the node's extent, a bit for each low and each
/// high side of the axes, and what is left.
#[inline(always)]
pub fn cut_empty_space(node: Aabb, of_triangles: Aabb, least: f32) -> (u32, Aabb) {
    let (mut sides, mut rest, extents) = (0, node, node.extents());
    let mut axis = 0;
    while axis < 3 {
        let (low, high) = (of_triangles.low[axis], of_triangles.high[axis]);
        if low - node.low[axis] > least * extents[axis] {
            sides |= 1 << (2 * axis);
            rest.low[axis] = low;
        }
        if node.high[axis] - high > least * extents[axis] {
            sides |= 2 << (2 * axis);
            rest.high[axis] = high;
        }
        axis += 1;
    }
    (sides, rest)
}

/// The plane in the middle of the longest side of a box, or of the longest but `tried` others; none if that has no middle.
#[inline(always)]
pub fn middle(bounds: Aabb, tried: u32) -> Option<(u32, f32)> {
    let mut sides = bounds.extents();
    let mut axis = greatest_axis(sides);
    let mut i = 0;
    while i < tried {
        let mut k = 0;
        while k < 3 {
            if axis == k as u32 {
                sides[k] = -1.0;
            }
            k += 1;
        }
        axis = greatest_axis(sides);
        i += 1;
    }
    let (low, high) = (of_axis(bounds.low, axis), of_axis(bounds.high, axis));
    let plane = low + (high - low) * 0.5;
    (plane > low && plane < high).then_some((axis, plane))
}

//! The split axis of each node of a complete k-d tree: stored for each node, or in turn by level.

use super::left_balanced::level;
use cuda_std::prelude::*;

/// The axes that the levels of a tree split on in turn, in ascending order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AxisCycle {
    /// A bit for each axis; at least one is set.
    mask: u32,
}

impl AxisCycle {
    /// All axes of points with `dims` coordinates.
    #[inline(always)]
    pub const fn all(dims: u32) -> Self {
        Self { mask: (1 << dims) - 1 }
    }

    /// The axes of a bit mask. An axis on which all points are equal separates none, so the mask is that of the other axes. If it is 0, all
    /// points are equal, and levels split on all axes.
    #[inline(always)]
    pub const fn of_varying(mask: u32, dims: u32) -> Self {
        if mask == 0 { Self::all(dims) } else { Self { mask } }
    }

    /// Returns the bit mask.
    #[inline(always)]
    pub const fn mask(self) -> u32 {
        self.mask
    }

    /// Returns the axis of level 0.
    #[inline(always)]
    pub const fn first(self) -> usize {
        self.mask.trailing_zeros() as usize
    }

    /// Returns the axis of the level below a level that splits on `axis`.
    #[inline(always)]
    pub const fn next(self, axis: usize) -> usize {
        // The bits above the axis.
        let after = self.mask & (u32::MAX - 1) << axis;
        (if after == 0 { self.mask } else { after }).trailing_zeros() as usize
    }

    /// Returns the axis of a level of points with `dims` coordinates.
    #[inline(always)]
    pub const fn of_level(self, level: u32, dims: u32) -> usize {
        // Nearly always; a constant `dims` makes it cheap.
        if self.mask == Self::all(dims).mask {
            return (level % dims) as usize;
        }
        let mut skipped = level % self.mask.count_ones();
        let mut mask = self.mask;
        while skipped > 0 {
            mask &= mask - 1;
            skipped -= 1;
        }
        mask.trailing_zeros() as usize
    }
}

/// The split axes of the nodes that have children.
#[derive(Clone, Copy, KernelArgs)]
pub struct Axes<'a> {
    /// The axis of each node; empty if levels split on axes in turn.
    pub axes: Slice<'a, u8>,
    /// The bit mask of the axes on which the points are not all equal, which levels split on in turn; empty for all axes.
    pub varying: Slice<'a, u32>,
    /// Number of dimensions.
    pub dims: u32,
}

impl Axes<'_> {
    /// Returns the axes that levels split on in turn, unless nodes have axes of their own.
    ///
    /// # Safety
    /// None beyond those of views of device memory.
    #[inline(always)]
    pub unsafe fn cycle(&self) -> AxisCycle {
        let mask = if self.varying.is_empty() { 0 } else { self.varying.load(0) };
        AxisCycle::of_varying(mask, self.dims)
    }

    /// Returns the axis of a node, given [`cycle`](Self::cycle); any axis if it has no children.
    ///
    /// # Safety
    /// None beyond those of views of device memory.
    #[inline(always)]
    pub unsafe fn of(&self, node: u32, cycle: AxisCycle) -> usize {
        if self.axes.is_empty() {
            cycle.of_level(level(node), self.dims)
        } else if (node as usize) < self.axes.len() {
            self.axes.load(node as usize) as usize
        } else {
            0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_take_the_axes_of_the_mask_in_turn() {
        for dims in 1..=8_u32 {
            for mask in 0..1_u32 << dims {
                let axes = (0..dims as usize).filter(|axis| mask == 0 || mask >> axis & 1 == 1).cycle();
                let cycle = AxisCycle::of_varying(mask, dims);
                let mut axis = cycle.first();
                for (level, expected) in (0..32).zip(axes) {
                    assert_eq!(
                        (axis, cycle.of_level(level, dims)),
                        (expected, expected),
                        "{mask:b}, level {level}"
                    );
                    axis = cycle.next(axis);
                }
            }
            assert_eq!(AxisCycle::all(dims), AxisCycle::of_varying(0, dims));
        }
    }
}

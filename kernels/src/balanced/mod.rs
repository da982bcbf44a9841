//! Balanced k-d trees over distinct points (Robinson, *KdTreeGPU*, after Brown 2015, *Building a Balanced k-d Tree in O(kn log n)
//! Time*). One array of ids per axis is sorted once, by super key; the arrays are then partitioned level by level.
//!
//! A *run* is the range of array positions of a subtree. A node is the median of its run. The runs of a level are in order, and the median
//! of a run is between the runs of its children, so at the end the position of a point is its in-order rank. The *address* of a run on its
//! level is its path code from the root, one bit per level: 0 for the less child, 1 for the greater child.

pub mod coordinate_sort;
pub mod distinct;
pub mod in_order;
pub mod multi_gpu;
pub mod paths;
pub mod robinson;
pub mod subtrees;
pub mod verify;
pub mod widen;

use crate::query::left_balanced::{full_tree, num_levels};
use crate::thread::coord::Float;
use crate::thread::order::{Lookup, Order, SuperKey};
use cuda_std::prelude::*;

/// The id of a missing node.
pub const NONE: u32 = u32::MAX;

/// The range of array positions of a subtree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// The first position.
    pub begin: u32,
    /// The number of positions.
    pub len: u32,
}

impl Run {
    /// Returns the run at an address of a level, in a tree over `num_points` points.
    #[inline(always)]
    pub const fn of(address: u32, level: u32, num_points: u32) -> Self {
        let mut run = Self { begin: 0, len: num_points };
        let mut above = level;
        while above > 0 {
            above -= 1;
            run = if address >> above & 1 == 0 { run.less() } else { run.greater() };
        }
        run
    }

    /// Returns the length of the run at an address of a level. A run together with one median after it is halved on each level; the less
    /// child has the smaller half of an odd number. So the bits of the address act as carries, with the bit of the first level as the
    /// lowest.
    #[inline(always)]
    pub const fn len_of(address: u32, level: u32, num_points: u32) -> u32 {
        let carries = (address as u64).reverse_bits() >> 1 >> (63 - level);
        ((num_points as u64 + 1 + carries) >> level).saturating_sub(1) as u32
    }

    /// Returns the number of positions before the median. A run of even length has two medians; the first one counts.
    #[inline(always)]
    pub const fn num_less(self) -> u32 {
        self.len.saturating_sub(1) / 2
    }

    /// Returns the position of the median. The run is not empty.
    #[inline(always)]
    pub const fn median(self) -> u32 {
        self.begin + self.num_less()
    }

    /// Returns the run of the positions before the median.
    #[inline(always)]
    pub const fn less(self) -> Self {
        Self { begin: self.begin, len: self.num_less() }
    }

    /// Returns the run of the positions after the median.
    #[inline(always)]
    pub const fn greater(self) -> Self {
        let before = self.num_less() + 1;
        let len = self.len.saturating_sub(before);
        Self { begin: if self.len == 0 { self.begin } else { self.begin + before }, len }
    }
}

/// Returns the number of levels whose runs are partitioned. The runs of the next level have one to three points, in a tree of at least two
/// points.
pub const fn num_partitions(num_points: u32) -> u32 {
    num_levels(num_points).saturating_sub(2)
}

/// A tree in device memory, or a subtree.
#[derive(Clone, Copy, KernelArgs)]
pub struct Tree<'a, C> {
    /// The coordinates, `dims` per point.
    pub coords: Slice<'a, C>,
    /// Coordinates of a point.
    pub dims: u32,
    /// The point at each address of each level, or [`NONE`].
    pub medians: Slice<'a, u32>,
    /// Number of nodes.
    pub num_nodes: u32,
}

/// Returns the length of the medians of all levels: one level after another, by address.
pub const fn medians_len(num_points: u32) -> usize {
    full_tree(num_levels(num_points)) as usize
}

/// Returns true if point `a` comes before point `b`.
#[inline(always)]
unsafe fn is_before<C: Float>(points: &Lookup<'_, C>, a: u32, b: u32) -> bool {
    let key = |id: u32| points.coords.load(id as usize * points.dims as usize + points.axis as usize);
    SuperKey::is_before(points, (key(a), a), (key(b), b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_runs() {
        for num_points in (0..300).chain([u32::MAX - 1, u32::MAX]) {
            for level in 0..9 {
                for address in 0..1 << level {
                    assert_eq!(
                        Run::len_of(address, level, num_points),
                        Run::of(address, level, num_points).len
                    );
                }
            }
        }
    }
}

//! Balanced k-d trees over distinct points (Robinson, *KdTreeGPU*, after Brown 2015, *Building a Balanced k-d Tree in O(kn log n)
//! Time*), a level at a time from arrays of ids that are sorted once, on every axis by super key.
//!
//! A node is the median of its run: those places of the arrays that its subtree has. Runs of a level are in order, and the median of
//! a run lies between those of its children, so that at last the place of each point is that of a walk in order. The *address* of a
//! run is its way from the root, a bit a level: 0 to the less, 1 to the greater child.

pub mod distinct;
pub mod finish;
pub mod in_order;
pub mod partition;
pub mod paths;
pub mod several;
pub mod subtrees;
pub mod ties;
pub mod verify;

use crate::query::left_balanced::{full_tree, num_levels};
use crate::thread::coord::Coord;
use crate::thread::order::{Lookup, Order, SuperKey};
use cuda_std::prelude::*;

/// No node.
pub const NONE: u32 = u32::MAX;

/// The places of a subtree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// The first.
    pub begin: u32,
    /// How many.
    pub len: u32,
}

impl Run {
    /// That of an address on a level of a tree over `num_points` points.
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

    /// Number of places of an address on a level. A run and the median behind it halve, and of an odd number the less child has the
    /// smaller half; so the bits of the address are carries, the one that is decided first the lowest.
    #[inline(always)]
    pub const fn len_of(address: u32, level: u32, num_points: u32) -> u32 {
        let carries = (address as u64).reverse_bits() >> 1 >> (63 - level);
        ((num_points as u64 + 1 + carries) >> level).saturating_sub(1) as u32
    }

    /// How many lie before the median, of two medians the first.
    #[inline(always)]
    pub const fn num_less(self) -> u32 {
        self.len.saturating_sub(1) / 2
    }

    /// The place of the median; the run is not empty.
    #[inline(always)]
    pub const fn median(self) -> u32 {
        self.begin + self.num_less()
    }

    /// The places before the median.
    #[inline(always)]
    pub const fn less(self) -> Self {
        Self { begin: self.begin, len: self.num_less() }
    }

    /// The places behind the median.
    #[inline(always)]
    pub const fn greater(self) -> Self {
        let before = self.num_less() + 1;
        let len = self.len.saturating_sub(before);
        Self { begin: if self.len == 0 { self.begin } else { self.begin + before }, len }
    }
}

/// Levels whose runs are partitioned; those of the next have one to three points, of a tree of two points and more.
pub const fn num_partitions(num_points: u32) -> u32 {
    num_levels(num_points).saturating_sub(2)
}

/// Medians of all levels, one level behind the other, each by address.
pub const fn medians_len(num_points: u32) -> usize {
    full_tree(num_levels(num_points)) as usize
}

/// Points, in the order that begins on the axis of a level.
#[inline(always)]
fn points_on_level<C>(coords: Slice<'_, C>, dims: u32, level: u32) -> Lookup<'_, C> {
    Lookup { coords, dims, axis: level % dims }
}

/// True if point `a` comes before point `b`.
#[inline(always)]
unsafe fn is_before<C: Coord>(points: &Lookup<'_, C>, a: u32, b: u32) -> bool {
    let key = |id: u32| points.coords.load(id as usize * points.dims as usize + points.axis as usize);
    SuperKey::is_before(points, (key(a), a), (key(b), b))
}

/// What a build writes.
#[derive(Clone, Copy)]
pub struct Nodes<'a> {
    /// The point at each address of each level, or [`NONE`].
    pub medians: SliceMut<'a, u32>,
    /// The less and the greater child of each point, or [`NONE`].
    pub children: SliceMut<'a, u32>,
}

impl Nodes<'_> {
    /// Makes a node of a point: the median of the run of an address. Its parent is there.
    #[inline(always)]
    unsafe fn store(&self, level: u32, address: u32, id: u32) {
        self.medians.store((full_tree(level) + address) as usize, id);
        if level > 0 {
            let parent = self.medians.load((full_tree(level - 1) + address / 2) as usize);
            self.children.store(2 * parent as usize + (address & 1) as usize, id);
        }
    }
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

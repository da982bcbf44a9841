//! A node in memory.

use crate::plain::plain;
use crate::thread::words::{Bits128, join, split};

/// A node: which points it has, and where its children are. Its fields are in memory and in files as they are here.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node {
    /// The first of its points.
    pub start: u32,
    /// One behind the last; the first if it has none.
    pub end: u32,
    /// The first of its 2^D children, which follow each other; 0 if it is a leaf.
    pub first_child: u32,
    /// How far it is from the root, which is 0.
    pub level: u32,
}

plain! { Node { u32, u32, u32, u32 } }

impl Node {
    /// Number of points.
    #[inline(always)]
    pub const fn len(&self) -> u32 {
        self.end - self.start
    }

    /// True if it has no points.
    #[inline(always)]
    pub const fn is_empty(&self) -> bool {
        self.end == self.start
    }

    /// True if it has no children.
    #[inline(always)]
    pub const fn is_leaf(&self) -> bool {
        self.first_child == 0
    }

    /// As it is in memory.
    #[inline(always)]
    pub fn to_bits(self) -> Bits128 {
        Bits128(join([self.start, self.end, 0, 0]), join([self.first_child, self.level, 0, 0]))
    }

    /// Of what is in memory.
    #[inline(always)]
    pub fn from_bits(bits: Bits128) -> Self {
        let ([start, end, ..], [first_child, level, ..]) = (split(bits.0), split(bits.1));
        Self { start, end, first_child, level }
    }
}

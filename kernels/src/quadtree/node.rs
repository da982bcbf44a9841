//! Nodes of a quadtree or an octree.

use crate::plain::plain;
use crate::thread::words::{Bits128, join, split};

/// A node: its range of points in tree order, and its children. Memory and files have this layout.
///
/// ```
/// use kauri_kernels::quadtree::node::Node;
/// let leaf = Node { start: 2, end: 5, first_child: 0, level: 1 };
/// assert!(leaf.is_leaf() && leaf.len() == 3);
/// ```
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node {
    /// The first point of the node.
    pub start: u32,
    /// One after the last point; equal to `start` if there are no points.
    pub end: u32,
    /// The number of the first of its 2^D children, whose numbers are consecutive; 0 for a leaf.
    pub first_child: u32,
    /// Its level; the root is on level 0.
    pub level: u32,
}

plain! { Node { u32, u32, u32, u32 } }

impl Node {
    /// Returns the number of points.
    #[inline(always)]
    pub const fn len(&self) -> u32 {
        self.end - self.start
    }

    /// Returns true if the node has no points.
    #[inline(always)]
    pub const fn is_empty(&self) -> bool {
        self.end == self.start
    }

    /// Returns true if the node has no children.
    #[inline(always)]
    pub const fn is_leaf(&self) -> bool {
        self.first_child == 0
    }

    /// Returns the node as one 128-bit word for loads and stores.
    #[inline(always)]
    pub fn to_bits(self) -> Bits128 {
        Bits128(join([self.start, self.end, 0, 0]), join([self.first_child, self.level, 0, 0]))
    }

    /// Returns the node of a 128-bit word.
    #[inline(always)]
    pub fn from_bits(bits: Bits128) -> Self {
        let ([start, end, ..], [first_child, level, ..]) = (split(bits.0), split(bits.1));
        Self { start, end, first_child, level }
    }
}

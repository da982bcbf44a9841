//! The nodes of a hierarchy: up to four children, with their boxes.

use super::subtree::Subtree;
use crate::plain::plain;
use crate::rays::aabb::Aabb;

/// Most children of a node.
pub const WIDTH: usize = 4;

/// A node: 128 bytes, a line of a GPU's cache. It has no box of its own, since its parent has it.
#[repr(C, align(16))]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Node {
    /// The bounding box of each child.
    pub boxes: [Aabb; WIDTH],
    /// The children: nodes, or ranges of the triangles of all leaves. The first two are there, the others may be [`Subtree::NONE`].
    pub children: [Subtree; WIDTH],
    /// Makes a node as large as a line.
    pub unused: [u32; 4],
}

plain! { Node { [Aabb; WIDTH], [Subtree; WIDTH], [u32; 4] } }

//! The node layout: eight bytes, so that a 32-byte memory transaction fetches four nodes.

/// Maximum depth of a tree: traversal keeps one bit per level in a word of 64.
pub const MAX_DEPTH: u32 = 63;

/// Maximum number of nodes, and of references of all leaves: two bits of a word encode the type of a node.
pub const MAX_NODES: u64 = (1 << 30) - 1;

/// The axis field of a leaf.
const LEAF: u32 = 3;

/// A node of a tree in preorder: the child below the plane of an inner node follows it.
///
/// ```
/// use kauri_kernels::sah::node::Node;
/// let (inner, leaf) = (Node::inner(1, 0.5, 4), Node::leaf(8, 3));
/// assert_eq!((inner.axis(), inner.plane(), inner.above()), (1, 0.5, 4));
/// assert_eq!((leaf.is_leaf(), leaf.begin(), leaf.len()), (true, 8, 3));
/// ```
///
/// Low word: the plane, or the index of a leaf's first reference. High word: the index of the child above, or the number of
/// a leaf's references, then two bits for the axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node(pub u64);

impl Node {
    /// An inner node.
    #[inline(always)]
    pub const fn inner(axis: u32, plane: f32, above: u32) -> Self {
        Self(((above << 2 | axis) as u64) << 32 | plane.to_bits() as u64)
    }

    /// A leaf with `len` references from `begin` on.
    #[inline(always)]
    pub const fn leaf(begin: u32, len: u32) -> Self {
        Self(((len << 2 | LEAF) as u64) << 32 | begin as u64)
    }

    /// True for a leaf.
    #[inline(always)]
    pub const fn is_leaf(self) -> bool {
        self.axis() == LEAF
    }

    /// Axis of the split plane of an inner node.
    #[inline(always)]
    pub const fn axis(self) -> u32 {
        (self.0 >> 32) as u32 & 3
    }

    /// Position of the split plane of an inner node.
    #[inline(always)]
    pub const fn plane(self) -> f32 {
        f32::from_bits(self.0 as u32)
    }

    /// Index of an inner node's child above the plane.
    #[inline(always)]
    pub const fn above(self) -> u32 {
        (self.0 >> 34) as u32
    }

    /// Index of a leaf's first reference.
    #[inline(always)]
    pub const fn begin(self) -> u32 {
        self.0 as u32
    }

    /// Number of a leaf's references.
    #[inline(always)]
    pub const fn len(self) -> u32 {
        (self.0 >> 34) as u32
    }

    /// True for a leaf without references.
    #[inline(always)]
    pub const fn is_empty(self) -> bool {
        self.is_leaf() && self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_numbers_fit() {
        let most = MAX_NODES as u32;
        let leaf = Node::leaf(most, most);
        assert_eq!((leaf.is_leaf(), leaf.begin(), leaf.len()), (true, most, most));
        let inner = Node::inner(2, -1.5, most);
        assert_eq!((inner.axis(), inner.plane(), inner.above()), (2, -1.5, most));
    }
}

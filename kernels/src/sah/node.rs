//! A node in memory: eight bytes, so that a fetch of 32 brings four.

/// Most levels below the root: rays remember a bit a level.
pub const MAX_DEPTH: u32 = 63;

/// Most nodes of a tree, and most triangles of its leaves: two bits of a word say what a node is.
pub const MAX_NODES: u64 = (1 << 30) - 1;

/// In place of an axis: a leaf.
const LEAF: u32 = 3;

/// A node of a tree in preorder: the child below an inner node's plane follows it.
///
/// The low word is the plane, or where the triangles of a leaf begin; the high one the child above, or how many these are, behind two bits
/// for the axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node(pub u64);

impl Node {
    /// A node that has a plane, and children below and above it.
    #[inline(always)]
    pub const fn inner(axis: u32, plane: f32, above: u32) -> Self {
        Self(((above << 2 | axis) as u64) << 32 | plane.to_bits() as u64)
    }

    /// A leaf with some of the listed triangles.
    #[inline(always)]
    pub const fn leaf(begin: u32, len: u32) -> Self {
        Self(((len << 2 | LEAF) as u64) << 32 | begin as u64)
    }

    /// True if it has triangles in place of children.
    #[inline(always)]
    pub const fn is_leaf(self) -> bool {
        self.axis() == LEAF
    }

    /// The axis that the plane of an inner node is across.
    #[inline(always)]
    pub const fn axis(self) -> u32 {
        (self.0 >> 32) as u32 & 3
    }

    /// The plane of an inner node.
    #[inline(always)]
    pub const fn plane(self) -> f32 {
        f32::from_bits(self.0 as u32)
    }

    /// The child above the plane of an inner node.
    #[inline(always)]
    pub const fn above(self) -> u32 {
        (self.0 >> 34) as u32
    }

    /// The first of a leaf's triangles on the list of all leaves.
    #[inline(always)]
    pub const fn begin(self) -> u32 {
        self.0 as u32
    }

    /// How many triangles a leaf has.
    #[inline(always)]
    pub const fn len(self) -> u32 {
        (self.0 >> 34) as u32
    }

    /// True for a leaf without triangles.
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

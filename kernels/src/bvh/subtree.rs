//! References to parts of a tree.

use crate::plain::plain;

/// A part of a tree: the index of a node, or that of the first of a few triangles and their number.
///
/// ```
/// use kauri_kernels::bvh::subtree::Subtree;
/// assert_eq!((Subtree::node(7).index(), Subtree::node(7).num_few()), (7, None));
/// assert_eq!((Subtree::few(9, 2).index(), Subtree::few(9, 2).num_few()), (9, Some(2)));
/// ```
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subtree(pub u32);

plain! { Subtree { u32 } }

impl Subtree {
    const INDEX_BITS: u32 = 30;
    /// The most triangles of a leaf.
    pub const MOST_FEW: u32 = 3;
    /// No subtree.
    pub const NONE: Self = Self(u32::MAX);
    /// No subtree, and the end of a ray.
    pub const ENDED: Self = Self(u32::MAX - 1);

    /// A node.
    #[inline(always)]
    pub const fn node(index: u32) -> Self {
        Self(index)
    }

    /// At least one and at most [`MOST_FEW`](Self::MOST_FEW) triangles.
    #[inline(always)]
    pub const fn few(first: u32, num: u32) -> Self {
        Self(num << Self::INDEX_BITS | first)
    }

    /// The index of the node or of the first triangle.
    #[inline(always)]
    pub const fn index(self) -> u32 {
        self.0 & ((1 << Self::INDEX_BITS) - 1)
    }

    /// The number of triangles, unless it is a node.
    #[inline(always)]
    pub const fn num_few(self) -> Option<u32> {
        if self.is_node() { None } else { Some(self.0 >> Self::INDEX_BITS) }
    }

    /// True for a node.
    #[inline(always)]
    pub const fn is_node(self) -> bool {
        self.0 >> Self::INDEX_BITS == 0
    }
}

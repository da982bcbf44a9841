//! Top nodes: the processed large nodes, which form the upper part of the tree.

use super::large_nodes::SplitPlan;
use crate::plain::plain;

/// A node of the top tree: a processed large node.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct TopNode {
    /// Empty-space cuts and split plane.
    pub plan: SplitPlan,
    /// The child below the plane, or the only child if the node did not split.
    pub below: Child,
    /// The child above the plane; [`Child::NONE`] if the node did not split.
    pub above: Child,
}

plain! {
    Child { u32 }
    TopNode { SplitPlan, Child, Child }
}

/// A child of a top node.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Child(u32);

impl Child {
    const SMALL: u32 = 1 << 31;

    /// No child: the node did not split.
    pub const NONE: Self = Self(u32::MAX);
    /// An empty leaf.
    pub const EMPTY: Self = Self(u32::MAX - 1);

    /// Refers to a top node by its index.
    #[inline(always)]
    pub const fn large(number: u32) -> Self {
        Self(number)
    }

    /// Refers to a small root by its index.
    #[inline(always)]
    pub const fn small(number: u32) -> Self {
        Self(number | Self::SMALL)
    }

    /// Returns the index of a top node, if it is one.
    #[inline(always)]
    pub const fn as_large(self) -> Option<u32> {
        if self.0 & Self::SMALL == 0 { Some(self.0) } else { None }
    }

    /// Returns the index of a small root. The child must be one.
    #[inline(always)]
    pub const fn small_number(self) -> u32 {
        self.0 & !Self::SMALL
    }
}

//! Nodes as the words of a file.

use bytemuck::TransparentWrapper;
use kauri_kernels::quadtree::node::Node;

use crate::memory::Items;

/// A node: four words, which may be any.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub(crate) struct NodeWords(Node);

// SAFETY: four integers, one behind the other.
unsafe impl bytemuck::Zeroable for NodeWords {}
// SAFETY: as above.
unsafe impl bytemuck::Pod for NodeWords {}
// SAFETY: it is transparent.
unsafe impl TransparentWrapper<Node> for NodeWords {}

impl NodeWords {
    /// Nodes in their own memory.
    pub(crate) fn of_nodes(nodes: Vec<Node>) -> Items<Self> {
        // In place: to the allocator both are the same.
        nodes.into_iter().map(Self).collect::<Vec<_>>().into()
    }

    /// Words as nodes.
    pub(crate) fn nodes(words: &[Self]) -> &[Node] {
        Self::peel_slice(words)
    }

    /// The bytes of nodes in a file.
    #[cfg(feature = "io")]
    pub(crate) fn bytes(nodes: &[Node]) -> &[u8] {
        bytemuck::cast_slice(Self::wrap_slice(nodes))
    }
}

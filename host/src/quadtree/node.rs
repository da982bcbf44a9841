//! Nodes in host memory and in files.

use crate::error::{Error, Result};
use crate::memory::Items;
use bytemuck::TransparentWrapper;
use kauri_kernels::quadtree::node::Node;

/// A node as four plain 32-bit words, as files store it.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub(crate) struct NodeWords(Node);

// SAFETY: a node is four `u32` without padding, and any value of them is valid.
unsafe impl bytemuck::Zeroable for NodeWords {}
// SAFETY: as above.
unsafe impl bytemuck::Pod for NodeWords {}
// SAFETY: the type is `repr(transparent)`.
unsafe impl TransparentWrapper<Node> for NodeWords {}

impl NodeWords {
    /// Converts nodes in place.
    pub(crate) fn of_nodes(nodes: Vec<Node>) -> Items<Self> {
        // Types of one layout: `collect` reuses the allocation.
        nodes.into_iter().map(Self).collect::<Vec<_>>().into()
    }

    /// Returns words as nodes.
    pub(crate) fn nodes(words: &[Self]) -> &[Node] {
        Self::peel_slice(words)
    }

    /// Returns the bytes that a file stores for nodes.
    #[cfg(feature = "io")]
    pub(crate) fn bytes(nodes: &[Node]) -> &[u8] {
        bytemuck::cast_slice(Self::wrap_slice(nodes))
    }
}

/// Returns the bytes of a node of a tree: the node itself, and the low corner of its cell.
pub(crate) fn node_bytes(dims: usize) -> u64 {
    (size_of::<Node>() + dims * size_of::<u32>()) as u64
}

/// Checks that node numbers stay below 2^32 when `num_splits` of `num_nodes` nodes split into 2^`dims` children each.
pub(crate) fn check_num_nodes(num_nodes: usize, num_splits: u64, dims: usize) -> Result<()> {
    let (count, max) = (num_nodes as u64 + (num_splits << dims), u64::from(u32::MAX));
    if count > max { Err(Error::TooManyItems { what: "nodes of a quadtree", count, max }) } else { Ok(()) }
}

/// Returns the first node of each level and the number of nodes, given the number of nodes that split on each level.
pub(crate) fn level_begins(splits: &[u32], dims: usize) -> Vec<u32> {
    let mut begins = vec![0, 1];
    for &num in splits.iter().take_while(|&&num| num > 0) {
        begins.push(begins[begins.len() - 1] + (num << dims));
    }
    begins
}

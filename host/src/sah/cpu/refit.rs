//! A tree for triangles that have moved.

use super::super::host::{HostTree, check_size};
use super::{Item, around, items};
use crate::error::Result;
use kauri_kernels::sah::node::Node;
use kauri_kernels::sah::refit::{each_leaf, moved};
use kauri_kernels::sah::triangle::Corners;
use rayon::prelude::*;

/// The tree with its planes moved and its leaves filled anew.
pub(in super::super) fn refit(tree: &HostTree, corners: Vec<Corners>) -> Result<HostTree> {
    let items = items(&corners);
    let bounds = if items.is_empty() { tree.bounds } else { around(&items) };
    let mut nodes: Vec<Node> = tree.nodes.par_iter().map(|&node| moved(node, tree.bounds, bounds)).collect();
    let leaves_of = |item: &Item| {
        let mut leaves = Vec::new();
        each_leaf(|node| nodes[node as usize], item.bounds, |leaf| leaves.push((leaf, item.triangle)));
        leaves
    };
    let mut in_leaves: Vec<(u32, u32)> = items.par_iter().flat_map_iter(leaves_of).collect();
    check_size(0, in_leaves.len() as u64)?;
    in_leaves.par_sort_unstable();
    let mut begin = 0;
    for (place, node) in nodes.iter_mut().enumerate().filter(|(_, node)| node.is_leaf()) {
        let len = in_leaves[begin..].iter().take_while(|(leaf, _)| *leaf as usize == place).count();
        *node = Node::leaf(begin as u32, len as u32);
        begin += len;
    }
    let listed = in_leaves.into_iter().map(|(_, triangle)| triangle).collect();
    Ok(HostTree { bounds, nodes, listed, corners })
}

//! A tree for triangles that have moved.

use super::super::host::{HostTree, check_size};
use super::{Item, extent, items};
use crate::error::Result;
use crate::memory;
use kauri_kernels::sah::node::Node;
use kauri_kernels::sah::refit::{each_leaf, moved};
use kauri_kernels::sah::triangle::Corners;
use rayon::prelude::*;

/// The tree with its planes moved and its leaves filled anew, for as many triangles, one at least.
pub(in super::super) fn refit(tree: &HostTree, corners: Vec<Corners>) -> Result<HostTree> {
    let items = items(&corners);
    let extent = extent(&items);
    let (old, new) = (tree.extent.bounds, extent.bounds);
    let mut nodes: Vec<Node> = tree.nodes.par_iter().map(|&node| moved(node, old, new)).collect();
    let each_of =
        |item: &Item, visit: &mut dyn FnMut(u32)| each_leaf(|node| nodes[node as usize], item.bounds, visit);
    // Counted first: triangles that have moved far may be in nearly all leaves.
    let count = |item: &Item| {
        let mut num = 0u64;
        each_of(item, &mut |_| num += 1);
        num
    };
    let num_listed: u64 = items.par_iter().map(count).sum();
    check_size(0, num_listed)?;
    // Lists of threads are put together.
    memory::check(2 * num_listed * size_of::<(u32, u32)>() as u64, "triangles in leaves")?;
    let leaves_of = |item: &Item| {
        let mut leaves = Vec::new();
        each_of(item, &mut |leaf| leaves.push((leaf, item.triangle)));
        leaves
    };
    let mut in_leaves: Vec<(u32, u32)> = items.par_iter().flat_map_iter(leaves_of).collect();
    in_leaves.par_sort_unstable();
    let mut begin = 0;
    for (place, node) in nodes.iter_mut().enumerate().filter(|(_, node)| node.is_leaf()) {
        let len = in_leaves[begin..].iter().take_while(|(leaf, _)| *leaf as usize == place).count();
        *node = Node::leaf(begin as u32, len as u32);
        begin += len;
    }
    let listed = in_leaves.into_iter().map(|(_, triangle)| triangle).collect();
    Ok(HostTree { extent, nodes, listed, corners })
}

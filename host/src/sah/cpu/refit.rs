//! Refit: a tree for triangles that have moved.

use super::references::{Reference, references_of, scene_extent};
use crate::error::Result;
use crate::memory;
use crate::parallel::{self, TASK_ITEMS};
use crate::sah::host_tree::{HostTree, check_size};
use kauri_kernels::rays::triangle::Corners;
use kauri_kernels::sah::node::Node;
use kauri_kernels::sah::refit::{each_leaf, refit_node};
use rayon::prelude::*;
use std::ops::Range;

/// Number of bounding boxes of a task.
const TASK_BOXES: usize = 256;

/// Returns the tree with moved planes and leaves that are filled again. `corners` has as many triangles as the tree, at least one.
pub(in super::super) fn refit(tree: &HostTree, corners: Vec<Corners>) -> Result<HostTree> {
    let boxes = references_of(&corners);
    let extent = scene_extent(&boxes);
    let (old, new) = (tree.extent.bounds, extent.bounds);
    let moved = |i: usize| refit_node(tree.nodes[i], old, new);
    let mut nodes = parallel::map(tree.nodes.len(), TASK_ITEMS, moved);
    let visit_leaves = |reference: &Reference, visit: &mut dyn FnMut(u32)| {
        each_leaf(|node| nodes[node as usize], reference.bounds, visit);
    };
    // References are counted first: triangles that have moved far may be in nearly all leaves.
    let count = |reference: &Reference| {
        let mut num = 0u64;
        visit_leaves(reference, &mut |_| num += 1);
        num
    };
    let count_of = |range: Range<usize>| boxes[range].iter().map(count).sum::<u64>();
    let num_references = parallel::reduce(boxes.len(), TASK_BOXES, count_of, |a, b| a + b).unwrap_or(0);
    check_size(0, num_references)?;
    // Twice: the lists of the threads are concatenated.
    memory::check(2 * num_references * size_of::<(u32, u32)>() as u64, "triangles in leaves")?;
    let reached_leaves = |range: Range<usize>| {
        let mut leaves = Vec::new();
        for reference in &boxes[range] {
            visit_leaves(reference, &mut |leaf| leaves.push((leaf, reference.triangle)));
        }
        leaves
    };
    let mut by_leaf: Vec<(u32, u32)> = parallel::concat(boxes.len(), TASK_BOXES, reached_leaves);
    by_leaf.par_sort_unstable();
    let mut begin = 0;
    for (index, node) in nodes.iter_mut().enumerate().filter(|(_, node)| node.is_leaf()) {
        let len = by_leaf[begin..].iter().take_while(|(leaf, _)| *leaf as usize == index).count();
        *node = Node::leaf(begin as u32, len as u32);
        begin += len;
    }
    let references = by_leaf.into_iter().map(|(_, triangle)| triangle).collect();
    Ok(HostTree { extent, nodes, references, corners })
}

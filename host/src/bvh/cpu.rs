//! Building and refitting on the CPU: the hierarchy of a GPU, to the last bit.

mod clusters;
mod queries;

use super::host_tree::HostTree;
use crate::error::Result;
use crate::memory;
use crate::parallel::{self, TASK_ITEMS};
use clusters::{Binary, Cluster, clusters_of, merged};
use kauri_kernels::bvh::codes::code;
use kauri_kernels::bvh::leaf::Leaf;
use kauri_kernels::bvh::node::{Node, WIDTH};
use kauri_kernels::bvh::refit::box_of;
use kauri_kernels::bvh::subtree::Subtree;
use kauri_kernels::rays::aabb::Aabb;
use kauri_kernels::rays::extent::Extent;
use rayon::prelude::*;

const LABEL: &str = "bounding volume hierarchy";

/// Returns the temporary bytes of a build: items, codes and numbers, nodes of the binary tree, sizes.
pub(super) fn temp_bytes<L>(num_items: usize) -> u64 {
    let bytes = size_of::<L>() + size_of::<(u64, u32)>() + size_of::<Binary>() + size_of::<[u32; 2]>();
    (num_items * bytes) as u64
}

/// Returns the extent of items, of which there is at least one.
fn extent_of<L: Leaf>(items: &[L]) -> Extent {
    let of = |range: std::ops::Range<usize>| {
        items[range].iter().fold(Extent::EMPTY, |all, item| all.union(Extent::of(item.bounds())))
    };
    parallel::reduce(items.len(), TASK_ITEMS, of, Extent::union).unwrap_or(Extent::ZERO)
}

/// Builds a hierarchy over valid items, in the order of their ids.
pub(super) fn build<L: Leaf>(items: &[L]) -> Result<HostTree<L>> {
    if items.is_empty() {
        let (extent, root) = (Extent::ZERO, Subtree::NONE);
        return Ok(HostTree { extent, root, height: 0, nodes: Vec::new(), items: Vec::new() });
    }
    let (n, extent) = (items.len(), extent_of(items));
    let code_of = |i: usize| (code(items[i].bounds(), extent.bounds), i as u32);
    let mut codes = parallel::collect(n, TASK_ITEMS, LABEL, code_of)?;
    codes.par_sort_unstable();
    let mut binary = memory::filled(n, Binary::NONE, LABEL)?;
    let leaf = |i: usize| Cluster::of_triangle(i, codes[i].1, items[codes[i].1 as usize].bounds());
    let root = merged(clusters_of(&codes, 0, &leaf, &mut binary), 1, 0, &mut binary)[0];
    nodes_of(&binary, root, extent, items)
}

/// Returns the hierarchy of a binary tree.
fn nodes_of<L: Leaf>(binary: &[Binary], root: Cluster, extent: Extent, items: &[L]) -> Result<HostTree<L>> {
    let mut places = memory::vec_with_capacity(binary.len(), LABEL)?;
    let (mut num_nodes, mut num_listed) = (0u32, 0u32);
    let is_root = |number: usize| root.subtree == Subtree::node(number as u32);
    let size_of = |number: usize| if is_root(number) { root.shape.size() } else { binary[number].size };
    for number in 0..binary.len() {
        places.push((num_nodes, num_listed));
        let size = size_of(number);
        num_nodes += (size >> 32) as u32;
        num_listed += size as u32;
    }
    let mut nodes = memory::vec_with_capacity(num_nodes as usize, LABEL)?;
    let mut listed = memory::vec_with_capacity(items.len(), LABEL)?;
    let bounds = |of: Subtree| {
        let i = of.index() as usize;
        if of.num_few() == Some(1) { items[i].bounds() } else { binary[i].bounds }
    };
    let is_part = |of: &Subtree| of.is_node() && size_of(of.index() as usize) == 0;
    let mut list = |few: Subtree| {
        let first = listed.len() as u32;
        ids(binary, few, &mut |id| listed.push(items[id as usize]));
        Subtree::few(first, listed.len() as u32 - first)
    };
    for number in 0..binary.len() {
        if size_of(number) == 0 {
            continue;
        }
        let mut children = binary[number].children.to_vec();
        while let Some(i) = children.iter().position(is_part) {
            let [a, b] = binary[children[i].index() as usize].children;
            children[i] = a;
            children.push(b);
        }
        let mut node = Node::new([Subtree::NONE; WIDTH], [Aabb::EMPTY; WIDTH]);
        for (slot, &child) in children.iter().enumerate() {
            node.set_bounds(slot, bounds(child));
            node.children[slot] =
                if child.is_node() { Subtree::node(places[child.index() as usize].0) } else { list(child) };
        }
        nodes.push(node);
    }
    let (root, height) = match root.subtree.num_few() {
        None => (Subtree::node(places[root.subtree.index() as usize].0), root.shape.height() + 1),
        Some(_) => (list(root.subtree), 0),
    };
    Ok(HostTree { extent, root, height, nodes, items: listed })
}

/// Calls `push` for the items of a subtree with few.
fn ids(binary: &[Binary], of: Subtree, push: &mut impl FnMut(u32)) {
    if of.num_few() == Some(1) {
        return push(of.index());
    }
    let [a, b] = binary[of.index() as usize].children;
    // Of three items, one child is a single one, which comes first.
    let (first, second) = if a.num_few() == Some(1) { (a, b) } else { (b, a) };
    ids(binary, first, push);
    ids(binary, second, push);
}

/// Fits a hierarchy to its items after they have moved. They are in the order of their ids; there is at least one.
pub(super) fn refit<L: Leaf>(tree: &HostTree<L>, items: &[L]) -> Result<HostTree<L>> {
    let moved = |place: usize| items[tree.items[place].id() as usize];
    let items = parallel::collect(items.len(), TASK_ITEMS, LABEL, moved)?;
    let mut nodes = memory::copy(&tree.nodes, LABEL)?;
    // Parents before their children.
    let mut order = memory::vec_with_capacity(nodes.len(), LABEL)?;
    order.extend(tree.root.is_node().then_some(tree.root.index()));
    let mut next = 0;
    while let Some(&node) = order.get(next) {
        order.extend(
            nodes[node as usize].children.iter().filter(|child| child.is_node()).map(|child| child.index()),
        );
        next += 1;
    }
    for &node in order.iter().rev() {
        let mut moved = nodes[node as usize];
        for (slot, child) in
            moved.children.into_iter().enumerate().filter(|(_, child)| *child != Subtree::NONE)
        {
            let bounds = match child.num_few() {
                Some(few) => box_of(few, |i| items[(child.index() + i) as usize]),
                None => nodes[child.index() as usize].all_bounds(),
            };
            moved.set_bounds(slot, bounds);
        }
        nodes[node as usize] = moved;
    }
    Ok(HostTree { extent: extent_of(&items), root: tree.root, height: tree.height, nodes, items })
}

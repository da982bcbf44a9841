//! The tree of rays out of the binary tree: nodes with more than a few triangles, in the order of their numbers, and the triangles of leaves.

use super::clusters::{BinaryTree, Shape};
use super::node::Node;
use super::subtree::Subtree;
use crate::plain::plain;
use crate::policy::PER_ITEM_THREADS;
use crate::rays::aabb::Aabb;
use crate::rays::corners::summary;
use crate::rays::extent::Extent;
use crate::thread::items::own_item;
use crate::thread::words::split;
use cuda_std::prelude::*;

/// The size of a tree.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Summary {
    /// The root.
    pub root: Subtree,
    /// The number of nodes.
    pub num_nodes: u32,
    /// The number of levels of nodes.
    pub height: u32,
    /// The [summary] of the mesh.
    pub found: [u32; summary::WORDS],
}

plain! { Summary { Subtree, u32, u32, [u32; summary::WORDS] } }

/// Writes the size of the tree, and the extent of the scene; one thread. `places` are the sums of the sizes of all nodes before each, and of
/// all; the root is the first of the `clusters`.
#[kernel(family = "bvh", block = 32)]
pub unsafe fn bvh_summary(
    places: Slice<u64>,
    shapes: Slice<u32>,
    clusters: Slice<u64>,
    found: Slice<u32>,
    summary: SliceMut<Summary>,
    extent: SliceMut<Extent>,
) {
    if thread::index_1d_u64() == 0 {
        extent.store(0, Extent::found(found));
        let root = Subtree(split(clusters.load(0))[0]);
        let [_, num_nodes, ..] = split(places.load(places.len() - 1));
        let (root, height) = match root.num_few() {
            None => {
                let height = Shape(shapes.load(root.index() as usize)).height() + 1;
                (Subtree::node(node_index(places, root)), height)
            }
            Some(few) => (Subtree::few(0, few), 0),
        };
        let found = [0, 1, 2, 3, 4, 5, 6, 7].map(|i| found.load(i));
        summary.store(0, Summary { root, num_nodes, height, found });
    }
}

/// Writes the nodes, and the ids of the triangles of leaves; one thread per triangle.
#[kernel(family = "bvh", block = PER_ITEM_THREADS)]
pub unsafe fn bvh_nodes(
    tree: BinaryTree<'_>,
    places: Slice<u64>,
    clusters: Slice<u64>,
    nodes: SliceMut<Node>,
    ids: SliceMut<u32>,
) {
    let Some(i) = own_item(tree.boxes.len()) else { return };
    if i == 0 {
        let root = Subtree(split(clusters.load(0))[0]);
        if let Some(few) = root.num_few() {
            write_ids(tree, root, few, ids);
        }
        return;
    }
    let [first, index, ..] = split(places.load(i));
    if !is_node(places, Subtree::node(i as u32)) {
        return;
    }
    let [a, b] = tree.children(Subtree::node(i as u32));
    // At most two parts: a node has up to four children.
    let (a, b, _, c) = opened(tree, places, a, b, Subtree::NONE);
    let (a, b, c, d) = opened(tree, places, a, b, c);
    let bounds = |of: Subtree| {
        let bounds = if of == Subtree::NONE { Aabb::EMPTY } else { tree.bounds(of) };
        Aabb::from_words(bounds.to_words())
    };
    let boxes = [bounds(a), bounds(b), bounds(c), bounds(d)];
    let (a, first) = moved(tree, a, places, first, ids);
    let (b, first) = moved(tree, b, places, first, ids);
    let (c, first) = moved(tree, c, places, first, ids);
    let (d, _) = moved(tree, d, places, first, ids);
    nodes.store(index as usize, Node::new([a, b, c, d], boxes));
}

/// True for a node of the binary tree that is one of the tree of rays, and not a part of one.
#[inline(always)]
unsafe fn is_node(places: Slice<'_, u64>, of: Subtree) -> bool {
    let i = of.index() as usize;
    of.is_node() && places.load(i) != places.load(i + 1)
}

/// Opens the first of the children that is a part of its parent: one of its own children takes its place. Returns the other one last, or
/// none if there is no part.
#[inline(always)]
unsafe fn opened(
    tree: BinaryTree<'_>,
    places: Slice<'_, u64>,
    a: Subtree,
    b: Subtree,
    c: Subtree,
) -> (Subtree, Subtree, Subtree, Subtree) {
    let is_part = |of: Subtree| of.is_node() && !is_node(places, of);
    if is_part(a) {
        let [a, d] = tree.children(a);
        (a, b, c, d)
    } else if is_part(b) {
        let [b, d] = tree.children(b);
        (a, b, c, d)
    } else if is_part(c) {
        let [c, d] = tree.children(c);
        (a, b, c, d)
    } else {
        (a, b, c, Subtree::NONE)
    }
}

/// Returns a child of a node as it is in the tree of rays, and the place after its triangles, if there are few, whose ids are written.
#[inline(always)]
unsafe fn moved(
    tree: BinaryTree<'_>,
    child: Subtree,
    places: Slice<'_, u64>,
    first: u32,
    ids: SliceMut<'_, u32>,
) -> (Subtree, u32) {
    match child.num_few() {
        _ if child == Subtree::NONE => (child, first),
        None => (Subtree::node(node_index(places, child)), first),
        Some(few) => {
            write_ids(tree, child, few, ids.part(first as usize, few as usize));
            (Subtree::few(first, few), first + few)
        }
    }
}

/// Returns the index of a node of the binary tree among those of the tree of rays.
#[inline(always)]
unsafe fn node_index(places: Slice<'_, u64>, of: Subtree) -> u32 {
    let [_, index, ..] = split(places.load(of.index() as usize));
    index
}

/// Writes the ids of the triangles of a subtree with few.
#[inline(always)]
unsafe fn write_ids(tree: BinaryTree<'_>, of: Subtree, few: u32, ids: SliceMut<'_, u32>) {
    if few == 1 {
        ids.store(0, of.index());
        return;
    }
    let [a, b] = tree.children(of);
    // Of three triangles, one child is a single one.
    let (single, other) = if a.num_few() == Some(1) { (a, b) } else { (b, a) };
    ids.store(0, single.index());
    if few == 2 {
        ids.store(1, other.index());
        return;
    }
    let [a, b] = tree.children(other);
    ids.store(1, a.index());
    ids.store(2, b.index());
}

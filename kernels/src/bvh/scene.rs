//! Access to a hierarchy, in any memory.

use super::leaf::Leaf;
use super::node::{Node, Plane, WIDTH};
use super::subtree::Subtree;
use crate::rays::extent::Extent;
use cuda_std::prelude::*;

/// A hierarchy, in any memory.
pub trait Scene {
    /// The items of its leaves.
    type Leaf: Leaf;
    /// Returns the extent of all items.
    unsafe fn extent(&self) -> Extent;
    /// Returns the root.
    unsafe fn root(&self) -> Subtree;
    /// Returns a node.
    unsafe fn node(&self, node: u32) -> Node;
    /// Returns the children of a node.
    unsafe fn children(&self, node: u32) -> [Subtree; WIDTH];
    /// Returns the low coordinates, or with `side` 1 the high ones, of the boxes of a node's children on an axis.
    unsafe fn plane(&self, node: u32, axis: usize, side: usize) -> Plane;
    /// Returns an item, by its place in the leaves.
    unsafe fn item(&self, place: u32) -> Self::Leaf;
    /// Returns 16 bytes of an item: of a triangle, its coordinates on an axis.
    unsafe fn part(&self, place: u32, part: u32) -> [u32; 4];
}

/// A hierarchy in device memory.
#[derive(Clone, Copy, KernelArgs)]
pub struct DeviceBvh<'a, L: Leaf> {
    /// The nodes.
    pub nodes: Slice<'a, crate::bvh::node::Node>,
    /// The items of all leaves.
    pub items: Slice<'a, L>,
    /// The extent of all items: one element.
    pub extent: Slice<'a, crate::rays::extent::Extent>,
    /// The root, as a [subtree](Subtree).
    pub root: u32,
}

/// The parts of a node, of 16 bytes: six planes, and the children.
const NODE_PARTS: usize = size_of::<Node>() / size_of::<Plane>();
const CHILDREN: usize = 6;

impl<'a, L: Leaf> DeviceBvh<'a, L> {
    /// The nodes as numbers of 4 bytes.
    #[inline(always)]
    unsafe fn parts<T>(&self) -> Slice<'a, T> {
        Slice::from_raw_parts(self.nodes.as_ptr().cast(), self.nodes.len() * NODE_PARTS * WIDTH)
    }
}

impl<L: Leaf> Scene for DeviceBvh<'_, L> {
    type Leaf = L;
    #[inline(always)]
    unsafe fn extent(&self) -> Extent {
        self.extent.load(0)
    }
    #[inline(always)]
    unsafe fn root(&self) -> Subtree {
        Subtree(self.root)
    }
    #[inline(always)]
    unsafe fn node(&self, node: u32) -> Node {
        self.nodes.load(node as usize)
    }
    #[inline(always)]
    unsafe fn children(&self, node: u32) -> [Subtree; WIDTH] {
        self.parts::<Subtree>().load_16::<WIDTH>(node as usize * NODE_PARTS + CHILDREN)
    }
    #[inline(always)]
    unsafe fn plane(&self, node: u32, axis: usize, side: usize) -> Plane {
        // In 32 bits, which are enough for the eight parts of fewer than 2^29 nodes: then an address takes one instruction.
        let of_node = node * NODE_PARTS as u32 + side as u32;
        self.parts::<f32>().load_16::<WIDTH>(of_node as usize + 2 * axis)
    }
    #[inline(always)]
    unsafe fn item(&self, place: u32) -> L {
        self.items.load(place as usize)
    }
    #[inline(always)]
    unsafe fn part(&self, place: u32, part: u32) -> [u32; 4] {
        // In 32 bits, which are enough for the parts of a triangle of each of 2^30 places.
        let parts = size_of::<L>() / 16;
        let all = Slice::from_raw_parts(self.items.as_ptr().cast::<u32>(), self.items.len() * parts * 4);
        all.load_16((place * parts as u32 + part) as usize)
    }
}

//! The check of a finished tree.

use super::host_tree::HostTree;
use crate::error::{Error, Result};
use kauri_kernels::rays::aabb::{Aabb, Side, component};
use kauri_kernels::sah::clip::clipped;
use kauri_kernels::sah::cost::{reaches_above, reaches_below};
use kauri_kernels::sah::node::MAX_DEPTH;

impl HostTree {
    /// Checks that the tree is in preorder, that each plane is inside its node's box, that no node is too deep, and that
    /// each leaf has a reference to every triangle of which a part is in its box.
    pub(super) fn verify(&self) -> Result<()> {
        let corrupt = |node: u32, what: String| Err(Error::corrupt(node as usize, what));
        let (mut next, mut next_reference) = (0, 0);
        let mut stack = vec![(0u32, self.extent.bounds, 0)];
        while let Some((index, bounds, depth)) = stack.pop() {
            let Some(&node) = self.nodes.get(index as usize) else {
                return corrupt(index, format!("there are {} nodes", self.nodes.len()));
            };
            if index != next || depth > MAX_DEPTH {
                return corrupt(index, format!("at depth {depth}, where node {next} was expected"));
            }
            next += 1;
            if node.is_leaf() {
                if node.begin() != next_reference {
                    let what = format!("its triangles begin at {}, not {next_reference}", node.begin());
                    return corrupt(index, what);
                }
                next_reference += node.len();
            } else {
                let [below, above] = bounds.split_at(node.axis(), node.plane());
                if below.is_empty() || above.is_empty() {
                    return corrupt(index, format!("its plane {} is not in its box", node.plane()));
                }
                stack.push((node.above(), above, depth + 1));
                stack.push((index + 1, below, depth + 1));
            }
        }
        if next as usize != self.nodes.len() || next_reference as usize != self.references.len() {
            let (num_nodes, num_references) = (self.nodes.len(), self.references.len());
            let what = format!("there are {num_nodes} nodes, and {num_references} triangles in leaves");
            return corrupt(next, what);
        }
        if let Some(&id) = self.references.iter().find(|&&id| id as usize >= self.corners.len()) {
            return corrupt(0, format!("triangle {id} of {}", self.corners.len()));
        }
        (0..self.corners.len() as u32).try_for_each(|triangle| {
            let bounds = Aabb::of_corners(self.corners[triangle as usize].positions());
            match self.leaf_without(triangle, 0, bounds) {
                None => Ok(()),
                Some(leaf) => {
                    corrupt(leaf, format!("a leaf without triangle {triangle}, which is in its box"))
                }
            }
        })
    }

    /// Returns a leaf of the subtree that lacks a reference to a part of a triangle. A part in the plane may be on either
    /// side.
    fn leaf_without(&self, triangle: u32, index: u32, part: Aabb) -> Option<u32> {
        let node = self.nodes[index as usize];
        if node.is_leaf() {
            let (begin, len) = (node.begin() as usize, node.len() as usize);
            return (!self.references[begin..begin + len].contains(&triangle)).then_some(index);
        }
        let (axis, plane, corners) = (node.axis(), node.plane(), self.corners[triangle as usize].positions());
        let (low, high) = (component(part.low, axis), component(part.high, axis));
        let [below, above] = [index + 1, node.above()];
        if low == plane && high == plane {
            return self.leaf_without(triangle, below, part).and(self.leaf_without(triangle, above, part));
        }
        let straddles = reaches_below(low, high, plane) && reaches_above(high, plane);
        if !straddles {
            return self.leaf_without(triangle, if reaches_above(high, plane) { above } else { below }, part);
        }
        let parts = [Side::Below, Side::Above].map(|side| clipped(corners, part, axis, plane, side));
        let mut children = [below, above].into_iter().zip(parts).filter(|(_, part)| !part.is_empty());
        children.find_map(|(child, part)| self.leaf_without(triangle, child, part))
    }
}

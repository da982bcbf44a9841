//! The check that a tree is the one that a build makes of its points.

use crate::error::{Error, Result};
use crate::memory::vec_with_capacity;
use crate::parallel;
use crate::quadtree::backend::Backend;
use crate::quadtree::node::{child_corner, level_begins};
use crate::quadtree::options::QuadtreeOptions;
use crate::query::ids;
use kauri_kernels::quadtree::frame::Frame;
use kauri_kernels::quadtree::node::Node;
use kauri_kernels::thread::coord::Coord;

/// A tree whose nodes may be arbitrary. It has at least one node, and as many ids as points, each once.
pub(crate) struct Unchecked<'a, C, const D: usize> {
    pub(crate) frame: Frame<D>,
    pub(crate) options: &'a QuadtreeOptions,
    pub(crate) nodes: &'a [Node],
    pub(crate) points: &'a [[C; D]],
    pub(crate) ids: &'a [u32],
}

/// Checks that a tree is the one that a build makes of its points.
pub(crate) fn verify<C: Coord, const D: usize>(tree: &(impl Backend<C> + ?Sized)) -> Result<()> {
    let (outline, nodes, coords, ids) = (tree.outline(), tree.nodes()?, tree.coords()?, tree.ids()?);
    if let Some((place, what)) = ids::first_invalid(&ids)? {
        return Err(Error::corrupt(0, format!("at place {place}: {what}")));
    }
    let unchecked = Unchecked::<C, D> {
        frame: outline.frame(),
        options: &outline.options,
        nodes: &nodes,
        points: coords.as_chunks().0,
        ids: &ids,
    };
    let corners = unchecked.check(Error::corrupt)?;
    if outline.level_begins != level_begins(&nodes) {
        return Err(Error::corrupt(0, format!("its levels begin at {:?}", outline.level_begins)));
    }
    let cells = tree.cells(0..nodes.len() as u32)?;
    let wrong = cells.as_chunks().0.iter().zip(&corners).position(|(cell, expected)| cell != expected);
    wrong.map_or(Ok(()), |i| Err(Error::corrupt(i, format!("its cell is at {:?}", &cells[i * D..][..D]))))
}

impl<C: Coord, const D: usize> Unchecked<'_, C, D> {
    /// Returns the low corners of the nodes' cells if the nodes are the tree over the points in breadth-first order; otherwise the error
    /// that `corrupt` makes of the first wrong node. O(n); allocates the corners.
    pub(crate) fn check(&self, corrupt: impl Fn(usize, String) -> Error) -> Result<Vec<[u32; D]>> {
        let corners = self.check_nodes(&corrupt)?;
        let fault = |i: usize| {
            let node = Some(&self.nodes[i]).filter(|node| node.is_leaf())?;
            Some((i, self.fault_in_points(node, &corners[i])?))
        };
        match parallel::find_some(self.nodes.len(), 1, fault) {
            Some((i, what)) => Err(corrupt(i, what)),
            None => Ok(corners),
        }
    }

    /// Checks the nodes in breadth-first order, so that a parent has determined the point range of a node before the node is checked.
    fn check_nodes(&self, corrupt: &impl Fn(usize, String) -> Error) -> Result<Vec<[u32; D]>> {
        let Self { nodes, options, .. } = *self;
        let (root, num_points) = (nodes[0], self.points.len());
        if (root.start, root.end as usize, root.level) != (0, num_points, 0) {
            return Err(corrupt(0, format!("the root is {root:?}, and there are {num_points} points")));
        }
        let depth = options.depth(&self.frame);
        let mut corners: Vec<[u32; D]> = vec_with_capacity(nodes.len(), "cells of a quadtree")?;
        corners.push([0; D]);
        for (i, node) in nodes.iter().enumerate() {
            // The nodes before `next` are the root, or children of nodes before this one.
            let next = corners.len();
            if i == next {
                return Err(corrupt(i, "it is the child of no node".into()));
            }
            if node.is_leaf() == (node.len() > options.leaf_points && node.level < depth) {
                let (len, leaf_points, level) = (node.len(), options.leaf_points, node.level);
                let is = if node.is_leaf() { "a leaf" } else { "split" };
                let what = format!(
                    "it is {is} with {len} points on level {level}, where leaves have at most {leaf_points} but on level {depth}"
                );
                return Err(corrupt(i, what));
            }
            if node.is_leaf() {
                continue;
            }
            if node.first_child as usize != next {
                return Err(corrupt(i, format!("the first child is {}, not {next}", node.first_child)));
            }
            let Some(children) = nodes.get(next..next + (1 << D)) else {
                return Err(corrupt(i, format!("its children begin at {next} of {} nodes", nodes.len())));
            };
            let (mut start, side) = (node.start, 1 << (self.frame.levels - node.level - 1));
            for (k, child) in children.iter().enumerate() {
                let ends_well = if k + 1 < 1 << D { child.end >= start } else { child.end == node.end };
                if child.start != start || !ends_well || child.level != node.level + 1 {
                    return Err(corrupt(next + k, format!("it is {child:?}, a child of {node:?}")));
                }
                start = child.end;
                corners.push(child_corner(corners[i], k, side));
            }
        }
        Ok(corners)
    }

    /// Returns what is wrong with the points of a leaf, if anything.
    fn fault_in_points(&self, leaf: &Node, corner: &[u32; D]) -> Option<String> {
        let range = leaf.start as usize..leaf.end as usize;
        let (ids, points) = (&self.ids[range.clone()], &self.points[range]);
        if !ids.is_sorted() {
            return Some("its points are not in the order of the input".into());
        }
        // Compare with the corners of the cell, not by the units of the points: this checks the units that a build computes as well.
        let side = 1 << (self.frame.levels - leaf.level);
        let low = self.frame.corner(corner.map(u64::from));
        let high = self.frame.corner(corner.map(|unit| u64::from(unit) + side));
        let is_inside = |point: &[C; D]| {
            let point = point.map(|x| x.to_f64());
            (0..D).all(|axis| low[axis] <= point[axis] && point[axis] < high[axis])
        };
        let outside = points.iter().position(|point| !is_inside(point))?;
        Some(format!("point {} is not in its cell", ids[outside]))
    }
}

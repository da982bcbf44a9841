//! A tree in host memory, and its check.

mod queries;

use super::{QuadtreeOptions, frame_of};
use crate::error::{Error, Result};
use crate::kdtree::Coordinate;
use crate::kdtree::cpu::Corners;
use kauri_kernels::quadtree::node::Node;
use rayon::prelude::*;

/// A tree in host memory.
pub struct HostTree<C> {
    pub(crate) frame: Vec<u64>,
    pub(crate) dims: usize,
    pub(super) options: QuadtreeOptions,
    pub(crate) nodes: Vec<Node>,
    /// The low corner of each node's cell, in units.
    pub(crate) cells: Vec<u32>,
    pub(super) level_begins: Vec<u32>,
    pub(crate) coords: Vec<C>,
    pub(crate) ids: Vec<u32>,
    pub(crate) corners: Corners<C>,
}

impl<C: Coordinate> HostTree<C> {
    /// The low corner of a node's cell.
    pub(super) fn cell(&self, node: u32) -> &[u32] {
        &self.cells[node as usize * self.dims..][..self.dims]
    }

    /// Checks all that a build promises.
    pub(super) fn verify<const D: usize>(&self) -> Result<()> {
        let corrupt = |node: usize, what: String| Err(Error::Corrupt { node: node as u64, what });
        let mut seen = vec![false; self.ids.len()];
        for (place, &id) in self.ids.iter().enumerate() {
            match seen.get_mut(id as usize) {
                Some(seen) if !*seen => *seen = true,
                _ => return corrupt(0, format!("id {id} at place {place} is there twice, or is none")),
            }
        }
        let root = self.nodes[0];
        if (root.start, root.end as usize, root.level) != (0, self.ids.len(), 0) {
            return corrupt(0, "the root has not all points".into());
        }
        // The children of the nodes that split follow each other.
        let mut next = 1;
        for (i, node) in self.nodes.iter().enumerate() {
            if !node.is_leaf() {
                if node.first_child != next {
                    return corrupt(i, format!("the first child is {}, not {next}", node.first_child));
                }
                next += 1 << D;
            }
        }
        if next as usize != self.nodes.len() {
            return corrupt(0, format!("{} nodes, of which {next} are children", self.nodes.len()));
        }
        let wrong = self
            .nodes
            .par_iter()
            .enumerate()
            .find_map_first(|(i, node)| self.wrong::<D>(i, node).map(|what| (i, what)));
        wrong.map_or(Ok(()), |(i, what)| corrupt(i, what))
    }

    /// What is wrong with a node.
    fn wrong<const D: usize>(&self, i: usize, node: &Node) -> Option<String> {
        let frame = frame_of::<D>(&self.frame);
        let (most, deepest) = (self.options.leaf_points, self.options.max_depth.min(frame.levels));
        let of_level = self.level_begins.partition_point(|&begin| begin as usize <= i) as u32 - 1;
        if node.level != of_level {
            return Some(format!("level {}, but it is among those of level {of_level}", node.level));
        }
        if node.is_leaf() == (node.len() > most && node.level < deepest) {
            return Some(format!(
                "{} points, of which a leaf has at most {most}, and first child {}",
                node.len(),
                node.first_child
            ));
        }
        let shift = frame.levels - node.level;
        let cell: [u32; D] = std::array::from_fn(|axis| self.cells[i * D + axis]);
        if !node.is_leaf() {
            let mut at = node.start;
            for child in 0..1_u32 << D {
                let number = (node.first_child + child) as usize;
                let (of, corner) = (&self.nodes[number], &self.cells[number * D..][..D]);
                let expected: [u32; D] =
                    std::array::from_fn(|axis| cell[axis] + ((child >> (D - 1 - axis) & 1) << (shift - 1)));
                if of.start != at || of.end < at || of.level != node.level + 1 || corner != expected {
                    return Some(format!("its child {child} is {of:?} at {corner:?}"));
                }
                at = of.end;
            }
            return (at != node.end).then(|| format!("its children end at {at}, and it at {}", node.end));
        }
        let ids = self.ids.get(node.start as usize..node.end as usize)?;
        if !ids.is_sorted() {
            return Some("its points are not in the order of the input".into());
        }
        let points = self.coords.as_chunks::<D>().0;
        for (&point, id) in points[node.start as usize..node.end as usize].iter().zip(ids) {
            let unit = frame.unit(point);
            let is_inside = (0..D).all(|axis| {
                u64::from(unit[axis]) >> shift == u64::from(cell[axis]) >> shift
                    && u64::from(cell[axis]) & ((1 << shift) - 1) == 0
            });
            if !(frame.has(point) && is_inside) {
                return Some(format!("point {id} is not in its cell"));
            }
        }
        None
    }
}

//! The bounding boxes of large subtrees, with the least id and the number of points of each.
//!
//! Split planes prune little where many points have equal coordinates. A box bounds the distances of all points of a subtree: a traversal
//! skips a subtree whose points are too far, or as far as the worst of the best with greater ids, and it counts a subtree that lies
//! completely within a range without visiting its points.

use kauri_kernels::query::left_balanced::{full_tree, num_levels};
use kauri_kernels::thread::coord::Coord;

use crate::error::Result;
use crate::query::cpu::points;
use crate::query::cpu::traversal::Nodes;
use crate::{memory, parallel};

/// Number of levels of the smallest subtrees that have a box; they have up to 63 points.
const LEAST_LEVELS: u32 = 6;

/// One task computes the boxes of this many of the smallest subtrees.
const TASK_SUBTREES: usize = 64;

/// The least id and the number of points of a subtree.
#[derive(Clone, Copy)]
struct Content {
    least_id: u32,
    len: u32,
}

/// The boxes of all nodes down to the last level with large subtrees, in level order.
pub(crate) struct Boxes<C> {
    /// The least and the greatest coordinates of the points of each subtree.
    corners: Vec<C>,
    contents: Vec<Content>,
}

/// A subtree that has a box.
pub(crate) struct Subtree<'a, C, const D: usize> {
    /// The least and the greatest coordinates.
    pub(crate) corners: &'a [[C; D]; 2],
    pub(crate) least_id: u32,
    /// Number of points.
    pub(crate) len: u32,
}

/// A view of the boxes for points of `D` dimensions.
#[derive(Clone, Copy)]
pub(crate) struct BoxesOf<'a, C, const D: usize> {
    corners: &'a [[[C; D]; 2]],
    contents: &'a [Content],
}

impl<'a, C, const D: usize> BoxesOf<'a, C, D> {
    /// No node has a box.
    pub(crate) const NONE: Self = Self { corners: &[], contents: &[] };

    /// The subtree of a node, if it has a box.
    #[inline(always)]
    pub(crate) fn of(&self, node: usize) -> Option<Subtree<'a, C, D>> {
        let (corners, content) = (self.corners.get(node)?, self.contents.get(node)?);
        Some(Subtree { corners, least_id: content.least_id, len: content.len })
    }
}

impl<C: Coord> Boxes<C> {
    /// Computes the boxes of a tree.
    pub(crate) fn new<const D: usize>(tree: Nodes<'_, C, D>) -> Result<Self> {
        let last_level = num_levels(tree.ids.len() as u32).checked_sub(LEAST_LEVELS);
        let first_of_last = last_level.map_or(0, |level| full_tree(level) as usize);
        let num_boxes = last_level.map_or(0, |level| full_tree(level + 1) as usize);
        let mut boxes: Vec<Found<C, D>> = memory::filled(num_boxes, Found::NONE, "boxes of subtrees")?;
        parallel::for_chunks(&mut boxes[first_of_last..], TASK_SUBTREES, |chunk, boxes| {
            let first = first_of_last + chunk * TASK_SUBTREES;
            for (node, found) in (first..).zip(boxes) {
                let mut level = node..node + 1;
                while level.start < tree.ids.len() {
                    level
                        .clone()
                        .take_while(|&node| node < tree.ids.len())
                        .for_each(|node| found.add(tree, node));
                    level = 2 * level.start + 1..2 * level.end + 1;
                }
            }
        });
        for node in (0..first_of_last).rev() {
            boxes[node] = boxes[2 * node + 1].with(boxes[2 * node + 2]);
            boxes[node].add(tree, node);
        }
        let mut corners: Vec<[[C; D]; 2]> = memory::vec_with_capacity(num_boxes, "boxes of subtrees")?;
        let mut contents = memory::vec_with_capacity(num_boxes, "boxes of subtrees")?;
        corners.extend(boxes.iter().map(|found| found.corners));
        contents.extend(boxes.iter().map(|found| found.content));
        Ok(Self { corners: corners.into_flattened().into_flattened(), contents })
    }

    pub(crate) fn view<const D: usize>(&self) -> BoxesOf<'_, C, D> {
        BoxesOf { corners: points(&self.corners).as_chunks().0, contents: &self.contents }
    }
}

/// The box and content of the points of a subtree so far.
#[derive(Clone, Copy)]
struct Found<C, const D: usize> {
    corners: [[C; D]; 2],
    content: Content,
}

impl<C: Coord, const D: usize> Found<C, D> {
    const NONE: Self = Self {
        corners: [[C::EMPTY[0]; D], [C::EMPTY[1]; D]],
        content: Content { least_id: u32::MAX, len: 0 },
    };

    /// Adds the point of a node, if it has one.
    fn add(&mut self, tree: Nodes<'_, C, D>, node: usize) {
        let (point, least_id) = (tree.points[node], tree.ids[node]);
        // A node without a point has the largest id.
        if !(tree.has_gaps && least_id == u32::MAX) {
            *self = self.with(Self { corners: [point; 2], content: Content { least_id, len: 1 } });
        }
    }

    /// Merges the points of another subtree.
    fn with(self, other: Self) -> Self {
        let ([low, high], [other_low, other_high]) = (self.corners, other.corners);
        let low = std::array::from_fn(|axis| low[axis].min(other_low[axis]));
        let high = std::array::from_fn(|axis| high[axis].max(other_high[axis]));
        let least_id = self.content.least_id.min(other.content.least_id);
        let len = self.content.len + other.content.len;
        Self { corners: [low, high], content: Content { least_id, len } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kauri_kernels::query::axes::AxisCycle;
    use kauri_kernels::query::left_balanced::subtree_size;

    /// The nodes of the subtree of a node.
    fn nodes_of(node: usize, n: usize) -> Vec<usize> {
        let children = [2 * node + 1, 2 * node + 2].into_iter().filter(|&child| child < n);
        children.flat_map(|child| nodes_of(child, n)).chain([node]).collect()
    }

    #[test]
    fn boxes_are_those_of_the_points_of_subtrees() {
        for n in [0_usize, 1, 31, 32, 33, 63, 64, 100, 200, 1000] {
            let points: Vec<_> =
                (0..n).map(|i| [(i * 7919 % 101) as f32, -((i * 104729 % 97) as f32)]).collect();
            let mut ids: Vec<_> = (0..n).map(|i| ((i * 37 + 5) % n.max(1)) as u32).collect();
            for has_gaps in [false, true] {
                if has_gaps && n > 100 {
                    ids[n - 1] = u32::MAX;
                }
                let (axes, cycle) = (&[], AxisCycle::all(2));
                let tree = Nodes { points: &points, ids: &ids, axes, cycle, has_gaps, boxes: BoxesOf::NONE };
                let boxes = Boxes::new(tree).unwrap();
                let num = (0..n).take_while(|&node| boxes.view::<2>().of(node).is_some()).count();
                assert_eq!(num > 0, n >= 32);
                for node in 0..num {
                    let of = nodes_of(node, n).into_iter().filter(|&node| ids[node] < u32::MAX || !has_gaps);
                    let of: Vec<_> = of.collect();
                    let subtree = boxes.view::<2>().of(node).unwrap();
                    assert_eq!(subtree.len as usize, of.len());
                    assert!(has_gaps || subtree.len == subtree_size(node as u32, n as u32));
                    assert_eq!(Some(subtree.least_id), of.iter().map(|&node| ids[node]).min());
                    let corner = |axis: usize, max: fn(f32, f32) -> f32| {
                        of.iter().map(|&node| points[node][axis]).reduce(max).unwrap()
                    };
                    assert_eq!(
                        *subtree.corners,
                        [f32::min, f32::max].map(|of| [corner(0, of), corner(1, of)])
                    );
                }
            }
        }
    }
}

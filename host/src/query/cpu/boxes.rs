//! The bounding boxes of subtrees, with the least id and the number of points of each.
//!
//! Split planes prune little where many points have equal coordinates. A box bounds the distances of all points of a subtree: a traversal
//! skips a subtree whose points are too far, or as far as the worst of the best with greater ids, and it counts a subtree that lies
//! completely within a range without visiting its points.

use kauri_kernels::query::buckets::NO_POINT;
use kauri_kernels::thread::coord::Coord;

use crate::error::Result;
use crate::memory;
use crate::query::cpu::points;

/// The least id and the number of points of a subtree.
#[derive(Clone, Copy)]
struct Content {
    least_id: u32,
    len: u32,
}

/// The boxes of the subtrees of top nodes, in level order. A tree without top nodes has one box.
pub(crate) struct Boxes<C> {
    /// The least and the greatest coordinates of the points of each subtree.
    corners: Vec<C>,
    contents: Vec<Content>,
}

/// A subtree.
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
    /// The subtree of a top node.
    #[inline(always)]
    pub(crate) fn of(&self, node: usize) -> Subtree<'a, C, D> {
        let (corners, content) = (&self.corners[node], self.contents[node]);
        Subtree { corners, least_id: content.least_id, len: content.len }
    }
}

impl<C: Coord> Boxes<C> {
    /// Returns the bytes of a box.
    pub(crate) fn bytes_each<const D: usize>() -> usize {
        size_of::<Found<C, D>>()
    }

    /// Stores the boxes of a tree.
    pub(crate) fn new<const D: usize>(boxes: &[Found<C, D>]) -> Result<Self> {
        let corners = memory::collect(boxes.iter().map(|found| found.corners), "boxes of subtrees")?;
        let contents = memory::collect(boxes.iter().map(|found| found.content), "boxes of subtrees")?;
        Ok(Self { corners: corners.into_flattened().into_flattened(), contents })
    }

    pub(crate) fn view<const D: usize>(&self) -> BoxesOf<'_, C, D> {
        BoxesOf { corners: points(&self.corners).as_chunks().0, contents: &self.contents }
    }

    /// Renumbers the points by `ids`, which are ascending.
    pub(crate) fn renumber(&mut self, ids: &[u32]) {
        for Content { least_id, .. } in &mut self.contents {
            *least_id = ids.get(*least_id as usize).copied().unwrap_or(NO_POINT);
        }
    }
}

/// The box and content of the points of a subtree so far.
#[derive(Clone, Copy)]
pub(crate) struct Found<C, const D: usize> {
    corners: [[C; D]; 2],
    content: Content,
}

impl<C: Coord, const D: usize> Found<C, D> {
    pub(crate) const NONE: Self = Self {
        corners: [[C::EMPTY[0]; D], [C::EMPTY[1]; D]],
        content: Content { least_id: NO_POINT, len: 0 },
    };

    /// Adds a point, unless its id is that of no point.
    pub(crate) fn add(&mut self, point: [C; D], id: u32) {
        if id != NO_POINT {
            *self = self.with(Self { corners: [point; 2], content: Content { least_id: id, len: 1 } });
        }
    }

    /// Merges the points of another subtree.
    pub(crate) fn with(self, other: Self) -> Self {
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
    use crate::query::cpu::CpuIndex;
    use kauri_kernels::query::axes::AxisCycle;

    /// The nodes of the subtree of a node.
    fn nodes_of(node: usize, n: usize) -> Vec<usize> {
        let children = [2 * node + 1, 2 * node + 2].into_iter().filter(|&child| child < n);
        children.flat_map(|child| nodes_of(child, n)).chain([node]).collect()
    }

    #[test]
    fn boxes_are_those_of_the_points_of_subtrees() {
        for n in [1_usize, 31, 32, 33, 63, 64, 100, 200, 1000] {
            let points: Vec<_> =
                (0..n).map(|i| [(i * 7919 % 101) as f32, -((i * 104729 % 97) as f32)]).collect();
            let mut ids: Vec<_> = (0..n).map(|i| ((i * 37 + 5) % n) as u32).collect();
            for last_has_point in [true, false] {
                if n > 100 && !last_has_point {
                    ids[n - 1] = NO_POINT;
                }
                let (axes, cycle) = (Vec::new().into(), AxisCycle::all(2));
                let index = CpuIndex::new(n, axes, cycle, None, |node, _| (points[node], ids[node])).unwrap();
                for node in 0..index.nodes::<2>().top.len().max(1) {
                    let of: Vec<_> =
                        nodes_of(node, n).into_iter().filter(|&node| ids[node] != NO_POINT).collect();
                    let subtree = index.nodes::<2>().boxes.of(node);
                    assert_eq!(subtree.len as usize, of.len());
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

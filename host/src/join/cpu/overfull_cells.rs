//! K-d trees over the points of overfull cells on the CPU.
//!
//! The length of a cell follows from the distance and the extent of both sets, not from the number of points in it: equal points, a dense
//! cluster or a far outlier put any number of points in one cell. Each cell with many points has a small k-d tree with a tight box per
//! node. A search visits only the nodes that the ball around the probe point cuts, and counts a node inside the ball without visiting its
//! points. The points of such a cell have a second copy in the order of the tree; the set itself stays in the order of ids, which is the
//! order of results.

use crate::error::Result;
use crate::join::params::JoinParams;
use crate::memory::{self, Parts};
use crate::parallel;
use kauri_kernels::thread::coord::Float;
use kauri_kernels::thread::measure::{along, along_to_range};
use std::ops::{ControlFlow, Range};

/// Most points of a cell without a tree.
const MAX_POINTS: usize = 256;
/// Most points of a leaf.
const LEAF: usize = 32;
/// Most points of a subtree that one task builds.
const SEQUENTIAL: usize = 4096;

/// A range of points of neighbor cells: an overfull cell to search by its tree, or points to scan.
pub(super) struct Segment {
    pub(super) positions: Range<usize>,
    /// The index of the tree if the segment is an overfull cell.
    pub(super) tree: Option<usize>,
}

/// The trees of all overfull cells of a set.
pub(super) struct OverfullCells<C, const D: usize> {
    trees: Vec<CellTree>,
    items: Vec<TreePoint<C, D>>,
    pub(super) nodes: Vec<TreeNode<C, D>>,
}

/// The tree of a cell.
struct CellTree {
    /// The positions of the cell's points in the set.
    positions: Range<usize>,
    first_item: usize,
    first_node: usize,
    /// Levels below the root.
    levels: u32,
}

/// A point and its position in the set.
#[derive(Clone, Copy)]
pub(super) struct TreePoint<C, const D: usize> {
    point: [C; D],
    pub(super) position: u32,
}

/// Bounding box and positions of the points below a node.
#[derive(Clone, Copy)]
pub(super) struct TreeNode<C, const D: usize> {
    low: [C; D],
    high: [C; D],
    /// The first and the last position. Positions in a cell are in the order of ids.
    pub(super) positions: [u32; 2],
}

impl<C: Float, const D: usize> TreeNode<C, D> {
    fn of(items: &[TreePoint<C, D>]) -> Self {
        let positions = [items[0].position; 2];
        let mut node = Self { low: items[0].point, high: items[0].point, positions };
        for item in items {
            for axis in 0..D {
                node.low[axis] = node.low[axis].min(item.point[axis]);
                node.high[axis] = node.high[axis].max(item.point[axis]);
            }
            node.positions = [node.positions[0].min(item.position), node.positions[1].max(item.position)];
        }
        node
    }

    /// Returns the axis of the longest side.
    fn widest(&self) -> usize {
        let width = |axis: usize| self.high[axis] - self.low[axis];
        (1..D).fold(0, |widest, axis| if width(axis) > width(widest) { axis } else { widest })
    }

    /// True if no point of the node is within the distance.
    ///
    /// The distance to the box is computed with the operations and the order of the distance of two points. Rounding is monotone, so the
    /// computed distance to the box is at most the computed distance to any point in it.
    #[inline(always)]
    fn is_beyond(&self, point: &[C; D], params: &JoinParams<C>) -> bool {
        let along = |axis: usize| along_to_range(point[axis], self.low[axis], self.high[axis], C::ZERO);
        params.norm.put_together(D, along) > params.bound
    }

    /// True if all points of the node are within the distance.
    ///
    /// The farthest corner bounds the computed distance of every point, as in [`is_beyond`](Self::is_beyond).
    #[inline(always)]
    fn is_within(&self, point: &[C; D], params: &JoinParams<C>) -> bool {
        let along = |axis: usize| {
            along(self.low[axis], point[axis], C::ZERO).max(along(self.high[axis], point[axis], C::ZERO))
        };
        params.norm.put_together(D, along) <= params.bound
    }
}

/// Which points below a node a visitor accepts, apart from their distance.
#[derive(PartialEq, Eq)]
pub(super) enum NodeFilter {
    /// No point.
    Skip,
    /// Some points: the search descends to the children.
    Descend,
    /// All points.
    TakeAll,
}

/// Receives the points near a probe point from a tree.
pub(super) trait TreeVisitor<C, const D: usize> {
    /// Says which points below a node are accepted. The nodes of all trees are numbered consecutively.
    fn filter(&self, node: &TreeNode<C, D>, index: usize) -> NodeFilter;

    /// Visits all points below a node that is within the distance and has been accepted as a whole.
    fn visit_all(&mut self, items: &[TreePoint<C, D>]) -> ControlFlow<()> {
        items.iter().try_for_each(|item| self.visit(item))
    }

    /// Visits a point within the distance, below a node that has not been skipped.
    fn visit(&mut self, item: &TreePoint<C, D>) -> ControlFlow<()>;
}

/// A node with its descendants.
#[derive(Clone, Copy)]
pub(super) struct Subtree<'a, C, const D: usize> {
    pub(super) items: &'a [TreePoint<C, D>],
    /// The node, then the descendants of the left child, then as many of the right child, each in the same order.
    pub(super) nodes: &'a [TreeNode<C, D>],
    pub(super) index: usize,
}

impl<C: Float, const D: usize> Subtree<'_, C, D> {
    /// Returns both children, unless the node is a leaf.
    pub(super) fn children(self) -> Option<[Self; 2]> {
        let (items, below) = (self.items.split_at(self.items.len() / 2), &self.nodes[1..]);
        let nodes = below.split_at(below.len() / 2);
        let index = self.index + 1;
        (!below.is_empty()).then_some([
            Self { items: items.0, nodes: nodes.0, index },
            Self { items: items.1, nodes: nodes.1, index: index + nodes.0.len() },
        ])
    }

    /// Visits the points near `point`.
    pub(super) fn search(
        self,
        point: &[C; D],
        params: &JoinParams<C>,
        visitor: &mut impl TreeVisitor<C, D>,
    ) -> ControlFlow<()> {
        let node = &self.nodes[0];
        let filter = visitor.filter(node, self.index);
        if filter == NodeFilter::Skip || node.is_beyond(point, params) {
            return ControlFlow::Continue(());
        }
        if filter == NodeFilter::TakeAll && node.is_within(point, params) {
            return visitor.visit_all(self.items);
        }
        if let Some(children) = self.children() {
            return children.into_iter().try_for_each(|child| child.search(point, params, visitor));
        }
        self.items.iter().try_for_each(|item| match params.is_near(&item.point, point) {
            true => visitor.visit(item),
            false => ControlFlow::Continue(()),
        })
    }
}

impl<C: Float, const D: usize> OverfullCells<C, D> {
    /// Returns no trees.
    pub(super) fn none() -> Self {
        Self { trees: Vec::new(), items: Vec::new(), nodes: Vec::new() }
    }

    /// Builds a tree for each overfull cell of points in the order of their cells.
    pub(super) fn new(codes: &[u64], points: &[[C; D]]) -> Result<Self> {
        let mut cells = Self::none();
        let (mut num_items, mut num_nodes) = (0, 0);
        while let Some(positions) =
            next_overfull_cell(codes, cells.trees.last().map_or(0, |tree| tree.positions.end))
        {
            let levels = positions.len().div_ceil(LEAF).next_power_of_two().ilog2();
            let len = positions.len();
            memory::reserve_more(&mut cells.trees, 1, "overfull cells")?;
            cells.trees.push(CellTree { positions, first_item: num_items, first_node: num_nodes, levels });
            (num_items, num_nodes) = (num_items + len, num_nodes + tree_nodes(levels));
        }
        memory::reserve(&mut cells.items, num_items, "points of overfull cells")?;
        for tree in &cells.trees {
            cells
                .items
                .extend(tree.positions.clone().map(|i| TreePoint { point: points[i], position: i as u32 }));
        }
        let empty = TreeNode { low: [C::ZERO; D], high: [C::ZERO; D], positions: [0; 2] };
        memory::reserve(&mut cells.nodes, num_nodes, "nodes of overfull cells")?;
        cells.nodes.resize(num_nodes, empty);
        let (trees, items) = (&cells.trees, Parts::of_initialized(&mut cells.items));
        let nodes = Parts::of_initialized(&mut cells.nodes);
        parallel::for_each(trees.len(), &|i| {
            let &CellTree { ref positions, first_item, first_node, levels } = &trees[i];
            // SAFETY: the items and nodes of trees do not overlap.
            let (items, nodes) = unsafe {
                let items = items.part(first_item..first_item + positions.len());
                let nodes = nodes.part(first_node..first_node + tree_nodes(levels));
                (items.assume_init_mut(), nodes.assume_init_mut())
            };
            build(items, nodes);
        });
        Ok(cells)
    }

    /// Returns all trees.
    pub(super) fn trees(&self) -> impl ExactSizeIterator<Item = Subtree<'_, C, D>> {
        (0..self.trees.len()).map(|index| self.tree(index))
    }

    /// Returns one tree.
    pub(super) fn tree(&self, index: usize) -> Subtree<'_, C, D> {
        let CellTree { positions, first_item, first_node, levels } = &self.trees[index];
        Subtree {
            items: &self.items[*first_item..first_item + positions.len()],
            nodes: &self.nodes[*first_node..first_node + tree_nodes(*levels)],
            index: *first_node,
        }
    }

    /// Splits a range of whole cells into segments and appends them.
    pub(super) fn append_segments(&self, run: Range<usize>, segments: &mut Vec<Segment>) {
        let mut begin = run.start;
        let mut push = |positions: Range<usize>, tree| {
            if !positions.is_empty() {
                segments.push(Segment { positions, tree });
            }
        };
        let first = self.trees.partition_point(|tree| tree.positions.start < run.start);
        let overfull = self.trees[first..].iter().take_while(|tree| tree.positions.start < run.end);
        for (i, tree) in overfull.enumerate() {
            push(begin..tree.positions.start, None);
            push(tree.positions.clone(), Some(first + i));
            begin = tree.positions.end;
        }
        push(begin..run.end, None);
    }
}

/// Returns the most bytes that trees take per point of a set.
pub(in crate::join) fn tree_bytes<C: Float>(dims: usize) -> usize {
    let point = dims * size_of::<C>();
    // Leaves have at least half of the most points, and there are fewer inner nodes than leaves.
    let nodes = (2 * point + size_of::<[u32; 2]>()).div_ceil(LEAF / 4);
    point + size_of::<C>() + nodes
}

/// Returns the number of nodes of a tree with this many levels below the root.
fn tree_nodes(levels: u32) -> usize {
    (2 << levels) - 1
}

/// Returns the positions of the first overfull cell from a position on where a cell begins.
fn next_overfull_cell(codes: &[u64], from: usize) -> Option<Range<usize>> {
    // A cell with at least twice as many points as a step has its code at two consecutive steps.
    let step = MAX_POINTS / 2;
    let mut at = from;
    while let Some(&code) = codes.get(at + step) {
        if codes[at] == code {
            let before = from.max(at.saturating_sub(step));
            let begin = before + codes[before..at].partition_point(|&other| other < code);
            let end = at + codes[at..].partition_point(|&other| other <= code);
            if end - begin > MAX_POINTS {
                return Some(begin..end);
            }
        }
        at += step;
    }
    None
}

/// Orders the points of a tree and computes its nodes.
fn build<C: Float, const D: usize>(items: &mut [TreePoint<C, D>], nodes: &mut [TreeNode<C, D>]) {
    let Some((node, below)) = nodes.split_first_mut() else { return };
    *node = TreeNode::of(items);
    if below.is_empty() {
        return;
    }
    let (axis, middle, len) = (node.widest(), items.len() / 2, items.len());
    // Equal coordinates are split by position, so that nodes of equal points are ranges of ids.
    items.select_nth_unstable_by_key(middle, |item| (item.point[axis].key(), item.position));
    let (left, right) = items.split_at_mut(middle);
    let (left_nodes, right_nodes) = below.split_at_mut(below.len() / 2);
    if len > SEQUENTIAL {
        parallel::join(|| build(left, left_nodes), || build(right, right_nodes));
    } else {
        build(left, left_nodes);
        build(right, right_nodes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overfull_cells_are_found() {
        let sizes = [
            1,
            MAX_POINTS,
            MAX_POINTS + 1,
            3,
            2,
            5 * MAX_POINTS,
            MAX_POINTS - 1,
            MAX_POINTS + 1,
            MAX_POINTS + 2,
            MAX_POINTS / 2,
            7000,
            1,
        ];
        for skip in 0..sizes.len() {
            let (mut codes, mut expected) = (Vec::new(), Vec::new());
            for (code, &size) in sizes[skip..].iter().enumerate() {
                if size > MAX_POINTS {
                    expected.push(codes.len()..codes.len() + size);
                }
                codes.resize(codes.len() + size, code as u64);
            }
            let points: Vec<_> = (0..codes.len()).map(|i| [i as f32]).collect();
            let cells = OverfullCells::new(&codes, &points).unwrap();
            let found: Vec<_> = cells.trees.iter().map(|tree| tree.positions.clone()).collect();
            assert_eq!(found, expected);
            for (subtree, positions) in cells.trees().zip(expected) {
                assert!(
                    subtree.items.len() == positions.len()
                        && subtree.nodes[0].positions[0] == positions.start as u32
                );
            }
        }
    }

    #[test]
    fn nodes_hold_the_points_below_them() {
        fn check(subtree: Subtree<'_, f64, 2>) -> usize {
            let TreeNode { low, high, positions } = *subtree.nodes[0..1].first().unwrap();
            for item in subtree.items {
                assert!((0..2).all(|axis| low[axis] <= item.point[axis] && item.point[axis] <= high[axis]));
                assert!(positions[0] <= item.position && item.position <= positions[1]);
            }
            match subtree.children() {
                None => {
                    assert!((LEAF / 2..=LEAF).contains(&subtree.items.len()), "{}", subtree.items.len());
                    1
                }
                Some(children) => children.into_iter().map(check).sum(),
            }
        }
        for len in [MAX_POINTS + 1, 511, 512, 513, 10_000] {
            let points: Vec<_> = (0..len).map(|i| [(i * 7919 % 101) as f64, (i % 3) as f64]).collect();
            let cells = OverfullCells::new(&vec![5; len], &points).unwrap();
            let tree = cells.tree(0);
            assert_eq!(tree.nodes.len(), 2 * check(tree) - 1);
            let mut positions: Vec<_> = tree.items.iter().map(|item| item.position as usize).collect();
            positions.sort_unstable();
            assert!(positions.into_iter().eq(0..len));
        }
    }
}

//! Trees over the points of crowded cells.
//!
//! The length of a cell follows from the distance and the extent of both sets, not from the number of points in it: equal points, a
//! dense cluster, or one point far from all others put any number of points in one cell. Each cell with many points has a small k-d
//! tree with a tight box per node, so that a search visits the nodes on the border of a query's ball and its hits, and counts a node
//! that is wholly inside without a look at its points. Points of such a cell have a second copy, in the order of the tree; the set
//! itself stays in the order of ids, which is that of results.

use super::cells::Segment;
use crate::error::Result;
use crate::join::Near;
use crate::memory;
use kauri_kernels::thread::coord::Coord;
use kauri_kernels::thread::measure::{along, along_to_range};
use rayon::prelude::*;
use std::ops::{ControlFlow, Range};

/// Most points of a cell without a tree.
const MOST: usize = 256;
/// Most points of a leaf.
const LEAF: usize = 32;
/// Subtrees of at most this many points are built by one task.
const SEQUENTIAL: usize = 4096;

/// The trees of all crowded cells of a set.
pub(super) struct Crowds<C, const D: usize> {
    trees: Vec<Tree>,
    items: Vec<Item<C, D>>,
    nodes: Vec<Node<C, D>>,
}

/// The tree of a cell.
struct Tree {
    /// The positions of the cell's points in the set.
    lefts: Range<usize>,
    first_item: usize,
    first_node: usize,
    /// Levels below the root.
    levels: u32,
}

/// A point and its position in the set.
#[derive(Clone, Copy)]
pub(super) struct Item<C, const D: usize> {
    point: [C; D],
    pub(super) left: u32,
}

/// What is known of the points below a node.
#[derive(Clone, Copy)]
pub(super) struct Node<C, const D: usize> {
    low: [C; D],
    high: [C; D],
    /// The least and the greatest position. Positions in a cell are in the order of ids.
    pub(super) lefts: [u32; 2],
}

impl<C: Coord, const D: usize> Node<C, D> {
    fn of(items: &[Item<C, D>]) -> Self {
        let mut node = Self { low: items[0].point, high: items[0].point, lefts: [items[0].left; 2] };
        for item in items {
            for axis in 0..D {
                node.low[axis] = node.low[axis].min(item.point[axis]);
                node.high[axis] = node.high[axis].max(item.point[axis]);
            }
            node.lefts = [node.lefts[0].min(item.left), node.lefts[1].max(item.left)];
        }
        node
    }

    /// The axis of the longest side.
    fn widest(&self) -> usize {
        let width = |axis: usize| self.high[axis] - self.low[axis];
        (1..D).fold(0, |widest, axis| if width(axis) > width(widest) { axis } else { widest })
    }

    /// True if no point of the node is within the distance.
    ///
    /// The distance to the nearest place of the box is computed with the operations that compute distances of points, in the same
    /// order. Each of them is rounded, and rounding is monotone: so it is at most the computed distance of any point in the box.
    #[inline(always)]
    fn is_beyond(&self, point: &[C; D], near: &Near<C>) -> bool {
        let along = |axis: usize| along_to_range(point[axis], self.low[axis], self.high[axis], C::ZERO);
        near.norm.put_together(D, along) > near.bound
    }

    /// True if all points of the node are within the distance: its farthest corner is, which bounds the computed distance of every
    /// point as in [`is_beyond`](Self::is_beyond).
    #[inline(always)]
    fn is_within(&self, point: &[C; D], near: &Near<C>) -> bool {
        let along = |axis: usize| {
            along(self.low[axis], point[axis], C::ZERO).max(along(self.high[axis], point[axis], C::ZERO))
        };
        near.norm.put_together(D, along) <= near.bound
    }
}

/// How many of a node's points a search wants, by what is known of them besides their places.
#[derive(PartialEq, Eq)]
pub(super) enum Wanted {
    None,
    /// Some of them: the search goes on below the node.
    Some,
    All,
}

/// A search in a tree.
pub(super) trait Search<C, const D: usize> {
    /// How many points of a node are wanted. The nodes of all trees are numbered.
    fn wants(&self, node: &Node<C, D>, number: usize) -> Wanted;

    /// Takes all points below a node that was wanted as a whole and is within the distance.
    fn take_all(&mut self, items: &[Item<C, D>]) -> ControlFlow<()>;

    /// Takes a point within the distance, of a node of which it wanted some or all.
    fn take(&mut self, item: &Item<C, D>) -> ControlFlow<()>;
}

/// A node with all that is below it.
#[derive(Clone, Copy)]
pub(super) struct Subtree<'a, C, const D: usize> {
    pub(super) items: &'a [Item<C, D>],
    /// The node, then the nodes below it on the left, then as many on the right.
    pub(super) nodes: &'a [Node<C, D>],
    pub(super) number: usize,
}

impl<C: Coord, const D: usize> Subtree<'_, C, D> {
    /// Both halves, unless the node is a leaf.
    pub(super) fn halves(self) -> Option<[Self; 2]> {
        let (items, below) = (self.items.split_at(self.items.len() / 2), &self.nodes[1..]);
        let nodes = below.split_at(below.len() / 2);
        let number = self.number + 1;
        (!below.is_empty()).then_some([
            Self { items: items.0, nodes: nodes.0, number },
            Self { items: items.1, nodes: nodes.1, number: number + nodes.0.len() },
        ])
    }

    /// Takes the points near a point.
    pub(super) fn search(
        self,
        point: &[C; D],
        near: &Near<C>,
        search: &mut impl Search<C, D>,
    ) -> ControlFlow<()> {
        let node = &self.nodes[0];
        let wanted = search.wants(node, self.number);
        if wanted == Wanted::None || node.is_beyond(point, near) {
            return ControlFlow::Continue(());
        }
        if wanted == Wanted::All && node.is_within(point, near) {
            return search.take_all(self.items);
        }
        if let Some(halves) = self.halves() {
            return halves.into_iter().try_for_each(|half| half.search(point, near, search));
        }
        self.items.iter().try_for_each(|item| match near.has(&item.point, point) {
            true => search.take(item),
            false => ControlFlow::Continue(()),
        })
    }
}

impl<C: Coord, const D: usize> Crowds<C, D> {
    /// No trees.
    pub(super) fn none() -> Self {
        Self { trees: Vec::new(), items: Vec::new(), nodes: Vec::new() }
    }

    /// Builds a tree for each crowded cell of points in the order of their cells.
    pub(super) fn new(codes: &[u64], points: &[[C; D]]) -> Result<Self> {
        let mut crowds = Self::none();
        let (mut num_items, mut num_nodes) = (0, 0);
        while let Some(lefts) = next_crowd(codes, crowds.trees.last().map_or(0, |tree| tree.lefts.end)) {
            let levels = lefts.len().div_ceil(LEAF).next_power_of_two().ilog2();
            let len = lefts.len();
            memory::reserve_more(&mut crowds.trees, 1, "crowded cells")?;
            crowds.trees.push(Tree { lefts, first_item: num_items, first_node: num_nodes, levels });
            (num_items, num_nodes) = (num_items + len, num_nodes + num_nodes_of(levels));
        }
        memory::reserve(&mut crowds.items, num_items, "points of crowded cells")?;
        for tree in &crowds.trees {
            crowds
                .items
                .extend(tree.lefts.clone().map(|left| Item { point: points[left], left: left as u32 }));
        }
        let nothing = Node { low: [C::ZERO; D], high: [C::ZERO; D], lefts: [0; 2] };
        memory::reserve(&mut crowds.nodes, num_nodes, "nodes of crowded cells")?;
        crowds.nodes.resize(num_nodes, nothing);
        let mut parts = memory::vec_with_capacity(crowds.trees.len(), "crowded cells")?;
        let (mut items, mut nodes) = (&mut crowds.items[..], &mut crowds.nodes[..]);
        for tree in &crowds.trees {
            let (part, rest) = items.split_at_mut(tree.lefts.len());
            let (part_nodes, rest_nodes) = nodes.split_at_mut(num_nodes_of(tree.levels));
            parts.push((part, part_nodes));
            (items, nodes) = (rest, rest_nodes);
        }
        parts.into_par_iter().for_each(|(items, nodes)| build(items, nodes));
        Ok(crowds)
    }

    /// Nodes of all trees.
    pub(super) fn num_nodes(&self) -> usize {
        self.nodes.len()
    }

    /// The whole trees.
    pub(super) fn trees(&self) -> impl ExactSizeIterator<Item = Subtree<'_, C, D>> {
        (0..self.trees.len()).map(|number| self.tree(number))
    }

    /// A tree.
    pub(super) fn tree(&self, number: usize) -> Subtree<'_, C, D> {
        let Tree { lefts, first_item, first_node, levels } = &self.trees[number];
        Subtree {
            items: &self.items[*first_item..first_item + lefts.len()],
            nodes: &self.nodes[*first_node..first_node + num_nodes_of(*levels)],
            number: *first_node,
        }
    }

    /// Appends the segments of a run of whole cells.
    pub(super) fn cut(&self, run: Range<usize>, segments: &mut Vec<Segment>) {
        let mut begin = run.start;
        let mut push = |lefts: Range<usize>, crowd| {
            if !lefts.is_empty() {
                segments.push(Segment { lefts, crowd });
            }
        };
        let first = self.trees.partition_point(|tree| tree.lefts.start < run.start);
        let crowded = self.trees[first..].iter().take_while(|tree| tree.lefts.start < run.end);
        for (i, tree) in crowded.enumerate() {
            push(begin..tree.lefts.start, None);
            push(tree.lefts.clone(), Some(first + i));
            begin = tree.lefts.end;
        }
        push(begin..run.end, None);
    }
}

/// Most bytes that trees take for each point of a set.
pub(in crate::join) fn crowd_bytes<C: Coord>(dims: usize) -> usize {
    let point = dims * size_of::<C>();
    // Leaves have at least half of the most points, and there are fewer other nodes than leaves.
    let nodes = (2 * point + size_of::<[u32; 2]>()).div_ceil(LEAF / 4);
    point + size_of::<C>() + nodes
}

/// Nodes of a tree with levels below the root.
fn num_nodes_of(levels: u32) -> usize {
    (2 << levels) - 1
}

/// The first crowded cell from a position on, at which a cell begins.
fn next_crowd(codes: &[u64], from: usize) -> Option<Range<usize>> {
    // A cell with more than twice as many points as a step has a code at two steps that follow each other.
    let step = MOST / 2;
    let mut at = from;
    while let Some(&code) = codes.get(at + step) {
        if codes[at] == code {
            let before = from.max(at.saturating_sub(step));
            let begin = before + codes[before..at].partition_point(|&other| other < code);
            let end = at + codes[at..].partition_point(|&other| other <= code);
            if end - begin > MOST {
                return Some(begin..end);
            }
        }
        at += step;
    }
    None
}

/// Orders the points of a tree and sets its nodes.
fn build<C: Coord, const D: usize>(items: &mut [Item<C, D>], nodes: &mut [Node<C, D>]) {
    let Some((node, below)) = nodes.split_first_mut() else { return };
    *node = Node::of(items);
    if below.is_empty() {
        return;
    }
    let (axis, middle, len) = (node.widest(), items.len() / 2, items.len());
    // Equal coordinates are split by position, so that the nodes over equal points are ranges of ids.
    items.select_nth_unstable_by_key(middle, |item| (item.point[axis].key(), item.left));
    let (left, right) = items.split_at_mut(middle);
    let (left_nodes, right_nodes) = below.split_at_mut(below.len() / 2);
    if len > SEQUENTIAL {
        rayon::join(|| build(left, left_nodes), || build(right, right_nodes));
    } else {
        build(left, left_nodes);
        build(right, right_nodes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crowded_cells_are_found() {
        let sizes = [1, MOST, MOST + 1, 3, 2, 5 * MOST, MOST - 1, MOST + 1, MOST + 2, MOST / 2, 7000, 1];
        for skip in 0..sizes.len() {
            let (mut codes, mut expected) = (Vec::new(), Vec::new());
            for (code, &size) in sizes[skip..].iter().enumerate() {
                if size > MOST {
                    expected.push(codes.len()..codes.len() + size);
                }
                codes.resize(codes.len() + size, code as u64);
            }
            let points: Vec<_> = (0..codes.len()).map(|i| [i as f32]).collect();
            let crowds = Crowds::new(&codes, &points).unwrap();
            let found: Vec<_> = crowds.trees.iter().map(|tree| tree.lefts.clone()).collect();
            assert_eq!(found, expected);
            for (subtree, lefts) in crowds.trees().zip(expected) {
                assert!(
                    subtree.items.len() == lefts.len() && subtree.nodes[0].lefts[0] == lefts.start as u32
                );
            }
        }
    }

    #[test]
    fn nodes_hold_the_points_below_them() {
        fn check(subtree: Subtree<'_, f64, 2>) -> usize {
            let Node { low, high, lefts } = *subtree.nodes[0..1].first().unwrap();
            for item in subtree.items {
                assert!((0..2).all(|axis| low[axis] <= item.point[axis] && item.point[axis] <= high[axis]));
                assert!(lefts[0] <= item.left && item.left <= lefts[1]);
            }
            match subtree.halves() {
                None => {
                    assert!((LEAF / 2..=LEAF).contains(&subtree.items.len()), "{}", subtree.items.len());
                    1
                }
                Some(halves) => halves.into_iter().map(check).sum(),
            }
        }
        for len in [MOST + 1, 511, 512, 513, 10_000] {
            let points: Vec<_> = (0..len).map(|i| [(i * 7919 % 101) as f64, (i % 3) as f64]).collect();
            let crowds = Crowds::new(&vec![5; len], &points).unwrap();
            let tree = crowds.tree(0);
            assert_eq!(tree.nodes.len(), 2 * check(tree) - 1);
            let mut lefts: Vec<_> = tree.items.iter().map(|item| item.left as usize).collect();
            lefts.sort_unstable();
            assert!(lefts.into_iter().eq(0..len));
        }
    }
}

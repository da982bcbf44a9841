//! The upper levels of an out-of-core build, and the batches of subtrees below them.

use crate::error::Result;
use crate::memory;
use crate::quadtree::host::Levels;
use crate::quadtree::node::level_begins;
use crate::quadtree::part::{Part, PartAndSplits};
use kauri_kernels::quadtree::node::Node;
use std::ops::Range;

/// A node whose subtree is yet to be built.
pub(crate) struct SubtreeRoot<const D: usize> {
    pub(crate) level: u32,
    /// The low corner of its cell, in units.
    pub(crate) corner: [u32; D],
    /// Its points in the tree.
    pub(crate) points: Range<usize>,
}

/// The nodes of the upper levels, and the subtrees below them that have been built.
pub(crate) struct TopNodes<const D: usize> {
    nodes: Part<D>,
    /// The first node of each level, and the number of nodes.
    level_begins: Vec<usize>,
    below: Levels<D>,
    /// The nodes without children so far, in tree order. Leaves among them are included only if their points are yet to be distributed.
    pub(crate) roots: Vec<BatchRoot>,
    /// The level of the topmost node.
    pub(crate) level: u32,
    /// The number of levels from there down to the counted cells.
    pub(crate) num_levels: u32,
}

/// A node at the end of the upper levels.
#[derive(Clone, Debug)]
pub(crate) struct BatchRoot {
    /// Its range of counted cells.
    pub(crate) cells: Range<u32>,
    /// Its points.
    pub(crate) points: Range<usize>,
    /// Its node number if it splits; then it is on the last level.
    pub(crate) node: Option<usize>,
}

/// Consecutive roots whose subtrees are built together.
#[derive(Clone, Debug)]
pub(crate) struct Batch {
    pub(crate) roots: Range<usize>,
    pub(crate) points: Range<usize>,
}

impl<const D: usize> TopNodes<D> {
    /// Derives upper levels from the counts of cells `num_levels` below `root`: down to the first level on which no node has more than
    /// `max_points` points, or to that of the cells. A tree's root has 2^`frame_levels` units on a side.
    pub(crate) fn of_counts(
        root: &SubtreeRoot<D>,
        counts: &[u32],
        num_levels: u32,
        max_points: usize,
        frame_levels: u32,
        splits: impl Fn(&Node) -> bool,
    ) -> Result<Self> {
        // Exclusive prefix sums of the counts.
        let mut cell_begins = memory::vec_with_capacity(counts.len() + 1, "counts of cells")?;
        let mut end = root.points.start;
        cell_begins.push(end);
        cell_begins.extend(counts.iter().map(|&count| {
            end += count as usize;
            end
        }));
        let cells_of = |level: u32, code: u32| {
            let shift = D as u32 * (num_levels - level);
            code << shift..(code + 1) << shift
        };
        let points_of =
            |cells: &Range<u32>| cell_begins[cells.start as usize]..cell_begins[cells.end as usize];
        let all_fit = |level: u32| {
            (0..1 << (D as u32 * level)).all(|code| points_of(&cells_of(level, code)).len() <= max_points)
        };
        let last = (0..num_levels).find(|&level| all_fit(level)).unwrap_or(num_levels);

        let Range { start, end } = root.points;
        let node = Node { start: start as u32, end: end as u32, first_child: 0, level: root.level };
        let mut nodes = Part::of_node(node, root.corner);
        let (mut codes, mut level_begins, mut roots) = (vec![0], vec![0, 1], Vec::new());
        for level in 0..=last {
            let begin = level_begins[level as usize];
            let mut next_codes = Vec::new();
            for (number, &code) in (begin..).zip(&codes) {
                let (node, cells) = (nodes.nodes[number], cells_of(level, code));
                if level == last || !splits(&node) {
                    let node = splits(&node).then_some(number);
                    roots.push(BatchRoot { points: points_of(&cells), cells, node });
                    continue;
                }
                let child_code = |child: usize| (code << D) + child as u32;
                let side = 1 << (frame_levels - node.level - 1);
                let len = |child: usize| points_of(&cells_of(level + 1, child_code(child))).len() as u32;
                nodes.push_children(number, side, len)?;
                next_codes.extend((0..1 << D).map(child_code));
            }
            if next_codes.is_empty() {
                break;
            }
            level_begins.push(nodes.nodes.len());
            codes = next_codes;
        }
        roots.sort_unstable_by_key(|root| root.cells.start);
        Ok(Self { nodes, level_begins, below: Levels::default(), roots, level: root.level, num_levels })
    }

    /// Takes the upper levels of a tree whose points are already in the order of the nodes, and the number of nodes that split on each
    /// level above the last.
    pub(crate) fn of_levels((nodes, level_splits): PartAndSplits<D>, splits: impl Fn(&Node) -> bool) -> Self {
        let level_begins: Vec<_> =
            level_begins(&level_splits, D).into_iter().map(|begin| begin as usize).collect();
        let last = level_begins[level_begins.len() - 2];
        let root = |(number, node): (usize, &Node)| BatchRoot {
            cells: 0..1,
            points: node.start as usize..node.end as usize,
            node: Some(number),
        };
        let last_level = nodes.nodes.iter().enumerate().skip(last);
        let roots = last_level.filter(|(_, node)| splits(node)).map(root).collect();
        Self { nodes, level_begins, below: Levels::default(), roots, level: 0, num_levels: 0 }
    }

    /// Groups the roots into batches of up to `max_points` points, or of one root.
    pub(crate) fn batches(&self, max_points: usize) -> Vec<Batch> {
        let mut batches: Vec<Batch> = Vec::new();
        for (i, root) in self.roots.iter().enumerate() {
            match batches.last_mut() {
                Some(last) if root.points.end - last.points.start <= max_points => {
                    (last.roots.end, last.points.end) = (i + 1, root.points.end);
                }
                _ => batches.push(Batch { roots: i..i + 1, points: root.points.clone() }),
            }
        }
        batches
    }

    /// Splits a batch into batches of one root each.
    pub(crate) fn single_root_batches(&self, batch: &Batch) -> Vec<Batch> {
        let of_root = |i: usize| Batch { roots: i..i + 1, points: self.roots[i].points.clone() };
        batch.roots.clone().map(of_root).collect()
    }

    /// Splits a batch into halves, if it has more than one root.
    pub(crate) fn halves(&self, batch: &Batch) -> Option<[Batch; 2]> {
        let Range { start, end } = batch.roots;
        let middle = start + (end - start) / 2;
        let half = |roots: Range<usize>| {
            let points = self.roots[roots.start].points.start..self.roots[roots.end - 1].points.end;
            Batch { roots, points }
        };
        (end - start > 1).then(|| [half(start..middle), half(middle..end)])
    }

    /// Returns the roots of a batch that split, and the low corners of their cells.
    pub(crate) fn splitting_roots(&self, batch: &Batch) -> (Vec<Node>, Vec<[u32; D]>) {
        self.splitting(batch).map(|number| (self.nodes.nodes[number], self.nodes.corners[number])).unzip()
    }

    /// Returns the root of a batch of one root, if it splits.
    pub(crate) fn single_root(&self, batch: &Batch) -> Option<SubtreeRoot<D>> {
        let (nodes, corners) = self.splitting_roots(batch);
        let (node, corner) = nodes.first().zip(corners.first())?;
        Some(SubtreeRoot { level: node.level, corner: *corner, points: batch.points.clone() })
    }

    /// Appends the subtrees of a batch, whose first level are its roots. Batches must be appended in order.
    pub(crate) fn append_below(&mut self, batch: &Batch, built: Levels<D>) -> Result<()> {
        let (first_children, below) = built.split_first();
        // `Levels::of_part` takes numbers as if the level below followed the upper levels.
        let begin = (self.nodes.nodes.len() + self.below.len_of(0)) as u32;
        let numbers: Vec<_> = self.splitting(batch).collect();
        for (number, child) in numbers.into_iter().zip(first_children) {
            self.nodes.nodes[number].first_child = child.map_or(0, |child| begin.wrapping_add(child));
        }
        self.below.append(below)
    }

    /// Returns all levels.
    pub(crate) fn into_levels(self) -> Levels<D> {
        let lens = self.level_begins.windows(2).map(|begins| begins[1] - begins[0]);
        Levels::of_part(self.nodes, lens, 0).then(self.below)
    }

    /// Returns the node numbers of the roots of a batch that split.
    fn splitting(&self, batch: &Batch) -> impl Iterator<Item = usize> {
        self.roots[batch.roots.clone()].iter().filter_map(|root| root.node)
    }
}

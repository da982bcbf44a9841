//! The upper levels of a part: nodes of which it is known how many points they have, and batches of them.

use crate::error::Result;
use crate::memory;
use crate::quadtree::cpu::Cut;
use crate::quadtree::gpu::streamed::Base;
use crate::quadtree::host::{Levels, Part};
use crate::quadtree::level_begins;
use kauri_kernels::quadtree::node::Node;
use std::ops::Range;

/// Upper levels, and what is below them so far.
pub(crate) struct Top<const D: usize> {
    tree: Part<D>,
    /// Where the levels of these begin, and where the last ends.
    begins: Vec<usize>,
    below: Levels<D>,
    /// The nodes without children so far, in order; of those that are leaves in any case only where points are yet to be brought to them.
    pub(crate) roots: Vec<Root>,
    /// The level of the node above all, and how many levels below it cells are counted.
    pub(crate) level: u32,
    pub(crate) num_levels: u32,
}

/// A node at the end of upper levels.
#[derive(Clone, Debug)]
pub(crate) struct Root {
    /// Its cells, of those that were counted.
    pub(crate) cells: Range<u32>,
    /// Its points.
    pub(crate) points: Range<usize>,
    /// Which node it is, if that is to be split: one of the last level.
    pub(crate) node: Option<usize>,
}

/// Roots that follow each other, to be built together.
#[derive(Clone, Debug)]
pub(crate) struct Batch {
    pub(crate) roots: Range<usize>,
    pub(crate) points: Range<usize>,
}

impl<const D: usize> Top<D> {
    /// The levels below a node down to the one on which no node has more points than fit, or that of the counts, of cells `num_levels`
    /// below. A root has 2^`frame_levels` units on a side.
    pub(crate) fn new(
        base: &Base<D>,
        counts: &[u32],
        num_levels: u32,
        fits: usize,
        frame_levels: u32,
        splits: impl Fn(&Node) -> bool,
    ) -> Result<Self> {
        let mut begins = memory::vec_with_capacity(counts.len() + 1, "counts of cells")?;
        let mut end = base.points.start;
        begins.push(end);
        begins.extend(counts.iter().map(|&count| {
            end += count as usize;
            end
        }));
        let cells = |level: u32, code: u32| {
            let shift = D as u32 * (num_levels - level);
            code << shift..(code + 1) << shift
        };
        let points = |cells: &Range<u32>| begins[cells.start as usize]..begins[cells.end as usize];
        let all_fit =
            |level: u32| (0..1 << (D as u32 * level)).all(|code| points(&cells(level, code)).len() <= fits);
        let last = (0..num_levels).find(|&level| all_fit(level)).unwrap_or(num_levels);

        let Range { start, end } = base.points;
        let node = Node { start: start as u32, end: end as u32, first_child: 0, level: base.level };
        let mut tree = Part::of_node(node, base.corner);
        let (mut codes, mut begins, mut roots) = (vec![0], vec![0, 1], Vec::new());
        for level in 0..=last {
            let begin = begins[level as usize];
            let mut next_codes = Vec::new();
            for (number, &code) in (begin..).zip(&codes) {
                let (node, of) = (tree.nodes[number], cells(level, code));
                if level == last || !splits(&node) {
                    let node = splits(&node).then_some(number);
                    roots.push(Root { points: points(&of), cells: of, node });
                    continue;
                }
                let child = |child: usize| (code << D) + child as u32;
                let side = 1 << (frame_levels - node.level - 1);
                let len = |of: usize| points(&cells(level + 1, child(of))).len() as u32;
                tree.push_children(number, side, len)?;
                next_codes.extend((0..1 << D).map(child));
            }
            if next_codes.is_empty() {
                break;
            }
            begins.push(tree.nodes.len());
            codes = next_codes;
        }
        roots.sort_unstable_by_key(|root| root.cells.start);
        Ok(Self { tree, begins, below: Levels::default(), roots, level: base.level, num_levels })
    }

    /// A tree that ends with a level, whose points are where they belong, given how many of its nodes split on each level above.
    pub(crate) fn of_tree((tree, of_levels): Cut<D>, splits: impl Fn(&Node) -> bool) -> Self {
        let begins: Vec<_> = level_begins(&of_levels, D).into_iter().map(|begin| begin as usize).collect();
        let last = begins[begins.len() - 2];
        let root = |(number, node): (usize, &Node)| Root {
            cells: 0..1,
            points: node.start as usize..node.end as usize,
            node: Some(number),
        };
        let nodes = tree.nodes.iter().enumerate().skip(last);
        let roots = nodes.filter(|(_, node)| splits(node)).map(root).collect();
        Self { tree, begins, below: Levels::default(), roots, level: 0, num_levels: 0 }
    }

    /// All roots, as many together as fit, or one.
    pub(crate) fn batches(&self, fits: usize) -> Vec<Batch> {
        let mut batches: Vec<Batch> = Vec::new();
        for (i, root) in self.roots.iter().enumerate() {
            match batches.last_mut() {
                Some(last) if root.points.end - last.points.start <= fits => {
                    (last.roots.end, last.points.end) = (i + 1, root.points.end);
                }
                _ => batches.push(Batch { roots: i..i + 1, points: root.points.clone() }),
            }
        }
        batches
    }

    /// A batch of each root of one.
    pub(crate) fn alone(&self, batch: &Batch) -> Vec<Batch> {
        let alone = |i: usize| Batch { roots: i..i + 1, points: self.roots[i].points.clone() };
        batch.roots.clone().map(alone).collect()
    }

    /// Two halves of a batch, if it has several roots.
    pub(crate) fn halves(&self, batch: &Batch) -> Option<[Batch; 2]> {
        let Range { start, end } = batch.roots;
        let middle = start + (end - start) / 2;
        let half = |roots: Range<usize>| {
            let points = self.roots[roots.start].points.start..self.roots[roots.end - 1].points.end;
            Batch { roots, points }
        };
        (end - start > 1).then(|| [half(start..middle), half(middle..end)])
    }

    /// The roots of a batch that split: nodes and the corners of their cells.
    pub(crate) fn nodes(&self, batch: &Batch) -> (Vec<Node>, Vec<[u32; D]>) {
        self.numbers(batch).map(|number| (self.tree.nodes[number], self.tree.corners[number])).unzip()
    }

    /// The only root of a batch.
    pub(crate) fn base(&self, batch: &Batch) -> Option<Base<D>> {
        let (nodes, corners) = self.nodes(batch);
        let (node, corner) = nodes.first().zip(corners.first())?;
        Some(Base { level: node.level, corner: *corner, points: batch.points.clone() })
    }

    /// Puts what is below the roots of a batch, which are its first level, behind what is below those before.
    pub(crate) fn put_below(&mut self, batch: &Batch, built: Levels<D>) -> Result<()> {
        let (first_children, below) = built.split_first();
        // As if what is below followed the tree.
        let begin = (self.tree.nodes.len() + self.below.len_of(0)) as u32;
        let numbers: Vec<_> = self.numbers(batch).collect();
        for (number, child) in numbers.into_iter().zip(first_children) {
            self.tree.nodes[number].first_child = child.map_or(0, |child| begin.wrapping_add(child));
        }
        self.below.put_behind(below)
    }

    /// All levels.
    pub(crate) fn into_levels(self) -> Levels<D> {
        let lens = self.begins.windows(2).map(|of| of[1] - of[0]);
        Levels::of_part(self.tree, lens, 0).then(self.below)
    }

    fn numbers(&self, batch: &Batch) -> impl Iterator<Item = usize> {
        self.roots[batch.roots.clone()].iter().filter_map(|root| root.node)
    }
}

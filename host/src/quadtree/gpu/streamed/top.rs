//! The upper levels of an out-of-core build, and the batches of subtrees below them.

use crate::error::Result;
use crate::memory;
use crate::quadtree::host::Levels;
use crate::quadtree::node::Part;
use kauri_kernels::quadtree::frame::Frame;
use kauri_kernels::quadtree::node::Node;
use std::ops::Range;

/// The nodes of the upper levels, and the subtrees below them that have been built.
pub(crate) struct TopNodes<const D: usize> {
    pub(super) part: Part<D>,
    pub(super) below: Levels<D>,
    /// The nodes at the ends of the upper levels, in tree order.
    pub(crate) roots: Vec<Root<D>>,
    /// The level of the topmost node.
    pub(crate) level: u32,
    /// The number of levels from there down to the counted cells.
    pub(crate) num_levels: u32,
}

/// A node at an end of the upper levels: a leaf, or a node on the last of these levels that splits.
#[derive(Clone)]
pub(crate) struct Root<const D: usize> {
    pub(crate) node: Node,
    /// The low corner of its cell, in units.
    pub(crate) corner: [u32; D],
    pub(crate) splits: bool,
    /// Its range of counted cells.
    pub(crate) cells: Range<u32>,
}

/// Consecutive roots whose subtrees are built together.
#[derive(Clone, Debug)]
pub(crate) struct Batch {
    pub(crate) roots: Range<usize>,
    pub(crate) points: Range<usize>,
}

impl<const D: usize> TopNodes<D> {
    /// Derives upper levels from the counts of cells `num_levels` below `root`: down to the first level on which no node has more than
    /// `max_points` points, or to that of the cells.
    pub(crate) fn of_counts(
        root: &Root<D>,
        counts: &[u32],
        num_levels: u32,
        max_points: usize,
        frame: &Frame<D>,
        splits: impl Fn(&Node) -> bool,
    ) -> Result<Self> {
        // Exclusive prefix sums of the counts.
        let mut cell_begins = memory::vec_with_capacity(counts.len() + 1, "counts of cells")?;
        let mut end = 0;
        cell_begins.push(end);
        cell_begins.extend(counts.iter().map(|&count| {
            end += count;
            end
        }));
        let cells_of = |level: u32, code: u32| {
            let shift = D as u32 * (num_levels - level);
            code << shift..(code + 1) << shift
        };
        let num_points = |level: u32, code: u32| {
            let cells = cells_of(level, code);
            cell_begins[cells.end as usize] - cell_begins[cells.start as usize]
        };
        let all_fit = |level: u32| {
            (0..1 << (D as u32 * level)).all(|code| num_points(level, code) as usize <= max_points)
        };
        let last = (0..num_levels).find(|&level| all_fit(level)).unwrap_or(num_levels);

        let (mut part, mut roots) = (Part { nodes: vec![root.node], corners: vec![root.corner] }, Vec::new());
        let mut number = 0;
        while let Some(&node) = part.nodes.get(number) {
            let (level, corner) = (node.level - root.node.level, part.corners[number]);
            let (code, splits) = (frame.code(corner, root.node.level, level), splits(&node));
            if splits && level < last {
                part.push_children(number, frame.levels, |child| {
                    num_points(level + 1, (code << D) + child as u32)
                })?;
            } else {
                // Marks a node that splits; `Levels::into_part` numbers the children.
                part.nodes[number].first_child = splits.into();
                roots.push(Root { node, corner, splits, cells: cells_of(level, code) });
            }
            number += 1;
        }
        roots.sort_unstable_by_key(|root| root.cells.start);
        Ok(Self { part, below: Levels::default(), roots, level: root.node.level, num_levels })
    }

    /// Groups the roots into batches of up to `max_points` points, or of one root.
    pub(crate) fn batches(&self, max_points: usize) -> Vec<Batch> {
        let mut batches: Vec<Batch> = Vec::new();
        for (i, Root { node, .. }) in self.roots.iter().enumerate() {
            let (start, end) = (node.start as usize, node.end as usize);
            match batches.last_mut() {
                Some(last) if end - last.points.start <= max_points => {
                    (last.roots.end, last.points.end) = (i + 1, end);
                }
                _ => batches.push(Batch { roots: i..i + 1, points: start..end }),
            }
        }
        batches
    }

    /// Splits a batch into halves, if it has more than one root.
    pub(crate) fn halves(&self, Batch { roots, points }: &Batch) -> Option<[Batch; 2]> {
        let middle = roots.start + roots.len() / 2;
        let middle_point = self.roots[middle].node.start as usize;
        let halves = [
            Batch { roots: roots.start..middle, points: points.start..middle_point },
            Batch { roots: middle..roots.end, points: middle_point..points.end },
        ];
        (roots.len() > 1).then_some(halves)
    }

    /// Returns the roots of a batch that split.
    pub(crate) fn splitting_roots(&self, batch: &Batch) -> impl Iterator<Item = &Root<D>> {
        self.roots[batch.roots.clone()].iter().filter(|root| root.splits)
    }

    /// Appends the levels below the roots of a batch. Batches must be appended in order.
    pub(crate) fn append_below(&mut self, built: Levels<D>) -> Result<()> {
        self.below.append(built)
    }

    /// Returns all levels.
    pub(crate) fn into_levels(self) -> Levels<D> {
        Levels::of_part(self.part, 0).then(self.below)
    }
}

//! Levels of nodes, merged from parts that were built separately.

use crate::error::Result;
use crate::memory::{self, Parts};
use crate::parallel;
use crate::quadtree::node::{Part, check_num_nodes, level_begins};
use kauri_kernels::quadtree::node::Node;
use std::ops::Range;
use std::sync::Arc;

/// Number of nodes that one task copies.
const CHUNK: usize = 1 << 14;

/// Nodes level by level. A level is a sequence of pieces; their nodes stay in the parts that they were built in until
/// [`into_part`](Self::into_part) copies all of them. A node with children has any nonzero `first_child` until then.
#[derive(Default)]
pub(crate) struct Levels<const D: usize>(Vec<Vec<Piece<D>>>);

/// The nodes of a part that are on one level.
struct Piece<const D: usize> {
    part: Arc<Part<D>>,
    nodes: Range<usize>,
    /// The index in tree order of the part's first point.
    first_point: u32,
}

impl<const D: usize> Levels<D> {
    /// Takes a part, and the index in tree order of the part's first point.
    pub(crate) fn of_part(part: Part<D>, first_point: u32) -> Self {
        let (begins, part) = (level_begins(&part.nodes), Arc::new(part));
        let piece = |level: &[u32]| {
            vec![Piece { part: part.clone(), nodes: level[0] as usize..level[1] as usize, first_point }]
        };
        Self(begins.windows(2).map(piece).collect())
    }

    /// Returns the levels without the first.
    pub(crate) fn below_first(mut self) -> Self {
        Self(self.0.split_off(self.0.len().min(1)))
    }

    /// Appends levels below the last.
    pub(crate) fn then(mut self, below: Self) -> Self {
        self.0.extend(below.0);
        self
    }

    /// Appends the nodes of `other` to each level.
    pub(crate) fn append(&mut self, other: Self) -> Result<()> {
        for (level, mut pieces) in other.0.into_iter().enumerate() {
            if self.0.len() == level {
                self.0.push(Vec::new());
            }
            memory::reserve_more(&mut self.0[level], pieces.len(), "parts of a quadtree")?;
            self.0[level].append(&mut pieces);
        }
        Ok(())
    }

    /// Copies the nodes of a whole tree into breadth-first order.
    pub(crate) fn into_part(self) -> Result<Part<D>> {
        let num_nodes = self.0.iter().flatten().map(|piece| piece.nodes.len()).sum();
        check_num_nodes(num_nodes, 0, D)?;
        let mut nodes: Vec<Node> = memory::vec_with_capacity(num_nodes, "nodes of a quadtree")?;
        let mut corners: Vec<[u32; D]> = memory::vec_with_capacity(num_nodes, "cells of a quadtree")?;
        let chunks = self.0.iter().flatten().flat_map(|piece| {
            let end = piece.nodes.end;
            piece.nodes.clone().step_by(CHUNK).map(move |begin| (piece, begin..end.min(begin + CHUNK)))
        });
        let chunks: Vec<_> = chunks.collect();
        let num_splits = |(piece, nodes): &(&Piece<D>, Range<usize>)| {
            piece.part.nodes[nodes.clone()].iter().filter(|node| !node.is_leaf()).count()
        };
        let splits = parallel::map(chunks.len(), 1, |i| num_splits(&chunks[i]));
        let nodes_out = Parts::new(&mut nodes.spare_capacity_mut()[..num_nodes]);
        let corners_out = Parts::new(&mut corners.spare_capacity_mut()[..num_nodes]);
        // The children of the k-th node that splits begin at 1 + 2^D k.
        let (mut next_child, mut begin, mut tasks) = (1, 0, Vec::with_capacity(chunks.len()));
        for ((piece, from), splits) in chunks.into_iter().zip(splits) {
            tasks.push((piece, from.clone(), next_child, begin));
            next_child += (splits << D) as u32;
            begin += from.len();
        }
        parallel::for_each(tasks.len(), &|i| {
            let (piece, ref from, mut next_child, begin) = tasks[i];
            let to = begin..begin + from.len();
            // SAFETY: the tasks' ranges follow each other.
            let (nodes, corners) = unsafe { (nodes_out.part(to.clone()), corners_out.part(to)) };
            for (to, &node) in nodes.iter_mut().zip(&piece.part.nodes[from.clone()]) {
                let [start, end] = [node.start, node.end].map(|point| point + piece.first_point);
                let first_child = if node.is_leaf() { 0 } else { next_child };
                next_child += if node.is_leaf() { 0 } else { 1 << D };
                to.write(Node { start, end, first_child, level: node.level });
            }
            corners.write_copy_of_slice(&piece.part.corners[from.clone()]);
        });
        // SAFETY: the lengths of the chunks add up to `num_nodes`, and the tasks have written all of their elements.
        unsafe {
            nodes.set_len(num_nodes);
            corners.set_len(num_nodes);
        }
        Ok(Part { nodes, corners })
    }
}

//! Levels of nodes, merged from parts that were built separately.

use crate::error::Result;
use crate::memory::{self, Parts};
use crate::quadtree::node::check_num_nodes;
use crate::quadtree::part::Part;
use kauri_kernels::quadtree::node::Node;
use rayon::prelude::*;
use std::ops::Range;
use std::sync::Arc;

/// Number of nodes that one task copies.
const CHUNK: usize = 1 << 14;

/// Nodes level by level. A level is a sequence of pieces; their nodes stay in the parts that they were built in until
/// [`into_tree`](Self::into_tree) copies all of them.
#[derive(Default)]
pub(crate) struct Levels<const D: usize> {
    levels: Vec<Level<D>>,
}

/// The nodes of a level.
#[derive(Default)]
struct Level<const D: usize> {
    pieces: Vec<Piece<D>>,
    len: usize,
}

/// The nodes of a part that are on one level.
struct Piece<const D: usize> {
    part: Arc<Part<D>>,
    nodes: Range<usize>,
    /// Added to a node's `first_child`, gives the index of the child on the next level.
    child_shift: u32,
    /// Added to a node's point range, gives the range in tree order.
    point_shift: u32,
}

impl<const D: usize> Piece<D> {
    /// Returns the index of a node's first child on the next level, if the node has children.
    fn first_child(&self, node: &Node) -> Option<u32> {
        (!node.is_leaf()).then(|| node.first_child.wrapping_add(self.child_shift))
    }
}

impl<const D: usize> Levels<D> {
    /// Takes a part in breadth-first order, given the number of nodes of each level, and the index in tree order of the part's first point.
    /// `first_child` of a node is an index in the part.
    pub(crate) fn of_part(part: Part<D>, lens: impl IntoIterator<Item = usize>, first_point: u32) -> Self {
        let (part, mut begin) = (Arc::new(part), 0);
        let level = |len: usize| {
            let nodes = begin..begin + len;
            begin = nodes.end;
            let child_shift = (nodes.end as u32).wrapping_neg();
            let piece = Piece { part: part.clone(), nodes, child_shift, point_shift: first_point };
            Level { pieces: vec![piece], len }
        };
        Self { levels: lens.into_iter().map(level).collect() }
    }

    /// Splits off the first level: returns the index of each of its nodes' first child on the next level, and the levels below.
    pub(crate) fn split_first(mut self) -> (Vec<Option<u32>>, Self) {
        let below = self.levels.split_off(self.levels.len().min(1));
        let pieces = self.levels.iter().flat_map(|first| &first.pieces);
        let first_children = |piece: &Piece<D>| {
            let nodes = piece.part.nodes[piece.nodes.clone()].iter();
            nodes.map(|node| piece.first_child(node)).collect::<Vec<_>>()
        };
        (pieces.flat_map(first_children).collect(), Self { levels: below })
    }

    /// Returns the number of nodes of a level.
    pub(crate) fn len_of(&self, level: usize) -> usize {
        self.levels.get(level).map_or(0, |level| level.len)
    }

    /// Appends levels below the last.
    pub(crate) fn then(mut self, below: Self) -> Self {
        self.levels.extend(below.levels);
        self
    }

    /// Appends the nodes of `other` to each level.
    pub(crate) fn append(&mut self, other: Self) -> Result<()> {
        for (level, mut other) in other.levels.into_iter().enumerate() {
            let next_len = self.len_of(level + 1) as u32;
            if self.levels.len() == level {
                self.levels.push(Level::default());
            }
            let merged = &mut self.levels[level];
            merged.len += other.len;
            check_num_nodes(merged.len, 0, D)?;
            for piece in &mut other.pieces {
                piece.child_shift = piece.child_shift.wrapping_add(next_len);
            }
            memory::reserve_more(&mut merged.pieces, other.pieces.len(), "parts of a quadtree")?;
            merged.pieces.append(&mut other.pieces);
        }
        Ok(())
    }

    /// Copies the nodes into breadth-first order. Returns the nodes, the low corners of their cells, and the first node of each level.
    pub(crate) fn into_tree(self) -> Result<(Vec<Node>, Vec<u32>, Vec<u32>)> {
        let num_nodes = self.levels.iter().map(|level| level.len).sum();
        check_num_nodes(num_nodes, 0, D)?;
        let mut nodes: Vec<Node> = memory::vec_with_capacity(num_nodes, "nodes of a quadtree")?;
        let mut cells: Vec<u32> = memory::vec_with_capacity(num_nodes * D, "cells of a quadtree")?;
        let (mut level_begins, mut to, mut chunks) = (vec![0], 0, Vec::new());
        for level in &self.levels {
            let next_level = level_begins[level_begins.len() - 1] + level.len as u32;
            level_begins.push(next_level);
            for piece in &level.pieces {
                for begin in piece.nodes.clone().step_by(CHUNK) {
                    let from = begin..piece.nodes.end.min(begin + CHUNK);
                    chunks.push((piece, next_level, to, from.clone()));
                    to += from.len();
                }
            }
        }
        let nodes_out = Parts::new(&mut nodes.spare_capacity_mut()[..num_nodes]);
        let cells_out = Parts::new(&mut cells.spare_capacity_mut()[..num_nodes * D]);
        chunks.into_par_iter().for_each(|(piece, next_level, to, from)| {
            // SAFETY: the chunks are disjoint, and their lengths add up to those of the vectors.
            let (nodes, cells) = unsafe {
                (nodes_out.part(to..to + from.len()), cells_out.part(to * D..(to + from.len()) * D))
            };
            let in_tree = |node: &Node| Node {
                start: node.start + piece.point_shift,
                end: node.end + piece.point_shift,
                first_child: piece.first_child(node).map_or(0, |index| index.wrapping_add(next_level)),
                level: node.level,
            };
            for (to, node) in nodes.iter_mut().zip(&piece.part.nodes[from.clone()]) {
                to.write(in_tree(node));
            }
            cells.write_copy_of_slice(piece.part.corners[from].as_flattened());
        });
        // SAFETY: the chunks have written all elements.
        unsafe {
            nodes.set_len(num_nodes);
            cells.set_len(num_nodes * D);
        }
        Ok((nodes, cells, level_begins))
    }
}

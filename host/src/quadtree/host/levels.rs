//! Nodes level by level, as a tree is put together of parts.

use crate::error::Result;
use crate::memory::{self, Parts as Room};
use crate::quadtree::check_num_nodes;
use kauri_kernels::quadtree::node::Node;
use rayon::prelude::*;
use std::ops::Range;
use std::sync::Arc;

/// Nodes that are copied by one thread at a time.
const SHARE: usize = 1 << 14;

/// Some nodes and what is below them, level by level; of a level one piece follows another. They stay in the parts that they were built in
/// until all of them are there.
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

/// Nodes of a part that are of one level.
struct Piece<const D: usize> {
    of: Arc<Part<D>>,
    nodes: Range<usize>,
    /// What makes a node's `first_child` the child's place among the nodes of the next level, and its first point's place that in the
    /// tree, when it is added.
    child_shift: u32,
    point_shift: u32,
}

/// Nodes that have been built together, and the low corners of their cells.
pub(crate) struct Part<const D: usize> {
    pub(crate) nodes: Vec<Node>,
    pub(crate) corners: Vec<[u32; D]>,
}

impl<const D: usize> Part<D> {
    /// A node alone.
    pub(crate) fn of_node(node: Node, corner: [u32; D]) -> Self {
        Self { nodes: vec![node], corners: vec![corner] }
    }

    /// Adds the children of a node behind all others, given how many points each has. Theirs is half a cell's side, in units.
    pub(crate) fn push_children(
        &mut self,
        parent: usize,
        side: u32,
        lens: impl Fn(usize) -> u32,
    ) -> Result<()> {
        check_num_nodes(self.nodes.len(), 1, D)?;
        memory::reserve_more(&mut self.nodes, 1 << D, "nodes of a quadtree")?;
        memory::reserve_more(&mut self.corners, 1 << D, "cells of a quadtree")?;
        self.nodes[parent].first_child = self.nodes.len() as u32;
        let (Node { mut start, level, .. }, corner) = (self.nodes[parent], self.corners[parent]);
        for child in 0..1_usize << D {
            let end = start + lens(child);
            self.nodes.push(Node { start, end, first_child: 0, level: level + 1 });
            let upper = |axis: usize| (child >> (D - 1 - axis) & 1) as u32;
            self.corners.push(std::array::from_fn(|axis| corner[axis] + upper(axis) * side));
            start = end;
        }
        Ok(())
    }
}

impl<const D: usize> Piece<D> {
    /// Where the children of a node begin among the nodes of the next level, if it has any.
    fn first_child(&self, node: &Node) -> Option<u32> {
        (!node.is_leaf()).then(|| node.first_child.wrapping_add(self.child_shift))
    }
}

impl<const D: usize> Levels<D> {
    /// A part in breadth-first order, whose levels have so many nodes and whose points are from place `start` on. A `first_child` is
    /// the child's place in the part.
    pub(crate) fn of_part(part: Part<D>, lens: impl IntoIterator<Item = usize>, start: u32) -> Self {
        let (of, mut begin) = (Arc::new(part), 0);
        let level = |len: usize| {
            let nodes = begin..begin + len;
            begin = nodes.end;
            let child_shift = (nodes.end as u32).wrapping_neg();
            let piece = Piece { of: of.clone(), nodes, child_shift, point_shift: start };
            Level { pieces: vec![piece], len }
        };
        Self { levels: lens.into_iter().map(level).collect() }
    }

    /// Of each node of the first level where its children begin among those of the next, if it has any; and the levels below.
    pub(crate) fn split_first(mut self) -> (Vec<Option<u32>>, Self) {
        let below = self.levels.split_off(self.levels.len().min(1));
        let pieces = self.levels.iter().flat_map(|first| &first.pieces);
        let first_children = |piece: &Piece<D>| {
            piece.of.nodes[piece.nodes.clone()].iter().map(|node| piece.first_child(node)).collect::<Vec<_>>()
        };
        (pieces.flat_map(first_children).collect(), Self { levels: below })
    }

    /// Number of nodes of a level.
    pub(crate) fn len_of(&self, level: usize) -> usize {
        self.levels.get(level).map_or(0, |level| level.len)
    }

    /// The levels, then others.
    pub(crate) fn then(mut self, below: Self) -> Self {
        self.levels.extend(below.levels);
        self
    }

    /// Puts other nodes behind those of the same level.
    pub(crate) fn put_behind(&mut self, others: Self) -> Result<()> {
        for (level, mut others) in others.levels.into_iter().enumerate() {
            let next_len = self.len_of(level + 1) as u32;
            if self.levels.len() == level {
                self.levels.push(Level::default());
            }
            let own = &mut self.levels[level];
            own.len += others.len;
            check_num_nodes(own.len, 0, D)?;
            for piece in &mut others.pieces {
                piece.child_shift = piece.child_shift.wrapping_add(next_len);
            }
            memory::reserve_more(&mut own.pieces, others.pieces.len(), "parts of a quadtree")?;
            own.pieces.append(&mut others.pieces);
        }
        Ok(())
    }

    /// The nodes in breadth-first order, the corners of their cells, and where levels begin.
    pub(crate) fn into_tree(self) -> Result<(Vec<Node>, Vec<u32>, Vec<u32>)> {
        let num = self.levels.iter().map(|level| level.len).sum();
        check_num_nodes(num, 0, D)?;
        let mut nodes: Vec<Node> = memory::vec_with_capacity(num, "nodes of a quadtree")?;
        let mut cells: Vec<u32> = memory::vec_with_capacity(num * D, "cells of a quadtree")?;
        let (mut begins, mut at, mut shares) = (vec![0], 0, Vec::new());
        for level in &self.levels {
            let next = begins[begins.len() - 1] + level.len as u32;
            begins.push(next);
            for piece in &level.pieces {
                for begin in piece.nodes.clone().step_by(SHARE) {
                    let of = begin..piece.nodes.end.min(begin + SHARE);
                    shares.push((piece, next, at, of.clone()));
                    at += of.len();
                }
            }
        }
        let to_nodes = Room::new(&mut nodes.spare_capacity_mut()[..num]);
        let to_cells = Room::new(&mut cells.spare_capacity_mut()[..num * D]);
        shares.into_par_iter().for_each(|(piece, next, at, of)| {
            // SAFETY: shares follow each other, and are as long together.
            let (nodes, cells) =
                unsafe { (to_nodes.part(at..at + of.len()), to_cells.part(at * D..(at + of.len()) * D)) };
            let moved = |node: &Node| Node {
                start: node.start + piece.point_shift,
                end: node.end + piece.point_shift,
                first_child: piece.first_child(node).map_or(0, |place| place.wrapping_add(next)),
                level: node.level,
            };
            for (to, node) in nodes.iter_mut().zip(&piece.of.nodes[of.clone()]) {
                to.write(moved(node));
            }
            cells.write_copy_of_slice(piece.of.corners[of].as_flattened());
        });
        // SAFETY: all of them have been written.
        unsafe {
            nodes.set_len(num);
            cells.set_len(num * D);
        }
        Ok((nodes, cells, begins))
    }
}

//! Large nodes: what is done with one (Zhou et al. 2008, section 4.1).

use super::aabb::Aabb;
use super::model::{Splits, cut_empty_space, leaf_cost, middle};
use super::node::MAX_NODES;
use crate::plain::plain;
use crate::policy::{SAH_CHUNK_TRIANGLES, SAH_LARGE_DEPTH};

/// Most triangles of a small node, which has a bit for each.
pub const SMALL_TRIANGLES: u32 = 64;

/// Places on the lists of nodes up to which a tree of so many triangles is refined by large nodes: a bound for its memory.
pub const fn most_listed(num_triangles: u64) -> u64 {
    let most = 16 * num_triangles + 4096;
    // No tree has more.
    if most < MAX_NODES { most } else { MAX_NODES }
}

/// The places that a node takes on the lists of the next level, or of small roots.
pub const fn num_listed(len: u64) -> u64 {
    if len > SMALL_TRIANGLES as u64 { len.next_multiple_of(SAH_CHUNK_TRIANGLES as u64) } else { len }
}

/// A large node: which triangles of its level it has, and where it is.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Large {
    /// Its box.
    pub bounds: Aabb,
    /// Levels above it.
    pub depth: u32,
    /// How many axes have been tried in vain.
    pub tried: u32,
    /// How many triangles it has.
    pub len: u32,
    /// The first of its chunks on the level.
    pub chunk: u32,
    /// Where its triangles begin on the list of the level, in chunks.
    pub begin: u32,
}

/// Triangles that a block has.
pub const CHUNK_TRIANGLES: u32 = SAH_CHUNK_TRIANGLES as u32;

impl Large {
    /// Number of its chunks.
    #[inline(always)]
    pub const fn num_chunks(&self) -> u32 {
        self.len.div_ceil(CHUNK_TRIANGLES)
    }

    /// Where its triangles begin on the list of the level.
    #[inline(always)]
    pub const fn place(&self) -> usize {
        self.begin as usize * CHUNK_TRIANGLES as usize
    }

    /// Where there is room on the list of the next level for as many triangles below its plane, and for as many above; in chunks.
    #[inline(always)]
    pub const fn room(&self, is_above: bool) -> u32 {
        2 * self.chunk + if is_above { self.num_chunks() } else { 0 }
    }
}

plain! { Large { Aabb, u32, u32, u32, u32, u32 } }

/// What is to be done with a large node: empty space is cut off, and what is left splits.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// The sides that are cut off ([`cut_empty_space`]).
    pub sides: u32,
    /// The axis of the plane; [`NO_AXIS`](Self::NO_AXIS) where there is none.
    pub axis: u32,
    /// The plane.
    pub plane: f32,
    /// What is left.
    pub rest: Aabb,
}

plain! { Plan { u32, u32, f32, Aabb } }

/// What becomes of a large node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It splits.
    Split,
    /// Another axis is tried.
    Again,
    /// It is a leaf.
    Leaf,
}

impl Plan {
    /// In place of an axis.
    pub const NO_AXIS: u32 = 3;

    /// For a node with the box around its triangles, or what is known of their parts in it.
    #[inline(always)]
    pub fn new(large: &Large, of_triangles: Aabb, empty_space: f32) -> Self {
        let (sides, rest) = cut_empty_space(large.bounds, of_triangles.within(large.bounds), empty_space);
        let (axis, plane) = middle(rest, large.tried).unwrap_or((Self::NO_AXIS, 0.0));
        Self { sides, axis, plane, rest }
    }

    /// True if the node is to be cut in two.
    #[inline(always)]
    pub fn has_plane(&self) -> bool {
        self.axis != Self::NO_AXIS
    }

    /// The level of what is left, where each cut is one.
    #[inline(always)]
    pub fn depth(&self, large: &Large) -> u32 {
        large.depth + self.sides.count_ones()
    }

    /// What becomes of the node with so many triangles below and above the plane; of a tree that is as large as it may be, a leaf.
    ///
    /// The paper splits large nodes always. But a split in the middle may leave all triangles on both sides, as of copies of one: then the
    /// other axes are tried.
    #[inline(always)]
    pub fn outcome(&self, large: &Large, below: u32, above: u32, step_cost: f32, is_full: bool) -> Outcome {
        if is_full || !self.has_plane() || self.depth(large) >= SAH_LARGE_DEPTH {
            return Outcome::Leaf;
        }
        let cost = Splits::new(self.rest, step_cost).cost(self.axis, self.plane, below, above);
        if cost < leaf_cost(large.len) {
            Outcome::Split
        } else if large.tried < 2 {
            Outcome::Again
        } else {
            Outcome::Leaf
        }
    }
}

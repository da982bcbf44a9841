//! Large nodes: empty space is cut off, the rest splits at the spatial median (Zhou et al. 2008, section 4.1).

use super::cost::{SplitCost, cut_empty_space, leaf_cost, spatial_median};
use super::node::MAX_NODES;
use crate::plain::plain;
use crate::policy::{SAH_CHUNK_TRIANGLES, SAH_LARGE_DEPTH};
use crate::rays::aabb::{Aabb, Side};
use cuda_std::float::f32_from_key;

/// The cost and plane of a node without a plane.
pub const NO_PLANE: u64 = u64::MAX;

/// Maximum triangles of a small root, one bit each.
pub const SMALL_TRIANGLES: u32 = 64;

/// Returns the number of references up to which large nodes split further. It bounds the memory of a build.
pub const fn max_references(num_triangles: u64) -> u64 {
    let limit = 16 * num_triangles + 4096;
    // The reference index of a leaf has no more values.
    if limit < MAX_NODES { limit } else { MAX_NODES }
}

/// Returns the slots that a node of `len` references takes on the list of the next level, or of small roots.
pub const fn reference_slots(len: u64) -> u64 {
    if len > SMALL_TRIANGLES as u64 { len.next_multiple_of(SAH_CHUNK_TRIANGLES as u64) } else { len }
}

/// A large node: its box, and where its references are on the list of its level.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct LargeNode {
    /// Bounding box.
    pub bounds: Aabb,
    /// Depth below the root.
    pub depth: u32,
    /// Number of axes that were tried without a useful split.
    pub tried_axes: u32,
    /// Number of references.
    pub len: u32,
    /// Index of its first chunk on the level.
    pub first_chunk: u32,
    /// Start of its references on the list of the level, in units of chunks.
    pub begin_chunk: u32,
}

/// References of a chunk.
pub const CHUNK_TRIANGLES: u32 = SAH_CHUNK_TRIANGLES as u32;

impl LargeNode {
    /// Returns the number of chunks.
    #[inline(always)]
    pub const fn num_chunks(&self) -> u32 {
        self.len.div_ceil(CHUNK_TRIANGLES)
    }

    /// Returns the index of its first reference on the list of the level.
    #[inline(always)]
    pub const fn first_reference(&self) -> usize {
        self.begin_chunk as usize * CHUNK_TRIANGLES as usize
    }

    /// Returns where the next level's list has space for the references of one side, in units of chunks. Each side has space
    /// for all references of the node.
    #[inline(always)]
    pub const fn child_chunk(&self, side: Side) -> u32 {
        2 * self.first_chunk
            + match side {
                Side::Below => 0,
                Side::Above => self.num_chunks(),
            }
    }
}

plain! { LargeNode { Aabb, u32, u32, u32, u32, u32 } }

/// The plan for a large node: cut off empty space, then split the remainder.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct SplitPlan {
    /// Bit mask of the sides that are cut off ([`cut_empty_space`]).
    pub cut_sides: u32,
    /// Axis of the split plane, or [`NO_AXIS`](Self::NO_AXIS).
    pub axis: u32,
    /// Position of the split plane.
    pub plane: f32,
    /// The box without the cut-off space.
    pub remainder: Aabb,
}

plain! { SplitPlan { u32, u32, f32, Aabb } }

/// The outcome of processing a large node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The node splits.
    Split,
    /// The node stays, and the next level tries another axis.
    NextAxis,
    /// The node becomes a leaf.
    Leaf,
}

impl SplitPlan {
    /// The value of `axis` if no split plane exists.
    pub const NO_AXIS: u32 = 3;

    /// Plans a node, given the bounding box of its (clipped) references.
    #[inline(always)]
    pub fn new(large: &LargeNode, references_box: Aabb, empty_space: f32) -> Self {
        let (cut_sides, remainder) =
            cut_empty_space(large.bounds, references_box.intersection(large.bounds), empty_space);
        let (axis, plane) = spatial_median(remainder, large.tried_axes).unwrap_or((Self::NO_AXIS, 0.0));
        Self { cut_sides, axis, plane, remainder }
    }

    /// Plans a node by the cheapest planes of its axes: their costs, and in the low halves their keys. The first of equally cheap ones splits it.
    #[inline(always)]
    pub fn cheapest(large: &LargeNode, planes: [u64; 3]) -> Self {
        let (mut axis, mut best) = (Self::NO_AXIS, NO_PLANE);
        for i in 0..3 {
            if planes[i] >> 32 < best >> 32 {
                (axis, best) = (i as u32, planes[i]);
            }
        }
        let plane = if axis == Self::NO_AXIS { 0.0 } else { f32_from_key(best as u32) };
        Self { cut_sides: 0, axis, plane, remainder: large.bounds }
    }

    /// True if a split plane exists.
    #[inline(always)]
    pub fn has_plane(&self) -> bool {
        self.axis != Self::NO_AXIS
    }

    /// Returns the depth of the remainder; each cut adds a level.
    #[inline(always)]
    pub fn depth(&self, large: &LargeNode) -> u32 {
        large.depth + self.cut_sides.count_ones()
    }

    /// Decides about the node, given the number of references on both sides of the plane. The node becomes a leaf if the
    /// tree `is_full`: it has reached its [reference limit](max_references).
    ///
    /// The paper always splits large nodes. But a spatial median can leave all triangles on both sides, for example copies
    /// of one triangle: then the other axes are tried, unless the plane `is_cheapest` of all.
    #[inline(always)]
    pub fn outcome(
        &self,
        large: &LargeNode,
        [below, above]: [u32; 2],
        step_cost: f32,
        is_cheapest: bool,
        is_full: bool,
    ) -> Outcome {
        if is_full || !self.has_plane() || self.depth(large) >= SAH_LARGE_DEPTH {
            return Outcome::Leaf;
        }
        let cost = SplitCost::new(self.remainder, step_cost).cost(self.axis, self.plane, below, above);
        if cost < leaf_cost(large.len) {
            Outcome::Split
        } else if large.tried_axes < 2 && !is_cheapest {
            Outcome::NextAxis
        } else {
            Outcome::Leaf
        }
    }
}

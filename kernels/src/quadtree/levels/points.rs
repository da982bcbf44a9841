//! The points of a level: where they are read and where they are written.

use cuda_std::prelude::*;

/// Codes and ids of the points in nodes that split.
#[derive(Clone, Copy, KernelArgs)]
pub struct LevelPoints<'a> {
    /// The codes of the points.
    pub codes: Slice<'a, u32>,
    /// Their ids; empty where points are only counted.
    pub ids: Slice<'a, u32>,
    /// Number of bits of a code below the digit of this level.
    pub shift: u32,
}

impl LevelPoints<'_> {
    /// Returns the child that a code belongs to.
    #[inline(always)]
    pub(super) fn child<const D: usize>(&self, code: u32) -> u32 {
        code >> self.shift & ((1 << D) - 1)
    }
}

/// The destinations of points: the arrays of the next level for points in children that split, the tree for points in leaves.
#[derive(Clone, Copy, KernelArgs)]
pub struct PointTargets<'a> {
    /// Codes of the next level.
    pub next_codes: SliceMut<'a, u32>,
    /// Ids of the next level.
    pub next_ids: SliceMut<'a, u32>,
    /// Ids of the tree.
    pub tree_ids: SliceMut<'a, u32>,
}

impl PointTargets<'_> {
    /// Writes a point to index `to`.
    #[inline(always)]
    pub(super) unsafe fn store(&self, splits: bool, to: u32, code: u32, id: u32) {
        if splits {
            self.next_codes.store(to as usize, code);
            self.next_ids.store(to as usize, id);
        } else {
            self.tree_ids.store(to as usize, id);
        }
    }
}

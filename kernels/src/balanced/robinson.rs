//! Robinson's build algorithm: partitions every array on every level by comparing coordinates with those of the median.

pub mod finish;
pub mod partition;

use crate::query::left_balanced::full_tree;
use cuda_std::prelude::*;

/// The output of a build.
#[derive(Clone, Copy, KernelArgs)]
pub struct Nodes<'a> {
    /// The id of the point at each address of each level, or [`NONE`](super::NONE).
    pub medians: SliceMut<'a, u32>,
    /// The less and the greater child of each point, or [`NONE`](super::NONE).
    pub children: SliceMut<'a, u32>,
}

impl Nodes<'_> {
    /// Writes the node at an address: the median of its run. Its parent has been written.
    #[inline(always)]
    unsafe fn store(&self, level: u32, address: u32, id: u32) {
        self.medians.store((full_tree(level) + address) as usize, id);
        if level > 0 {
            let parent = self.medians.load((full_tree(level - 1) + address / 2) as usize);
            self.children.store(2 * parent as usize + (address & 1) as usize, id);
        }
    }
}

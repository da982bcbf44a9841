//! Writing the tree in preorder: sizes of subtrees from the leaves up, positions from the root down.

use super::large_nodes::LargeNodes;
use super::subtrees::Subtrees;
use crate::device::Stream;
use crate::error::Result;
use crate::sah::host_tree::check_size;
use kauri_kernels::sah::preorder::{Positions, SubtreeSize, TopLevel, TreeMut, sah_top_sizes, sah_top_write};
use std::ops::Range;

impl Subtrees<'_> {
    fn level<'a>(&'a self, large: &'a LargeNodes, level: &Range<u32>) -> TopLevel<'a> {
        TopLevel {
            begin: level.start,
            end: level.end,
            nodes: large.top_nodes.view(),
            small_sizes: self.small_sizes.read_only(),
        }
    }

    /// Computes the subtree sizes of top nodes, from the last level up, given the sizes of small roots. Returns the size of
    /// the tree.
    pub(super) fn compute_sizes(&self, stream: &Stream, large: &LargeNodes) -> Result<SubtreeSize> {
        // SAFETY: the levels are ranges of the top nodes, and the memory waits for the device before it is freed.
        let root = unsafe {
            for level in large.levels.iter().rev() {
                let args = (self.level(large, level), self.top_sizes);
                stream.launch_items::<sah_top_sizes>(level.len() as u64, args)?;
            }
            let sizes = if large.levels.is_empty() { self.small_sizes } else { self.top_sizes };
            stream.read(sizes.part(0, 1).read_only())?[0]
        };
        check_size(root.nodes.into(), root.references.into())?;
        Ok(root)
    }

    /// Writes the top nodes to the tree and computes the positions of small roots, from the root down.
    ///
    /// # Safety
    /// The [sizes](Self::compute_sizes) are known, and the tree has as much memory as they say.
    pub(super) unsafe fn write_top(
        &self,
        stream: &Stream,
        large: &LargeNodes,
        tree: TreeMut<'_>,
    ) -> Result<()> {
        let positions = Positions { top: self.top_positions, small: self.small_positions };
        let root = if large.levels.is_empty() { positions.small } else { positions.top };
        // SAFETY: as in `compute_sizes`; the rest is passed on to the caller.
        unsafe {
            // The root is at the beginning of the tree.
            stream.fill_bytes(root.part(0, 1), 0)?;
            large.levels.iter().try_for_each(|level| {
                let args = (self.level(large, level), self.top_sizes.read_only(), positions, tree);
                stream.launch_items::<sah_top_write>(level.len() as u64, args)
            })
        }
    }
}

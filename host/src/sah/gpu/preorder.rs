//! Writing the tree in preorder: sizes of subtrees from the leaves up, positions from the root down.

use super::build_input::BuildInput;
use super::growable_buffer::GrowableBuffer;
use super::large_nodes::{LargeNodes, TopLevels};
use super::small_roots::SmallRoots;
use crate::device::Stream;
use crate::error::Result;
use crate::sah::host_tree::check_size;
use cuda_std::mem::SliceMut;
use kauri_kernels::sah::preorder::{SubtreeSize, sah_upper_sizes, sah_upper_write};

/// The sizes of the top nodes' subtrees, and their positions in the tree.
pub(super) struct Preorder {
    sizes: GrowableBuffer<SubtreeSize>,
    positions: GrowableBuffer<SubtreeSize>,
}

impl Preorder {
    pub(super) fn new() -> Self {
        let label = "sizes of subtrees";
        Self { sizes: GrowableBuffer::new(label), positions: GrowableBuffer::new(label) }
    }

    /// Returns the bytes held.
    pub(super) fn bytes(&self) -> u64 {
        self.sizes.bytes() + self.positions.bytes()
    }

    /// Computes the subtree sizes of top nodes, from the last level up. Returns the size of the tree.
    pub(super) fn compute_sizes(
        &mut self,
        stream: &Stream,
        large: &LargeNodes,
        top: &TopLevels,
        small: &SmallRoots,
    ) -> Result<SubtreeSize> {
        self.sizes.reserve(stream, top.num_nodes(), 0)?;
        self.positions.reserve(stream, top.num_nodes(), 0)?;
        // SAFETY: the levels are ranges of the top nodes, and the buffers wait for the device before they are freed.
        let root = unsafe {
            for level in top.levels.iter().rev() {
                let (nodes, small_sizes) = (large.top_nodes(top), small.sizes());
                let args = (level.start, level.end, nodes, small_sizes, self.sizes.all_mut());
                stream.launch_items::<sah_upper_sizes>(level.len() as u64, args)?;
            }
            let root = if top.num_nodes() > 0 { self.sizes.first(1) } else { small.sizes().part(0, 1) };
            stream.read(root)?[0]
        };
        check_size(root.nodes.into(), root.references.into())?;
        Ok(root)
    }

    /// Writes the tree, from the root down.
    ///
    /// # Safety
    /// The [sizes](Self::compute_sizes) are known, and the tree has as much memory as they say.
    pub(super) unsafe fn write(
        &mut self,
        stream: &Stream,
        input: &BuildInput<'_>,
        large: &LargeNodes,
        top: &TopLevels,
        small: &mut SmallRoots,
        (nodes, references): (SliceMut<'_, u64>, SliceMut<'_, u32>),
    ) -> Result<()> {
        let positions =
            if top.num_nodes() > 0 { self.positions.all_mut() } else { small.sizes_and_positions().1 };
        // SAFETY: as in `compute_sizes`; the rest is passed on to the caller.
        unsafe {
            // The root is at the beginning of the tree.
            stream.fill_bytes(positions.part(0, 1), 0)?;
            for level in &top.levels {
                let (small_sizes, small_positions) = small.sizes_and_positions();
                let (sizes, positions) = (self.sizes.first(top.num_nodes()), self.positions.all_mut());
                let args = (
                    level.start,
                    level.end,
                    large.top_nodes(top),
                    sizes,
                    small_sizes,
                    positions,
                    small_positions,
                    nodes,
                );
                stream.launch_items::<sah_upper_write>(level.len() as u64, args)?;
            }
            small.write(stream, input, nodes, references)
        }
    }
}

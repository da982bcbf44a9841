//! Subtrees of small roots, one warp each.

use super::build_input::SmallRootViews;
use super::growable_buffer::GrowableBuffer;
use crate::device::Stream;
use crate::error::Result;
use crate::sah::options::SahOptions;
use cuda_std::mem::{Slice, SliceMut};
use kauri_kernels::sah::preorder::SubtreeSize;
use kauri_kernels::sah::small_warps::{DECISIONS, sah_root_sizes, sah_root_write};

/// The memory of this builder.
pub(super) struct SmallWarps {
    /// The first decisions of each root.
    decisions: GrowableBuffer<u16>,
}

impl SmallWarps {
    pub(super) fn new() -> Self {
        Self { decisions: GrowableBuffer::new("small nodes") }
    }

    /// Returns the bytes held.
    pub(super) fn bytes(&self) -> u64 {
        self.decisions.bytes()
    }

    /// Decides about the nodes of each subtree, and computes the subtree sizes.
    ///
    /// # Safety
    /// `sizes` has an element for each root; nothing else uses the memory until the stream has done the work.
    pub(super) unsafe fn split(
        &mut self,
        stream: &Stream,
        options: &SahOptions,
        small: SmallRootViews<'_>,
        sizes: SliceMut<'_, SubtreeSize>,
    ) -> Result<()> {
        let num_roots = small.roots.len();
        self.decisions.reserve(stream, num_roots * DECISIONS, 0)?;
        let decisions = self.decisions.all_mut();
        let SmallRootViews { roots, references, boxes } = small;
        let args = (roots, references, boxes, options.clip.into(), options.step_cost, decisions, sizes);
        // SAFETY: passed on to the caller.
        unsafe { stream.launch_items::<sah_root_sizes>(32 * num_roots as u64, args) }
    }

    /// Writes the subtrees to the tree.
    ///
    /// # Safety
    /// As [`split`](Self::split), which was called before; the tree has as much memory as the sizes say.
    pub(super) unsafe fn write(
        &self,
        stream: &Stream,
        options: &SahOptions,
        small: SmallRootViews<'_>,
        (sizes, positions): (Slice<'_, SubtreeSize>, Slice<'_, SubtreeSize>),
        (nodes, references): (SliceMut<'_, u64>, SliceMut<'_, u32>),
    ) -> Result<()> {
        let num_roots = small.roots.len();
        let args = (
            small.roots,
            small.references,
            small.boxes,
            options.clip.into(),
            options.step_cost,
            self.decisions.first(num_roots * DECISIONS),
            sizes,
            positions,
            nodes,
            references,
        );
        // SAFETY: passed on to the caller.
        unsafe { stream.launch_items::<sah_root_write>(32 * num_roots as u64, args) }
    }
}

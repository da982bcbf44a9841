//! The sizes of subtrees, and their positions in the tree.

use crate::device::{Layout, Stream, Workspace};
use crate::error::Result;
use cuda_std::mem::SliceMut;
use kauri_kernels::sah::preorder::SubtreeSize;

/// The scratch memory of subtrees: their sizes, and their positions in the tree.
pub(super) struct Subtrees<'a> {
    pub(super) top_sizes: SliceMut<'a, SubtreeSize>,
    pub(super) top_positions: SliceMut<'a, SubtreeSize>,
    /// Small roots first.
    pub(super) small_sizes: SliceMut<'a, SubtreeSize>,
    pub(super) small_positions: SliceMut<'a, SubtreeSize>,
    /// The first decisions about the nodes below each small root.
    pub(super) decisions: SliceMut<'a, u16>,
}

impl<'a> Subtrees<'a> {
    /// Carves memory for the subtrees of `num_top` top nodes and of small nodes, and for decisions.
    pub(super) fn carve(
        workspace: &'a mut Workspace,
        stream: &Stream,
        num_top: usize,
        [num_small, num_decisions]: [usize; 2],
    ) -> Result<Self> {
        let mut layout = Layout::new();
        let [top_sizes, top_positions, small_sizes, small_positions] =
            [num_top, num_top, num_small, num_small].map(|len| layout.reserve(len));
        let decisions = layout.reserve(num_decisions);
        let temp = workspace.carve(stream, &layout, "sizes of subtrees")?;
        Ok(Self {
            top_sizes: temp.view(top_sizes),
            top_positions: temp.view(top_positions),
            small_sizes: temp.view(small_sizes),
            small_positions: temp.view(small_positions),
            decisions: temp.view(decisions),
        })
    }
}

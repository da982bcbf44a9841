//! Subtrees of small roots, one warp each.

use super::build_input::BuildInput;
use super::subtrees::Subtrees;
use crate::error::Result;
use kauri_kernels::sah::preorder::TreeMut;
use kauri_kernels::sah::small_roots::SmallRoots;
use kauri_kernels::sah::small_warps::{sah_root_sizes, sah_root_write};

/// Decides about the nodes of each subtree, and computes the subtree sizes.
///
/// # Safety
/// The memory of the subtrees has an element for each root; nothing else uses it until the stream has done the work.
pub(super) unsafe fn compute_sizes(
    input: &BuildInput<'_>,
    small: SmallRoots<'_>,
    subtrees: &Subtrees<'_>,
) -> Result<()> {
    let args = (small, input.options.step_cost, subtrees.decisions, subtrees.small_sizes);
    // SAFETY: passed on to the caller.
    unsafe { input.stream.launch_items::<sah_root_sizes>(32 * small.roots.len() as u64, args) }
}

/// Writes the subtrees to the tree.
///
/// # Safety
/// As [`compute_sizes`], which was called before; the positions of the roots are known, and the tree has as much memory as the
/// sizes say.
pub(super) unsafe fn write(
    input: &BuildInput<'_>,
    small: SmallRoots<'_>,
    subtrees: &Subtrees<'_>,
    tree: TreeMut<'_>,
) -> Result<()> {
    let [sizes, positions] = [subtrees.small_sizes, subtrees.small_positions].map(|view| view.read_only());
    let args = (small, input.options.step_cost, subtrees.decisions.read_only(), sizes, positions, tree);
    // SAFETY: passed on to the caller.
    unsafe { input.stream.launch_items::<sah_root_write>(32 * small.roots.len() as u64, args) }
}

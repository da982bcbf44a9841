//! Refit: a tree for triangles that have moved.

use super::tree::{GpuTree, TREE};
use crate::device::GrowableBuffer;
use crate::device::{Stream, Workspace};
use crate::error::Result;
use crate::primitives::pairs::{Pairs, Source};
use crate::primitives::radix_sort::SortBy;
use crate::primitives::segmented_sort;
use crate::rays::scan_counts;
use crate::sah::host_tree::check_size;
use cuda_std::mem::Slice;
use kauri_kernels::rays::aabb::Aabb;
use kauri_kernels::sah::refit::{sah_count_listed, sah_fill_leaves, sah_list, sah_move_planes};

/// The memory of refits.
#[derive(Default)]
pub(super) struct Refit {
    offsets: GrowableBuffer<u64>,
    counts: GrowableBuffer<u64>,
    unsorted: GrowableBuffer<u32>,
}

impl Refit {
    /// Returns the bytes held.
    pub(super) fn bytes(&self) -> u64 {
        self.offsets.bytes() + self.counts.bytes() + self.unsorted.bytes()
    }

    /// Moves the planes of `old` into `tree`, which has the corners and the extent of the moved mesh, and fills the leaves again.
    /// Waits for the result.
    pub(super) fn run(
        &mut self,
        stream: &Stream,
        workspace: &mut Workspace,
        boxes: Slice<'_, Aabb>,
        old: &GpuTree,
        tree: &mut GpuTree,
    ) -> Result<()> {
        let (num_triangles, num_nodes) = (boxes.len(), old.nodes.len());
        tree.nodes.reserve(stream, num_nodes, TREE)?;
        self.offsets.reserve(stream, num_nodes + 1, "triangles in leaves")?;
        self.counts.reserve(stream, num_nodes, "triangles in leaves")?;
        // SAFETY: the buffers have an element per node, and wait for the device before they are freed.
        unsafe {
            let offsets = self.offsets.view_mut();
            let counts = self.counts.view_mut();
            stream.fill_bytes(offsets, 0)?;
            stream.fill_bytes(counts, 0)?;
            let nodes = tree.nodes.view_mut();
            let args = (old.nodes.view(), old.extent.view(), tree.extent.view(), nodes);
            stream.launch_items::<sah_move_planes>(num_nodes as u64, args)?;
            let args = (nodes.read_only(), boxes, offsets);
            stream.launch_items::<sah_count_listed>(num_triangles as u64, args)?;
            let num_references = scan_counts(stream, workspace, offsets)?;
            check_size(0, num_references as u64)?;
            self.unsorted.reserve(stream, num_references, "triangles in leaves")?;
            tree.references.reserve(stream, num_references, TREE)?;
            let unsorted = self.unsorted.view_mut();
            let references = tree.references.view_mut();
            let args = (nodes.read_only(), boxes, offsets.read_only(), counts, unsorted);
            stream.launch_items::<sah_list>(num_triangles as u64, args)?;
            let by = SortBy::numbers_below(num_triangles);
            let (from, to) = (Source::of_keys(unsorted.read_only()), Pairs::of_keys(references));
            segmented_sort::sort(stream, workspace, from, offsets.read_only(), to, by)?;
            stream.launch_items::<sah_fill_leaves>(num_nodes as u64, (offsets.read_only(), nodes))?;
            // Rays may come on another stream.
            stream.synchronize()
        }
    }
}

//! A tree on a GPU for triangles that have moved.

use super::super::host::check_size;
use super::super::on_device::DeviceMesh;
use super::rays::sums;
use super::room::Room;
use super::{Builder, GpuTree};
use crate::device::Stream;
use crate::error::Result;
use crate::primitives::pairs::{Pairs, Source};
use crate::primitives::radix_sort::SortBy;
use crate::primitives::segmented_sort;
use kauri_kernels::sah::refit::{sah_count_listed, sah_fill_leaves, sah_list, sah_move_planes};

/// The memory of a refit.
pub(super) struct Refit {
    offsets: Room<u64>,
    counts: Room<u64>,
    any_order: Room<u32>,
}

impl Refit {
    pub(super) fn new() -> Self {
        let label = "triangles in leaves";
        Self { offsets: Room::new(label), counts: Room::new(label), any_order: Room::new(label) }
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> u64 {
        self.offsets.bytes() + self.counts.bytes() + self.any_order.bytes()
    }
}

impl GpuTree {
    /// The tree with its planes moved and its leaves filled anew, for a mesh of as many triangles, one at least; waits for it.
    pub(in super::super) fn refit(
        &self,
        builder: &mut Builder,
        stream: &Stream,
        mesh: DeviceMesh<'_>,
    ) -> Result<Self> {
        let (num, num_nodes) = (mesh.len(), self.num_nodes);
        let mut tree = builder.spare(stream)?;
        builder.see(stream, mesh, &mut tree, false)?;
        tree.nodes.reserve(stream, num_nodes, 0)?;
        let Builder { workspace, boxes, refit, .. } = builder;
        refit.offsets.reserve(stream, num_nodes + 1, 0)?;
        refit.counts.reserve(stream, num_nodes, 0)?;
        // SAFETY: a node each, and rooms wait for the device before they are freed.
        unsafe {
            let (offsets, counts) =
                (refit.offsets.all_mut().part(0, num_nodes + 1), refit.counts.all_mut().part(0, num_nodes));
            stream.fill_bytes(offsets, 0)?;
            stream.fill_bytes(counts, 0)?;
            let (nodes, boxes) = (tree.nodes.all_mut().part(0, num_nodes), boxes.first(num));
            let (old, new) = (self.extent.first(1), tree.extent.first(1));
            let args = (self.nodes.first(num_nodes), old, new, nodes);
            stream.launch_items::<sah_move_planes>(num_nodes as u64, args)?;
            let args = (nodes.read_only(), boxes, offsets);
            stream.launch_items::<sah_count_listed>(num as u64, args)?;
            let num_listed = sums(stream, workspace, offsets)?;
            check_size(0, num_listed as u64)?;
            refit.any_order.reserve(stream, num_listed, 0)?;
            tree.listed.reserve(stream, num_listed, 0)?;
            let (any_order, listed) =
                (refit.any_order.all_mut().part(0, num_listed), tree.listed.all_mut().part(0, num_listed));
            let args = (nodes.read_only(), boxes, offsets.read_only(), counts, any_order);
            stream.launch_items::<sah_list>(num as u64, args)?;
            let by = SortBy::numbers_below(num);
            let (from, to) = (Source::of_keys(any_order.read_only()), Pairs::of_keys(listed));
            segmented_sort::sort(stream, workspace, from, offsets.read_only(), to, by)?;
            stream.launch_items::<sah_fill_leaves>(num_nodes as u64, (offsets.read_only(), nodes))?;
            (tree.num_nodes, tree.num_listed) = (num_nodes, num_listed);
            // Rays may come on another stream.
            stream.synchronize()?;
        }
        Ok(tree)
    }
}

//! A tree on a GPU for triangles that have moved.

use super::super::host::check_size;
use super::super::on_device::DeviceMesh;
use super::build::Seen;
use super::rays::sums;
use super::{Builder, GpuTree};
use crate::device::{Buffer, Stream};
use crate::error::Result;
use crate::primitives::pairs::{Pairs, Source};
use crate::primitives::radix_sort::SortBy;
use crate::primitives::segmented_sort;
use kauri_kernels::sah::refit::{sah_count_listed, sah_fill_leaves, sah_list, sah_move_planes};

impl GpuTree {
    /// The tree with its planes moved and its leaves filled anew, for a mesh of as many triangles, one at least.
    pub(in super::super) fn refit(
        &self,
        builder: &mut Builder,
        stream: &Stream,
        mesh: DeviceMesh<'_>,
    ) -> Result<Self> {
        let (num, num_nodes) = (mesh.len(), self.nodes.len());
        let Seen { corners, bounds, .. } = builder.see(stream, mesh)?;
        let mut nodes = Buffer::uninitialized(stream.gpu(), num_nodes, "SAH k-d tree")?;
        let mut offsets = Buffer::<u64>::uninitialized(stream.gpu(), num_nodes + 1, "triangles in leaves")?;
        let mut counts = Buffer::<u64>::uninitialized(stream.gpu(), num_nodes, "triangles in leaves")?;
        offsets.fill_bytes(stream, 0)?;
        counts.fill_bytes(stream, 0)?;
        // SAFETY: a node each, and buffers wait for the device before they are freed.
        unsafe {
            let args = (self.nodes.slice(), self.bounds.slice(), bounds.slice(), nodes.slice_mut());
            stream.launch_items::<sah_move_planes>(num_nodes as u64, args)?;
            let boxes = builder.boxes(num);
            let args = (nodes.slice(), boxes, offsets.slice_mut());
            stream.launch_items::<sah_count_listed>(num as u64, args)?;
        }
        let num_listed = sums(stream, &mut builder.workspace, &mut offsets)?;
        check_size(0, num_listed as u64)?;
        let mut any_order = Buffer::uninitialized(stream.gpu(), num_listed, "triangles in leaves")?;
        let mut listed = Buffer::uninitialized(stream.gpu(), num_listed, "SAH k-d tree")?;
        // SAFETY: there is room for all that were counted.
        unsafe {
            let args = (
                nodes.slice(),
                builder.boxes(num),
                offsets.slice(),
                counts.slice_mut(),
                any_order.slice_mut(),
            );
            stream.launch_items::<sah_list>(num as u64, args)?;
            let by = SortBy::low_bits(u32::BITS - (num as u32 - 1).leading_zeros());
            let (from, to) = (Source::of_keys(any_order.slice()), Pairs::of_keys(listed.slice_mut()));
            segmented_sort::sort(stream, &mut builder.workspace, from, offsets.slice(), to, by)?;
            let args = (offsets.slice(), nodes.slice_mut());
            stream.launch_items::<sah_fill_leaves>(num_nodes as u64, args)?;
        }
        Ok(Self { bounds, nodes, listed, corners })
    }
}

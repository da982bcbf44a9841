//! Refit: a hierarchy for items that have moved.

use super::build::GpuBuilder;
use super::input::DeviceInput;
use super::tree::{GpuTree, LABEL};
use crate::device::{Layout, Stream};
use crate::error::Result;
use crate::primitives::planned::carve;
use kauri_kernels::bvh::leaf::Leaf;
use kauri_kernels::bvh::refit::{bvh_parents, bvh_refit};
use kauri_kernels::rays::corners::summary;
use kauri_kernels::rays::extent::Extent;

impl<L: Leaf> GpuBuilder<L> {
    /// Fits a hierarchy to its items after they have moved, and waits for the result. There is at least one item.
    pub(in super::super) fn refit(
        &mut self,
        stream: &Stream,
        old: &GpuTree<L>,
        input: impl DeviceInput<Leaf = L>,
    ) -> Result<GpuTree<L>> {
        let mut tree = self.take_spare(stream)?;
        let (num_items, num_nodes) = (input.num_items(), old.nodes.len());
        tree.items.reserve(stream, num_items, LABEL)?;
        tree.extent.reserve(stream, 1, LABEL)?;
        tree.nodes.reserve(stream, num_nodes, LABEL)?;
        (tree.root, tree.height) = (old.root, old.height);
        let plan = |layout: &mut Layout| {
            (
                layout.reserve(num_items),
                layout.reserve(summary::WORDS),
                layout.reserve(num_nodes),
                layout.reserve(num_nodes),
            )
        };
        let ((boxes, found, parents, arrivals), temp) = carve(stream, &mut self.workspace, LABEL, plan)?;
        temp.clear(arrivals)?;
        let (found, parents) = (temp.view(found), temp.view(parents));
        // SAFETY: the buffers have the lengths that the kernels take, and wait for the device before they are freed.
        unsafe {
            input.write_boxes(stream, temp.view(boxes), found)?;
            input.move_leaves(stream, old.items.view(), tree.items.view_mut())?;
            if num_nodes > 0 {
                let nodes = tree.nodes.view_mut();
                stream.copy(nodes, old.nodes.view())?;
                stream.fill_bytes(parents, 0xFF)?;
                stream.launch_items::<bvh_parents>(num_nodes as u64, (old.nodes.view(), parents))?;
                let args =
                    (old.nodes.view(), tree.items.view(), parents.read_only(), temp.view(arrivals), nodes);
                stream.launch_items::<bvh_refit<L>>(num_nodes as u64, args)?;
            }
            let found = stream.read(found.read_only())?;
            if found[summary::INVALID] != u32::MAX {
                return Err(input.error(stream));
            }
            tree.extent_on_host = Extent::from_keys([0, 1, 2, 3, 4, 5, 6].map(|i| found[i]));
            stream.upload(tree.extent.view_mut(), &[tree.extent_on_host])?;
        }
        // Rays may come on another stream.
        stream.synchronize()?;
        Ok(tree)
    }
}

//! The builder: codes, clusters, nodes, leaves.

use super::clusters::{Clusters, ClustersPlan};
use super::codes::CodesPlan;
use super::input::DeviceInput;
use super::nodes::NodesPlan;
use super::tree::{GpuTree, LABEL};
use crate::device::{Gpu, Layout, Region, Stream, Workspace};
use crate::error::Result;
use crate::primitives::planned::{bytes_of, carve};
use kauri_kernels::bvh::leaf::Leaf;
use kauri_kernels::rays::aabb::Aabb;
use kauri_kernels::rays::corners::summary;
use kauri_kernels::rays::extent::Extent;

/// The memory of builds and refits, and of the previous hierarchy. From the third build of one size on, nothing is allocated.
pub(in super::super) struct GpuBuilder<L> {
    pub(super) workspace: Workspace,
    spare: Option<GpuTree<L>>,
}

/// The temporary memory of a build.
struct BuildPlan {
    boxes: Region<Aabb>,
    found: Region<u32>,
    ids: Region<u32>,
    codes: CodesPlan,
    clusters: ClustersPlan,
    nodes: NodesPlan,
}

impl BuildPlan {
    fn new(layout: &mut Layout, num_items: usize) -> Self {
        Self {
            boxes: layout.reserve(num_items),
            found: layout.reserve(summary::WORDS),
            ids: layout.reserve(num_items),
            codes: CodesPlan::new(layout, num_items),
            clusters: ClustersPlan::new(layout, num_items),
            nodes: NodesPlan::new(layout, num_items),
        }
    }
}

impl<L: Leaf> GpuBuilder<L> {
    pub(in super::super) fn new(gpu: &Gpu) -> Self {
        Self { workspace: Workspace::new(gpu), spare: None }
    }

    /// Returns the temporary bytes of a build.
    pub(in super::super) fn temp_bytes(num_items: usize) -> u64 {
        if num_items == 0 { 0 } else { bytes_of(|layout| BuildPlan::new(layout, num_items)) }
    }

    /// Builds a hierarchy, and waits for it.
    pub(in super::super) fn build(
        &mut self,
        stream: &Stream,
        input: impl DeviceInput<Leaf = L>,
    ) -> Result<GpuTree<L>> {
        let n = input.num_items();
        if n == 0 {
            return GpuTree::empty(stream);
        }
        let mut tree = self.take_spare(stream)?;
        tree.items.reserve(stream, n, LABEL)?;
        tree.extent.reserve(stream, 1, LABEL)?;
        let plan = |layout: &mut Layout| BuildPlan::new(layout, n);
        let (plan, temp) = carve(stream, &mut self.workspace, LABEL, plan)?;
        let (boxes, found, ids) = (temp.view(plan.boxes), temp.view(plan.found), temp.view(plan.ids));
        // SAFETY: the memory is as planned, and waits for the device before it is freed.
        unsafe {
            input.write_boxes(stream, boxes, found)?;
            let (boxes, found) = (boxes.read_only(), found.read_only());
            let (codes, order) = plan.codes.sorted(&temp, boxes, found)?;
            let Clusters { root, tree: binary } = plan.clusters.merged(&temp, codes, order, boxes)?;
            let nodes = plan.nodes.counted(&temp, root, binary, found, tree.extent.view_mut())?;
            if nodes.summary.found[summary::INVALID] != u32::MAX {
                return Err(input.error(stream));
            }
            (tree.root, tree.height) = (nodes.summary.root, nodes.summary.height);
            tree.extent_on_host = Extent::from_keys([0, 1, 2, 3, 4, 5, 6].map(|i| nodes.summary.found[i]));
            tree.nodes.reserve(stream, nodes.summary.num_nodes as usize, LABEL)?;
            nodes.write(stream, boxes, tree.nodes.view_mut(), ids)?;
            input.write_leaves(stream, ids.read_only(), tree.items.view_mut())?;
        }
        // Rays may come on another stream.
        stream.synchronize()?;
        Ok(tree)
    }

    /// Takes the memory of a hierarchy that is no longer needed, for one that the stream writes.
    pub(super) fn take_spare(&mut self, stream: &Stream) -> Result<GpuTree<L>> {
        let mut spare = self.spare.take().unwrap_or_else(|| GpuTree::new(stream.gpu()));
        spare.readers.wait(stream)?;
        Ok(spare)
    }

    /// Keeps the memory of a hierarchy for the next one.
    pub(in super::super) fn keep(&mut self, tree: GpuTree<L>) {
        self.spare = Some(tree);
    }

    /// Returns the bytes of the temporary memory.
    pub(in super::super) fn bytes(&self) -> u64 {
        self.workspace.bytes()
    }
}

//! The nodes for rays.

use crate::device::{Layout, Region, Stream, Temp};
use crate::error::Result;
use crate::primitives::scan::{Scan, ScanKind};
use cuda_std::mem::{Slice, SliceMut};
use kauri_kernels::bvh::clusters::{BinaryTree, BinaryTreeMut};
use kauri_kernels::bvh::node::Node;
use kauri_kernels::bvh::nodes::{Summary, bvh_nodes, bvh_summary};
use kauri_kernels::rays::aabb::Aabb;
use kauri_kernels::rays::extent::Extent;
use kauri_kernels::thread::operator::Sum;
use kauri_kernels::warp::look_back::Decoupled;

/// The temporary memory of the nodes.
pub(super) struct NodesPlan {
    scan: Scan,
    summary: Region<Summary>,
}

/// Nodes that are counted.
pub(super) struct Nodes<'a> {
    pub(super) summary: Summary,
    root: Slice<'a, u64>,
    binary: BinaryTreeMut<'a>,
}

impl NodesPlan {
    pub(super) fn new(layout: &mut Layout, num_triangles: usize) -> Self {
        Self { scan: Scan::plan::<u64, Decoupled>(layout, num_triangles + 1), summary: layout.reserve(1) }
    }

    /// Counts the nodes, and waits for the number. Writes the extent.
    ///
    /// # Safety
    /// The binary tree has as many triangles as planned. Nothing else uses the temporary memory until the stream has done the work.
    pub(super) unsafe fn counted<'a>(
        &self,
        temp: &Temp<'_>,
        root: Slice<'a, u64>,
        binary: BinaryTreeMut<'a>,
        found: Slice<'_, u32>,
        extent: SliceMut<'_, Extent>,
    ) -> Result<Nodes<'a>> {
        let (stream, summary, sizes) = (&temp.stream, temp.view(self.summary), binary.sizes);
        // SAFETY: passed on to the caller.
        unsafe {
            self.scan.run::<u64, Sum, Decoupled>(temp, sizes.read_only(), sizes, ScanKind::Exclusive)?;
            let args = (sizes.read_only(), binary.shapes.read_only(), root, found, summary, extent);
            stream.launch::<bvh_summary>(1, args)?;
            let summary = stream.read(summary.read_only())?[0];
            Ok(Nodes { summary, root, binary })
        }
    }
}

impl Nodes<'_> {
    /// Writes the nodes, and the ids of the triangles of all leaves.
    ///
    /// # Safety
    /// There are as many nodes as counted, and as many boxes and ids as triangles. Nothing else uses them until the stream has done the work.
    pub(super) unsafe fn write(
        &self,
        stream: &Stream,
        boxes: Slice<'_, Aabb>,
        nodes: SliceMut<'_, Node>,
        ids: SliceMut<'_, u32>,
    ) -> Result<()> {
        let tree = BinaryTree { nodes: self.binary.nodes.read_only(), boxes };
        let args = (tree, self.binary.sizes.read_only(), self.root, nodes, ids);
        // SAFETY: passed on to the caller.
        unsafe { stream.launch_items::<bvh_nodes>(boxes.len() as u64, args) }
    }
}

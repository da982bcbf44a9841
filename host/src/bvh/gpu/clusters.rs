//! The binary tree.

use crate::device::{Layout, Region, Temp};
use crate::error::Result;
use cuda_std::mem::Slice;
use kauri_kernels::bvh::clusters::{BinaryNode, BinaryTreeMut, bvh_clusters};
use kauri_kernels::rays::aabb::Aabb;

/// The temporary memory of the binary tree.
pub(super) struct ClustersPlan {
    clusters: Region<u64>,
    ends: Region<u64>,
    nodes: Region<BinaryNode>,
    shapes: Region<u32>,
    sizes: Region<u64>,
}

/// A binary tree.
pub(super) struct Clusters<'a> {
    /// The root is the first of these.
    pub(super) root: Slice<'a, u64>,
    pub(super) tree: BinaryTreeMut<'a>,
}

impl ClustersPlan {
    pub(super) fn new(layout: &mut Layout, num_triangles: usize) -> Self {
        Self {
            clusters: layout.reserve(num_triangles),
            ends: layout.reserve(num_triangles),
            nodes: layout.reserve(num_triangles),
            shapes: layout.reserve(num_triangles),
            sizes: layout.reserve(num_triangles + 1),
        }
    }

    /// Merges triangles, given their codes and boxes.
    ///
    /// # Safety
    /// There are as many triangles as planned. Nothing else uses the temporary memory until the stream has done the work.
    pub(super) unsafe fn merged<'a>(
        &self,
        temp: &Temp<'a>,
        codes: Slice<'_, u64>,
        order: Slice<'_, u32>,
        boxes: Slice<'_, Aabb>,
    ) -> Result<Clusters<'a>> {
        let (clusters, ends) = (temp.view(self.clusters), temp.view(self.ends));
        let tree = BinaryTreeMut {
            nodes: temp.view(self.nodes),
            shapes: temp.view(self.shapes),
            sizes: temp.view(self.sizes),
        };
        // SAFETY: passed on to the caller.
        unsafe {
            temp.stream.fill_bytes(ends, 0xFF)?;
            let args = (codes, order, boxes, clusters, ends, tree);
            temp.stream.launch_items::<bvh_clusters>(boxes.len() as u64, args)?;
        }
        Ok(Clusters { root: clusters.read_only(), tree })
    }
}

//! The fast builder: corners, large nodes, small roots, then the tree in preorder.

use super::build_input::BuildInput;
use super::corners::{RootOutput, load_mesh};
use super::growable_buffer::GrowableBuffer;
use super::large_nodes::LargeNodes;
use super::preorder::Preorder;
use super::refit::Refit;
use super::small_roots::SmallRoots;
use super::tree::GpuTree;
use crate::device::{Gpu, Stream, Workspace};
use crate::error::Result;
use crate::sah::device_mesh::DeviceMesh;
use crate::sah::host_tree::{HostTree, Subtree};
use crate::sah::options::SahOptions;
use crate::stats::Stats;
use kauri_kernels::sah::aabb::Aabb;
use kauri_kernels::sah::extent::Extent;
use kauri_kernels::sah::large_nodes::SMALL_TRIANGLES;

/// The memory of builds and refits, and of the previous tree. From the third build of one size on, nothing is allocated.
pub(in super::super) struct GpuBuilder {
    workspace: Workspace,
    boxes: GrowableBuffer<Aabb>,
    large: LargeNodes,
    small: SmallRoots,
    preorder: Preorder,
    refit: Refit,
    spare: Option<GpuTree>,
}

impl GpuBuilder {
    pub(in super::super) fn new(gpu: &Gpu) -> Self {
        Self {
            workspace: Workspace::new(gpu),
            boxes: GrowableBuffer::new("boxes of triangles"),
            large: LargeNodes::new(),
            small: SmallRoots::new(),
            preorder: Preorder::new(),
            refit: Refit::new(),
            spare: None,
        }
    }

    /// Returns the scratch memory that every build of this size takes: boxes, the first level of large nodes, and small roots.
    pub(in super::super) fn min_temp_bytes(num_triangles: usize, options: &SahOptions) -> u64 {
        (num_triangles * size_of::<Aabb>()) as u64
            + LargeNodes::min_bytes(num_triangles, options)
            + SmallRoots::min_bytes(num_triangles, options)
    }

    /// Builds the tree over a mesh, and waits for it.
    pub(in super::super) fn build(
        &mut self,
        stream: &Stream,
        mesh: DeviceMesh<'_>,
        options: &SahOptions,
        stats: &mut Stats,
    ) -> Result<GpuTree> {
        if mesh.is_empty() {
            let empty = HostTree::new(&Subtree::empty(), Extent::ZERO, Vec::new())?;
            return GpuTree::from_host(stream, &empty);
        }
        let mut tree = self.take_spare(stream)?;
        let Self { workspace, boxes, large, small, preorder, .. } = self;
        stats.phase("triangles", || {
            let root = large.reserve_root(stream, mesh.len())?;
            load_mesh(stream, workspace, mesh, &mut tree, boxes, root)
        })?;
        let bounds = tree.extent_on_host.bounds;
        let input =
            BuildInput { corners: tree.corners.first(mesh.len()), boxes: boxes.first(mesh.len()), options };
        let top = stats.phase("large nodes", || {
            small.clear();
            if mesh.len() as u32 <= SMALL_TRIANGLES {
                large.take_small_root(stream, &input, bounds, small)
            } else {
                large.split(stream, workspace, &input, small)
            }
        })?;
        let size = stats.phase("small nodes", || {
            small.split(stream, workspace, &input)?;
            preorder.compute_sizes(stream, large, &top, small)
        })?;
        stats.phase("preorder", || {
            tree.nodes.reserve(stream, size.nodes as usize, 0)?;
            tree.references.reserve(stream, size.references as usize, 0)?;
            let (nodes, references) = (tree.nodes.all_mut(), tree.references.all_mut());
            // SAFETY: the tree has as much memory as the sizes say.
            unsafe { preorder.write(stream, &input, large, &top, small, (nodes, references))? };
            // Rays may come on another stream.
            stream.synchronize()
        })?;
        (tree.num_nodes, tree.num_references) = (size.nodes as usize, size.references as usize);
        Ok(tree)
    }

    /// Refits a tree to a mesh with as many triangles, at least one, and waits for it.
    pub(in super::super) fn refit(
        &mut self,
        stream: &Stream,
        old: &GpuTree,
        mesh: DeviceMesh<'_>,
    ) -> Result<GpuTree> {
        let mut tree = self.take_spare(stream)?;
        let Self { workspace, boxes, refit, .. } = self;
        load_mesh(stream, workspace, mesh, &mut tree, boxes, RootOutput::none())?;
        refit.run(stream, workspace, boxes.first(mesh.len()), old, &mut tree)?;
        Ok(tree)
    }

    /// Takes the memory of a tree that is no longer needed, for a tree that the stream writes.
    fn take_spare(&mut self, stream: &Stream) -> Result<GpuTree> {
        let mut spare = self.spare.take().unwrap_or_else(|| GpuTree::new(stream.gpu()));
        spare.wait_for_readers(stream)?;
        Ok(spare)
    }

    /// Keeps the memory of a tree for the next one.
    pub(in super::super) fn keep(&mut self, tree: GpuTree) {
        self.spare = Some(tree);
    }

    /// Returns the bytes held, without those of the kept tree.
    pub(in super::super) fn bytes(&self) -> u64 {
        self.workspace.bytes()
            + self.boxes.bytes()
            + self.large.bytes()
            + self.small.bytes()
            + self.preorder.bytes()
            + self.refit.bytes()
    }
}

//! The fast builder: corners, large nodes, small roots, then the tree in preorder.

use super::build_input::BuildInput;
use super::large_nodes::LargeNodes;
use super::refit::Refit;
use super::root::load_mesh;
use super::small_roots::SmallRoots;
use super::subtrees::Subtrees;
use super::tree::{GpuTree, TREE};
use crate::device::GrowableBuffer;
use crate::device::{Gpu, Stream, Workspace};
use crate::error::Result;
use crate::mesh::DeviceMesh;
use crate::primitives::pairs::empty_view;
use crate::sah::host_tree::{HostTree, Subtree};
use crate::sah::options::SahOptions;
use crate::stats::Stats;
use kauri_kernels::rays::aabb::Aabb;
use kauri_kernels::rays::extent::Extent;
use kauri_kernels::sah::preorder::TreeMut;

/// The memory of builds and refits, and of the previous tree. From the third build of one size on, nothing is allocated.
pub(in super::super) struct GpuBuilder {
    workspace: Workspace,
    boxes: GrowableBuffer<Aabb>,
    large: LargeNodes,
    small: SmallRoots,
    refit: Refit,
    spare: Option<GpuTree>,
}

impl GpuBuilder {
    pub(in super::super) fn new(gpu: &Gpu) -> Self {
        Self {
            workspace: Workspace::new(gpu),
            boxes: GrowableBuffer::default(),
            large: LargeNodes::default(),
            small: SmallRoots::default(),
            refit: Refit::default(),
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
        let Self { workspace, boxes, large, small, .. } = self;
        tree.extent_on_host = stats.phase("triangles", || {
            let root = large.reserve_root(stream, mesh.len())?;
            let GpuTree { corners, extent, .. } = &mut tree;
            load_mesh(stream, workspace, mesh, corners, extent, boxes, root)
        })?;
        let input = BuildInput {
            stream,
            corners: tree.corners.view(),
            boxes: boxes.view(),
            bounds: tree.extent_on_host.bounds,
            options,
            #[cfg(feature = "research")]
            step_times: Default::default(),
        };
        stats.phase("large nodes", || {
            small.clear();
            large.split(workspace, &input, small)
        })?;
        #[cfg(feature = "research")]
        if options.stages.time_steps {
            let [boxes, sort] = input.step_times.get();
            stats.split_phase(&[("boxes of large nodes", boxes), ("sort of large nodes", sort)]);
        }
        let (subtrees, size) = stats.phase("small nodes", || -> Result<_> {
            let lens = small.prepare(workspace, &input)?;
            let subtrees = Subtrees::carve(workspace, stream, large.num_top_nodes(), lens)?;
            // SAFETY: the memory is as prepared, and waits for the device before it is freed.
            unsafe { small.split(&input, &subtrees)? };
            let size = subtrees.compute_sizes(stream, large)?;
            Ok((subtrees, size))
        })?;
        stats.phase("preorder", || {
            tree.nodes.reserve(stream, size.nodes as usize, TREE)?;
            tree.references.reserve(stream, size.references as usize, TREE)?;
            let memory = TreeMut { nodes: tree.nodes.view_mut(), references: tree.references.view_mut() };
            // SAFETY: the tree has as much memory as the sizes say.
            unsafe {
                subtrees.write_top(stream, large, memory)?;
                small.write(&input, &subtrees, memory)?;
            }
            // Rays may come on another stream.
            stream.synchronize()
        })?;
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
        let GpuTree { corners, extent, .. } = &mut tree;
        let no_root = (empty_view(), empty_view());
        tree.extent_on_host = load_mesh(stream, workspace, mesh, corners, extent, boxes, no_root)?;
        refit.run(stream, workspace, boxes.view(), old, &mut tree)?;
        Ok(tree)
    }

    /// Takes the memory of a tree that is no longer needed, for a tree that the stream writes.
    fn take_spare(&mut self, stream: &Stream) -> Result<GpuTree> {
        let mut spare = self.spare.take().unwrap_or_else(|| GpuTree::new(stream.gpu()));
        spare.readers.wait(stream)?;
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
            + self.refit.bytes()
    }
}

//! A build: large nodes, small ones, and the tree made of them.

use super::super::SahOptions;
use super::super::host::{HostTree, Subtree};
use super::super::on_device::DeviceMesh;
use super::large::LargeNodes;
use super::preorder::Preorder;
use super::refit::Refit;
use super::room::Room;
use super::small::SmallNodes;
use super::{GpuTree, Triangles};
use crate::device::{Gpu, Layout, Stream, Workspace};
use crate::error::Result;
use crate::primitives::pairs::empty_view;
use crate::stats::Stats;
use kauri_kernels::sah::aabb::Aabb;
use kauri_kernels::sah::corners::{found, sah_corners, sah_root};
use kauri_kernels::sah::extent::Extent;

/// The memory of builds, and of the tree before the last: the third of the same size allocates nothing.
pub(in super::super) struct Builder {
    pub(super) workspace: Workspace,
    pub(super) boxes: Room<Aabb>,
    large: LargeNodes,
    small: SmallNodes,
    preorder: Preorder,
    pub(super) refit: Refit,
    spare: Option<GpuTree>,
}

impl Builder {
    pub(in super::super) fn new(gpu: &Gpu) -> Self {
        Self {
            workspace: Workspace::new(gpu),
            boxes: Room::new("boxes of triangles"),
            large: LargeNodes::new(),
            small: SmallNodes::new(),
            preorder: Preorder::new(),
            refit: Refit::new(),
            spare: None,
        }
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
            let nothing = HostTree::new(&Subtree::empty(), Extent::ZERO, Vec::new())?;
            return GpuTree::of_host(stream, &nothing);
        }
        let mut tree = self.spare(stream)?;
        let bounds = stats.phase("triangles", || self.see(stream, mesh, &mut tree, true))?;
        let Self { workspace, boxes, large, small, preorder, .. } = self;
        let corners = tree.corners.first(mesh.len());
        let input = Triangles { corners, boxes: boxes.first(mesh.len()), options };
        let uppers = stats.phase("large nodes", || large.split(stream, workspace, &input, bounds, small))?;
        let size = stats.phase("small nodes", || {
            small.split(stream, workspace, &input)?;
            preorder.sizes(stream, large, &uppers, small)
        })?;
        stats.phase("preorder", || {
            tree.nodes.reserve(stream, size.nodes as usize, 0)?;
            tree.listed.reserve(stream, size.listed as usize, 0)?;
            let (nodes, listed) = (tree.nodes.all_mut(), tree.listed.all_mut());
            // SAFETY: there is room for as much as was counted.
            unsafe { preorder.write(stream, &input, large, &uppers, small, (nodes, listed))? };
            // Rays may come on another stream.
            stream.synchronize()
        })?;
        (tree.num_nodes, tree.num_listed) = (size.nodes as usize, size.listed as usize);
        Ok(tree)
    }

    /// The memory of a tree that is no longer needed, for another that the stream makes.
    pub(super) fn spare(&mut self, stream: &Stream) -> Result<GpuTree> {
        let mut spare = self.spare.take().unwrap_or_else(|| GpuTree::new(stream.gpu()));
        spare.wait_for_readers(stream)?;
        Ok(spare)
    }

    /// Bytes held, but for the tree that is kept.
    pub(in super::super) fn bytes(&self) -> u64 {
        self.workspace.bytes()
            + self.boxes.bytes()
            + self.large.bytes()
            + self.small.bytes()
            + self.preorder.bytes()
            + self.refit.bytes()
    }

    /// Keeps the memory of a tree for the next.
    pub(in super::super) fn keep(&mut self, tree: GpuTree) {
        self.spare = Some(tree);
    }

    /// Looks at a mesh that has triangles: makes their corners, boxes, of which these are kept, and the extent of everything, which the host is
    /// told; and the first of the large nodes if they are to split.
    pub(super) fn see(
        &mut self,
        stream: &Stream,
        mesh: DeviceMesh<'_>,
        tree: &mut GpuTree,
        splits: bool,
    ) -> Result<Aabb> {
        let num = mesh.len();
        tree.num_triangles = num;
        tree.corners.reserve(stream, num, 0)?;
        tree.extent.reserve(stream, 1, 0)?;
        self.boxes.reserve(stream, num, 0)?;
        let (listed, root) =
            if splits { self.large.first(stream, num)? } else { (empty_view(), empty_view()) };
        let mut layout = Layout::new();
        let words = layout.reserve::<u32>(found::WORDS);
        let temp = self.workspace.carve(stream, &layout, "box of a mesh")?;
        let words = temp.view(words);
        // SAFETY: of the lengths that the kernels take, and they wait for the device before they are freed.
        let words = unsafe {
            stream.fill_bytes(words, 0xFF)?;
            let to = (tree.corners.all_mut().part(0, num), self.boxes.all_mut(), listed, words);
            let args = (mesh.vertices.slice(), mesh.triangles.slice(), to.0, to.1, to.2, to.3);
            stream.launch_items::<sah_corners>(num as u64, args)?;
            stream.launch::<sah_root>(1, (num as u32, words.read_only(), tree.extent.all_mut(), root))?;
            stream.read(words.read_only())?
        };
        mesh.check_found(stream, &words)?;
        tree.extent_on_host = Extent::from_keys([0, 1, 2, 3, 4, 5, 6].map(|i| words[i]));
        Ok(tree.extent_on_host.bounds)
    }
}

//! A build: large nodes, small ones, and the tree made of them.

use super::super::SahOptions;
use super::super::on_device::DeviceMesh;
use super::large::LargeNodes;
use super::preorder::Preorder;
use super::room::Room;
use super::small::SmallNodes;
use super::{GpuTree, Triangles};
use crate::device::{Buffer, Gpu, Layout, Stream, Workspace};
use crate::error::Result;
use cuda_std::mem::Slice;
use kauri_kernels::sah::aabb::Aabb;
use kauri_kernels::sah::chunks::from_keys;
use kauri_kernels::sah::corners::{found, sah_corners, sah_root};
use kauri_kernels::sah::node::Node;
use kauri_kernels::sah::triangle::Corners;

/// The memory of builds: the next one of the same size allocates nothing but its tree.
pub(in super::super) struct Builder {
    pub(super) workspace: Workspace,
    boxes: Room<Aabb>,
    large: LargeNodes,
    small: SmallNodes,
    preorder: Preorder,
}

/// What is known of a mesh.
pub(super) struct Seen {
    pub(super) corners: Buffer<Corners>,
    /// The box of everything, on the device and on the host.
    pub(super) bounds: Buffer<Aabb>,
    on_host: Aabb,
}

impl GpuTree {
    fn of_nothing(stream: &Stream) -> Result<Self> {
        Ok(Self {
            bounds: Buffer::from_slice(stream, &[Aabb { low: [0.0; 3], high: [0.0; 3] }], "SAH k-d tree")?,
            nodes: Buffer::from_slice(stream, &[Node::leaf(0, 0).0], "SAH k-d tree")?,
            listed: Buffer::uninitialized(stream.gpu(), 0, "SAH k-d tree")?,
            corners: Buffer::uninitialized(stream.gpu(), 0, "SAH k-d tree")?,
        })
    }
}

impl Builder {
    pub(in super::super) fn new(gpu: &Gpu) -> Self {
        Self {
            workspace: Workspace::new(gpu),
            boxes: Room::new("boxes of triangles"),
            large: LargeNodes::new(),
            small: SmallNodes::new(),
            preorder: Preorder::new(),
        }
    }

    /// Builds the tree over a mesh.
    pub(in super::super) fn build(
        &mut self,
        stream: &Stream,
        mesh: DeviceMesh<'_>,
        options: &SahOptions,
    ) -> Result<GpuTree> {
        if mesh.is_empty() {
            return GpuTree::of_nothing(stream);
        }
        let Seen { corners, bounds, on_host } = self.see(stream, mesh)?;
        let Self { workspace, boxes, large, small, preorder } = self;
        let input = Triangles { corners: corners.slice(), boxes: boxes.first(mesh.len()), options };
        let uppers = large.split(stream, workspace, &input, on_host, small)?;
        small.split(stream, workspace, &input)?;
        let (nodes, listed) = preorder.write(stream, &input, large, &uppers, small)?;
        Ok(GpuTree { bounds, nodes, listed, corners })
    }

    /// Looks at a mesh that has triangles: makes their corners and boxes, of which these are kept, and the box of everything.
    pub(super) fn see(&mut self, stream: &Stream, mesh: DeviceMesh<'_>) -> Result<Seen> {
        let num = mesh.len();
        let mut corners = Buffer::uninitialized(stream.gpu(), num, "corners of triangles")?;
        let mut bounds = Buffer::uninitialized(stream.gpu(), 1, "SAH k-d tree")?;
        self.boxes.reserve(stream, num, 0)?;
        let (listed, root) = self.large.first(stream, num)?;
        let mut layout = Layout::new();
        let words = layout.reserve::<u32>(found::WORDS);
        let temp = self.workspace.carve(stream, &layout, "box of a mesh")?;
        let words = temp.view(words);
        // SAFETY: of the lengths that the kernels take, and they wait for the device before they are freed.
        let words = unsafe {
            stream.fill_bytes(words, 0xFF)?;
            let (vertices, triangles) = (mesh.vertices.slice(), mesh.triangles.slice());
            let to = (corners.slice_mut(), self.boxes.all_mut(), listed, words);
            stream.launch_items::<sah_corners>(num as u64, (vertices, triangles, to.0, to.1, to.2, to.3))?;
            stream.launch::<sah_root>(1, (num as u32, words.read_only(), bounds.slice_mut(), root))?;
            stream.read(words.read_only())?
        };
        mesh.check_found(stream, &words)?;
        let on_host = from_keys([0, 1, 2, 3, 4, 5].map(|i| words[i]));
        Ok(Seen { corners, bounds, on_host })
    }

    /// The boxes of as many triangles as were looked at.
    pub(super) fn boxes(&self, num: usize) -> Slice<'_, Aabb> {
        self.boxes.first(num)
    }
}

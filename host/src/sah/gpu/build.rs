//! A build: large nodes, small ones, and the tree made of them.

use super::super::SahOptions;
use super::super::host::check_size;
use super::large::{LargeNodes, Uppers};
use super::room::Room;
use super::small::SmallNodes;
use super::{GpuTree, Triangles};
use crate::device::{Buffer, Gpu, Stream, Workspace};
use crate::error::Result;
use crate::mesh::Mesh;
use crate::primitives::pairs::nothing;
use cuda_std::mem::{Slice, SliceMut};
use kauri_kernels::sah::aabb::Aabb;
use kauri_kernels::sah::node::Node;
use kauri_kernels::sah::subtrees::Size;
use kauri_kernels::sah::trace::sah_corners;
use kauri_kernels::sah::tree::{sah_upper_sizes, sah_upper_write};
use kauri_kernels::sah::triangle::Corners;
use std::ops::Range;

/// The memory of builds: the next one of the same size allocates nothing but its tree.
pub(in super::super) struct Builder {
    pub(super) workspace: Workspace,
    boxes: Room<Aabb>,
    large: LargeNodes,
    small: SmallNodes,
    sizes: Room<Size>,
    places: Room<Size>,
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
            sizes: Room::new("sizes of subtrees"),
            places: Room::new("sizes of subtrees"),
        }
    }

    /// Builds the tree over a mesh.
    pub(in super::super) fn build(
        &mut self,
        stream: &Stream,
        mesh: &Mesh,
        options: &SahOptions,
    ) -> Result<GpuTree> {
        if mesh.is_empty() {
            return GpuTree::of_nothing(stream);
        }
        let corners = self.corners(stream, mesh)?;
        let bounds = self.bounds(stream, mesh.len())?;
        let input = Triangles { corners: corners.slice(), boxes: self.boxes.first(mesh.len()), options };
        let root = bounds.to_vec(stream)?[0];
        let uppers = self.large.split(stream, &mut self.workspace, &input, root, &mut self.small)?;
        self.small.split(stream, &mut self.workspace, &input)?;
        let (nodes, listed) = self.write(stream, &uppers)?;
        Ok(GpuTree { bounds, nodes, listed, corners })
    }

    /// The corners of a mesh's triangles; their boxes are kept.
    pub(super) fn corners(&mut self, stream: &Stream, mesh: &Mesh) -> Result<Buffer<Corners>> {
        let vertices = Buffer::from_slice(stream, mesh.vertices().as_flattened(), "vertices")?;
        let triangles = Buffer::from_slice(stream, mesh.triangles().as_flattened(), "triangles")?;
        let mut corners = Buffer::uninitialized(stream.gpu(), mesh.len(), "corners of triangles")?;
        self.boxes.reserve(stream, mesh.len(), 0)?;
        // SAFETY: of the lengths that the kernel takes, and they wait for the device before they are freed.
        unsafe {
            let args = (vertices.slice(), triangles.slice(), corners.slice_mut(), self.boxes.all_mut());
            stream.launch_items::<sah_corners>(mesh.len() as u64, args)?;
        }
        Ok(corners)
    }

    /// The boxes of as many triangles as corners were made of.
    pub(super) fn boxes(&self, num: usize) -> Slice<'_, Aabb> {
        self.boxes.first(num)
    }

    /// The box of all of them, at least one.
    pub(super) fn bounds(&mut self, stream: &Stream, num: usize) -> Result<Buffer<Aabb>> {
        let bounds = self.large.bounds(stream, &mut self.workspace, self.boxes.first(num))?;
        Buffer::from_slice(stream, &[bounds], "SAH k-d tree")
    }

    /// Puts large and small nodes in preorder: sizes from the last level up, places from the root down.
    fn write(&mut self, stream: &Stream, uppers: &Uppers) -> Result<(Buffer<u64>, Buffer<u32>)> {
        let num_uppers = uppers.levels.last().map_or(0, |level| level.end as usize);
        self.sizes.reserve(stream, num_uppers, 0)?;
        self.places.reserve(stream, num_uppers, 0)?;
        self.small.sizes(stream)?;
        let records = if num_uppers > 0 { self.large.uppers(num_uppers) } else { nothing().read_only() };
        let num = |level: &Range<u32>| u64::from(level.end - level.start);
        // SAFETY: levels are parts of the lists, and these wait for the device before they are freed.
        unsafe {
            for level in uppers.levels.iter().rev() {
                let args = (level.start, level.end, records, self.small.all_sizes(), self.sizes.all_mut());
                stream.launch_items::<sah_upper_sizes>(num(level), args)?;
            }
            let root = if num_uppers > 0 { self.sizes.first(1) } else { self.small.all_sizes().part(0, 1) };
            let all: Size = stream.read(root)?[0];
            check_size(all.nodes.into(), all.listed.into())?;
            let mut nodes = Buffer::uninitialized(stream.gpu(), all.nodes as usize, "SAH k-d tree")?;
            let mut listed = Buffer::uninitialized(stream.gpu(), all.listed as usize, "SAH k-d tree")?;
            let places = |places: SliceMut<'_, Size>| stream.fill_bytes(places.part(0, 1), 0);
            if num_uppers > 0 {
                places(self.places.all_mut())?
            } else {
                places(self.small.sizes_and_places().1)?
            }
            for level in &uppers.levels {
                let (small_sizes, small_places) = self.small.sizes_and_places();
                let (sizes, places) = (self.sizes.first(num_uppers), self.places.all_mut());
                let args = (
                    level.start,
                    level.end,
                    records,
                    sizes,
                    small_sizes,
                    places,
                    small_places,
                    nodes.slice_mut(),
                );
                stream.launch_items::<sah_upper_write>(num(level), args)?;
            }
            self.small.write(stream, nodes.slice_mut(), listed.slice_mut())?;
            Ok((nodes, listed))
        }
    }
}

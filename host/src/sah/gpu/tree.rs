//! The tree in device memory.

use crate::device::{Gpu, GrowableBuffer, Readers, Stream};
use crate::error::Result;
use crate::sah::host_tree::HostTree;
use kauri_kernels::rays::extent::Extent;
use kauri_kernels::rays::triangle::Corners;
use kauri_kernels::sah::node::Node;
use kauri_kernels::sah::trace::DeviceTree;

/// A tree in device memory.
pub(in super::super) struct GpuTree {
    pub(in super::super) gpu: Gpu,
    /// One element.
    pub(super) extent: GrowableBuffer<Extent>,
    pub(in super::super) extent_on_host: Extent,
    pub(super) nodes: GrowableBuffer<u64>,
    /// Primitive references: the triangles of all leaves, leaf after leaf.
    pub(super) references: GrowableBuffer<u32>,
    pub(super) corners: GrowableBuffer<Corners>,
    pub(super) readers: Readers,
}

/// Label of the tree's memory in errors.
pub(super) const TREE: &str = "SAH k-d tree";

impl GpuTree {
    /// Returns a tree without memory.
    pub(super) fn new(gpu: &Gpu) -> Self {
        Self {
            gpu: gpu.clone(),
            extent: GrowableBuffer::default(),
            extent_on_host: Extent::EMPTY,
            nodes: GrowableBuffer::default(),
            references: GrowableBuffer::default(),
            corners: GrowableBuffer::default(),
            readers: Readers::default(),
        }
    }

    /// Copies a tree from host memory.
    pub(in super::super) fn from_host(stream: &Stream, tree: &HostTree) -> Result<Self> {
        let nodes: Vec<u64> = tree.nodes.iter().map(|node| node.0).collect();
        Ok(Self {
            extent: GrowableBuffer::from_slice(stream, &[tree.extent], TREE)?,
            extent_on_host: tree.extent,
            nodes: GrowableBuffer::from_slice(stream, &nodes, TREE)?,
            references: GrowableBuffer::from_slice(stream, &tree.references, TREE)?,
            corners: GrowableBuffer::from_slice(stream, &tree.corners, "corners of triangles")?,
            ..Self::new(stream.gpu())
        })
    }

    /// Copies the tree to host memory.
    pub(in super::super) fn to_host(&self) -> Result<HostTree> {
        let stream = Stream::new(&self.gpu)?;
        Ok(HostTree {
            extent: self.extent_on_host,
            nodes: self.nodes.to_vec(&stream)?.into_iter().map(Node).collect(),
            references: self.references.to_vec(&stream)?,
            corners: self.corners.to_vec(&stream)?,
        })
    }

    pub(in super::super) fn num_triangles(&self) -> usize {
        self.corners.len()
    }

    /// Returns the tree as the kernels of ray queries take it.
    pub(super) fn view(&self) -> DeviceTree<'_> {
        DeviceTree {
            nodes: self.nodes.view(),
            references: self.references.view(),
            corners: self.corners.view(),
            extent: self.extent.view(),
        }
    }
}

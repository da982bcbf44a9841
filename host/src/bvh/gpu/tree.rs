//! A hierarchy in device memory.

use crate::bvh::host_tree::HostTree;
use crate::device::{Gpu, GrowableBuffer, Readers, Stream};
use crate::error::Result;
use kauri_kernels::bvh::leaf::Leaf;
use kauri_kernels::bvh::node::Node;
use kauri_kernels::bvh::subtree::Subtree;
use kauri_kernels::rays::extent::Extent;

/// A hierarchy in device memory.
pub(in super::super) struct GpuTree<L> {
    pub(in super::super) gpu: Gpu,
    /// One element.
    pub(super) extent: GrowableBuffer<Extent>,
    pub(in super::super) extent_on_host: Extent,
    /// None if there are no items.
    pub(super) root: Subtree,
    /// The number of levels of nodes.
    pub(super) height: u32,
    pub(in super::super) nodes: GrowableBuffer<Node>,
    /// The items of all leaves.
    pub(in super::super) items: GrowableBuffer<L>,
    pub(super) readers: Readers,
}

/// Label of the hierarchy's memory in errors.
pub(super) const LABEL: &str = "bounding volume hierarchy";

impl<L: Leaf> GpuTree<L> {
    /// Returns a hierarchy without memory.
    pub(super) fn new(gpu: &Gpu) -> Self {
        Self {
            gpu: gpu.clone(),
            extent: GrowableBuffer::default(),
            extent_on_host: Extent::ZERO,
            root: Subtree::NONE,
            height: 0,
            nodes: GrowableBuffer::default(),
            items: GrowableBuffer::default(),
            readers: Readers::default(),
        }
    }

    /// Returns a hierarchy over no items.
    pub(super) fn empty(stream: &Stream) -> Result<Self> {
        let mut tree = Self::new(stream.gpu());
        tree.nodes.reserve(stream, 0, LABEL)?;
        tree.items.reserve(stream, 0, LABEL)?;
        tree.extent = GrowableBuffer::from_slice(stream, &[Extent::ZERO], LABEL)?;
        Ok(tree)
    }

    /// Copies the hierarchy to host memory.
    pub(in super::super) fn to_host(&self) -> Result<HostTree<L>> {
        let stream = Stream::new(&self.gpu)?;
        Ok(HostTree {
            extent: self.extent_on_host,
            root: self.root,
            height: self.height,
            nodes: self.nodes.to_vec(&stream)?,
            items: self.items.to_vec(&stream)?,
        })
    }
}

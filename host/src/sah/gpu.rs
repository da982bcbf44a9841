//! The tree on a GPU.

mod build;
mod large;
mod preorder;
mod rays;
mod refit;
mod room;
mod small;

pub(super) use build::Builder;

use super::SahOptions;
use super::host::HostTree;
use crate::device::{Buffer, Gpu, Stream};
use crate::error::Result;
use cuda_std::mem::Slice;
use kauri_kernels::sah::aabb::Aabb;
use kauri_kernels::sah::node::Node;
use kauri_kernels::sah::triangle::Corners;

/// A tree in device memory.
pub(super) struct GpuTree {
    /// One: that of the root.
    bounds: Buffer<Aabb>,
    nodes: Buffer<u64>,
    listed: Buffer<u32>,
    corners: Buffer<Corners>,
}

/// What a build is about.
struct Triangles<'a> {
    corners: Slice<'a, Corners>,
    boxes: Slice<'a, Aabb>,
    options: &'a SahOptions,
}

impl GpuTree {
    /// A copy of a tree in host memory.
    pub(super) fn of_host(stream: &Stream, tree: &HostTree) -> Result<Self> {
        let nodes: Vec<u64> = tree.nodes.iter().map(|node| node.0).collect();
        Ok(Self {
            bounds: Buffer::from_slice(stream, &[tree.bounds], "SAH k-d tree")?,
            nodes: Buffer::from_slice(stream, &nodes, "SAH k-d tree")?,
            listed: Buffer::from_slice(stream, &tree.listed, "SAH k-d tree")?,
            corners: Buffer::from_slice(stream, &tree.corners, "corners of triangles")?,
        })
    }

    /// A copy in host memory.
    pub(super) fn to_host(&self) -> Result<HostTree> {
        let stream = Stream::new(self.gpu())?;
        Ok(HostTree {
            bounds: self.bounds.to_vec(&stream)?[0],
            nodes: self.nodes.to_vec(&stream)?.into_iter().map(Node).collect(),
            listed: self.listed.to_vec(&stream)?,
            corners: self.corners.to_vec(&stream)?,
        })
    }

    pub(super) fn num_triangles(&self) -> usize {
        self.corners.len()
    }

    pub(super) fn gpu(&self) -> &Gpu {
        self.nodes.gpu()
    }
}

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
use crate::device::{Gpu, Stream};
use crate::error::Result;
use cuda_std::mem::Slice;
use kauri_kernels::sah::aabb::Aabb;
use kauri_kernels::sah::extent::Extent;
use kauri_kernels::sah::node::Node;
use kauri_kernels::sah::triangle::Corners;
use room::Room;
use std::sync::{Mutex, PoisonError};

/// A tree in device memory, which may be of a larger one that was there before.
pub(super) struct GpuTree {
    gpu: Gpu,
    /// One element.
    extent: Room<Extent>,
    extent_on_host: Extent,
    nodes: Room<u64>,
    listed: Room<u32>,
    corners: Room<Corners>,
    num_nodes: usize,
    num_listed: usize,
    num_triangles: usize,
    /// Streams whose work may still read it.
    readers: Mutex<Vec<Stream>>,
}

/// What a build is about.
struct Triangles<'a> {
    corners: Slice<'a, Corners>,
    boxes: Slice<'a, Aabb>,
    options: &'a SahOptions,
}

/// Streams that are remembered: so a program with a stream for each call keeps few.
const MOST_READERS: usize = 16;

/// What memory of a tree is for.
const TREE: &str = "SAH k-d tree";

impl GpuTree {
    /// No tree yet.
    fn new(gpu: &Gpu) -> Self {
        Self {
            gpu: gpu.clone(),
            extent: Room::new(TREE),
            extent_on_host: Extent::EMPTY,
            nodes: Room::new(TREE),
            listed: Room::new(TREE),
            corners: Room::new("corners of triangles"),
            num_nodes: 0,
            num_listed: 0,
            num_triangles: 0,
            readers: Mutex::default(),
        }
    }

    /// A copy of a tree in host memory.
    pub(super) fn of_host(stream: &Stream, tree: &HostTree) -> Result<Self> {
        let nodes: Vec<u64> = tree.nodes.iter().map(|node| node.0).collect();
        Ok(Self {
            extent: Room::with(stream, &[tree.extent], TREE)?,
            extent_on_host: tree.extent,
            nodes: Room::with(stream, &nodes, TREE)?,
            listed: Room::with(stream, &tree.listed, TREE)?,
            corners: Room::with(stream, &tree.corners, "corners of triangles")?,
            num_nodes: nodes.len(),
            num_listed: tree.listed.len(),
            num_triangles: tree.corners.len(),
            ..Self::new(stream.gpu())
        })
    }

    /// A copy in host memory.
    pub(super) fn to_host(&self) -> Result<HostTree> {
        let stream = Stream::new(self.gpu())?;
        Ok(HostTree {
            extent: self.extent_on_host,
            nodes: self.nodes.to_vec(&stream, self.num_nodes)?.into_iter().map(Node).collect(),
            listed: self.listed.to_vec(&stream, self.num_listed)?,
            corners: self.corners.to_vec(&stream, self.num_triangles)?,
        })
    }

    /// Checks that a stream is of the tree's device.
    pub(super) fn check_device(&self, stream: &Stream) -> Result<()> {
        self.gpu.check_same(stream.gpu())
    }

    /// Does work of a stream that reads the tree, and is not waited for; but for that of the first of many streams.
    pub(super) fn read_by<R>(&self, stream: &Stream, work: impl FnOnce() -> Result<R>) -> Result<R> {
        let done = work();
        // After it: an earlier note may be gone by now. And in any case: a part of it may be on its way.
        self.note_reader(stream)?;
        done
    }

    fn note_reader(&self, stream: &Stream) -> Result<()> {
        let mut readers = self.readers.lock().unwrap_or_else(PoisonError::into_inner);
        if readers.iter().any(|reader| reader.same(stream)) {
            return Ok(());
        }
        if readers.len() == MOST_READERS {
            readers[0].synchronize()?;
            readers.remove(0);
        }
        readers.push(stream.clone());
        Ok(())
    }

    /// Lets a stream wait for what reads the tree: then it may be written.
    fn wait_for_readers(&mut self, stream: &Stream) -> Result<()> {
        let readers = self.readers.get_mut().unwrap_or_else(PoisonError::into_inner);
        readers.drain(..).try_for_each(|reader| stream.wait_for(&reader))
    }

    pub(super) fn num_triangles(&self) -> usize {
        self.num_triangles
    }

    pub(super) fn bounds_on_host(&self) -> Aabb {
        self.extent_on_host.bounds
    }

    pub(super) fn corners(&self) -> Slice<'_, Corners> {
        self.corners.first(self.num_triangles)
    }

    pub(super) fn gpu(&self) -> &Gpu {
        &self.gpu
    }
}

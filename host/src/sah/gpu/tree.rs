//! The tree in device memory.

use super::growable_buffer::GrowableBuffer;
use crate::device::{Gpu, Stream};
use crate::error::Result;
use crate::sah::host_tree::HostTree;
use crate::threads::lock;
use cuda_std::mem::Slice;
use kauri_kernels::sah::extent::Extent;
use kauri_kernels::sah::node::Node;
use kauri_kernels::sah::trace::DeviceTree;
use kauri_kernels::sah::triangle::Corners;
use std::sync::{Mutex, PoisonError};

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
    /// Streams whose work may still read the tree.
    readers: Mutex<Vec<Stream>>,
}

/// Maximum number of remembered streams: a program may have a stream for each call.
const MAX_READERS: usize = 16;

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
            readers: Mutex::default(),
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

    /// Enqueues work on a stream that reads the tree, and records the stream as a reader. Waits only for the oldest of too many readers.
    pub(in super::super) fn read_by<R>(
        &self,
        stream: &Stream,
        enqueue: impl FnOnce() -> Result<R>,
    ) -> Result<R> {
        let result = enqueue();
        // Afterwards, since an earlier record may be gone by now; and after an error too, since some of the work may be enqueued.
        self.record_reader(stream)?;
        result
    }

    fn record_reader(&self, stream: &Stream) -> Result<()> {
        let mut readers = lock(&self.readers);
        if readers.iter().any(|reader| reader.same(stream)) {
            return Ok(());
        }
        if readers.len() == MAX_READERS {
            readers[0].synchronize()?;
            readers.remove(0);
        }
        readers.push(stream.clone());
        Ok(())
    }

    /// Makes a stream wait for all readers. After that, the stream may write the tree.
    pub(super) fn wait_for_readers(&mut self, stream: &Stream) -> Result<()> {
        let readers = self.readers.get_mut().unwrap_or_else(PoisonError::into_inner);
        readers.drain(..).try_for_each(|reader| stream.wait_for(&reader))
    }

    pub(in super::super) fn num_triangles(&self) -> usize {
        self.corners.len()
    }

    pub(in super::super) fn corners(&self) -> Slice<'_, Corners> {
        self.corners.view()
    }

    /// Returns the tree as the kernels of ray queries take it.
    pub(super) fn view(&self) -> DeviceTree<'_> {
        DeviceTree {
            nodes: self.nodes.view(),
            references: self.references.view(),
            corners: self.corners(),
            extent: self.extent.view(),
        }
    }
}

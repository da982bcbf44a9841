//! Backend traits of quadtrees: the operations that each device implements. Arguments are already validated.

use crate::device::{Buffer, Stream, Workspace};
use crate::error::{Error, Result};
use crate::quadtree::device_leaves::DeviceLeaves;
use crate::quadtree::options::QuadtreeOptions;
use crate::query::backend::{DeviceQueryBackend, QueryBackend};
use crate::rows::Rows;
use kauri_kernels::quadtree::frame::Frame;
use kauri_kernels::quadtree::node::Node;
use kauri_kernels::thread::coord::Coord;
use std::borrow::Cow;
use std::ops::Range;

/// The properties of a tree that are in host memory on every device.
#[derive(Clone)]
pub(crate) struct Outline {
    /// The words of its [`Frame`].
    pub(crate) frame: Vec<u64>,
    pub(crate) dims: usize,
    pub(crate) options: QuadtreeOptions,
    pub(crate) num_points: usize,
    /// The first node of each level, and the number of nodes.
    pub(crate) level_begins: Vec<u32>,
}

impl Outline {
    /// Returns the frame.
    pub(crate) fn frame<const D: usize>(&self) -> Frame<D> {
        Frame::from_words(&self.frame).expect("a tree has the frame that it was built with")
    }
}

/// A quadtree or octree on its device.
pub(crate) trait Backend<C: Coord>: Send + Sync {
    /// Returns the tree's properties.
    fn outline(&self) -> &Outline;
    /// Returns the nodes in breadth-first order.
    fn nodes(&self) -> Result<Cow<'_, [Node]>>;
    /// Returns the low corners of the cells of some nodes, in units of the frame.
    fn cells(&self, nodes: Range<u32>) -> Result<Cow<'_, [u32]>>;
    /// Returns the ids of the points in tree order.
    fn ids(&self) -> Result<Cow<'_, [u32]>>;
    /// Returns the coordinates in tree order.
    fn coords(&self) -> Result<Cow<'_, [C]>>;
    /// Returns the leaf of each query.
    fn leaf_of(&self, queries: &[C]) -> Result<Vec<u32>>;
    /// Returns the leaves adjacent to each node.
    fn adjacent_leaves(&self, nodes: &[u32]) -> Result<Rows<u32>>;
    /// Returns the sample of each node, as an index in tree order.
    fn samples(&self) -> Result<Vec<u32>>;
    /// Checks that the tree is the one that a build makes of its points.
    fn verify(&self) -> Result<()>;
    /// Returns the backend that answers queries. The first call builds its data.
    fn query_backend(&self) -> Result<&dyn QueryBackend<C>>;
    /// Returns the tree if it is in device memory.
    fn on_device(&self) -> Result<&dyn DeviceTree<C>> {
        Err(Error::NotOnGpu)
    }
}

/// A quadtree or octree in device memory, with queries and results in device memory. The host checks lengths and devices, not items.
pub(crate) trait DeviceTree<C: Coord> {
    /// Returns the backend that answers queries in device memory. The first call builds its data.
    fn device_query_backend(&self) -> Result<&dyn DeviceQueryBackend<C>>;
    /// Writes the leaf of each query.
    fn leaf_of_on(&self, stream: &Stream, queries: &Buffer<C>, leaves: &mut Buffer<u32>) -> Result<()>;
    /// Writes the leaves adjacent to each node, up to the capacity of `leaves`.
    fn adjacent_leaves_on(
        &self,
        stream: &Stream,
        workspace: &mut Workspace,
        nodes: &Buffer<u32>,
        offsets: &mut Buffer<u64>,
        leaves: &mut Buffer<u32>,
    ) -> Result<()>;
    /// Writes the leaves adjacent to each node in buffers of exactly their size; waits for the device.
    fn all_adjacent_leaves_on(
        &self,
        stream: &Stream,
        workspace: &mut Workspace,
        nodes: &Buffer<u32>,
    ) -> Result<DeviceLeaves>;
}

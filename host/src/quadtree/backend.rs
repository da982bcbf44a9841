//! Backend trait of quadtrees: the operations that each device implements. Arguments are already validated.

use crate::error::Result;
use crate::quadtree::leaf_rows::LeafRows;
use crate::quadtree::options::QuadtreeOptions;
#[cfg(feature = "io")]
use crate::quadtree::sections::Sections;
use crate::query::backend::QueryBackend;
use kauri_kernels::quadtree::node::Node;
use kauri_kernels::thread::coord::Coord;
use std::borrow::Cow;

/// A quadtree or octree on its device.
pub(crate) trait Backend<C: Coord>: Send + Sync {
    /// Returns the options of the build.
    fn options(&self) -> &QuadtreeOptions;
    /// Returns the frame's words.
    fn frame(&self) -> &[u64];
    /// Returns the first node of each level, and the number of nodes.
    fn level_begins(&self) -> &[u32];
    /// Returns the number of points.
    fn num_points(&self) -> usize;
    /// Returns the nodes in breadth-first order.
    fn nodes(&self) -> Result<Cow<'_, [Node]>>;
    /// Returns the ids of the points in tree order.
    fn ids(&self) -> Result<Cow<'_, [u32]>>;
    /// Returns the coordinates in tree order.
    fn coords(&self) -> Result<Cow<'_, [C]>>;
    /// Returns the low corner of a node's cell, in units of the frame.
    fn cell(&self, node: u32) -> Result<Vec<u32>>;
    /// Checks everything that a build promises.
    fn verify(&self) -> Result<()>;
    /// Returns the leaf of each query.
    fn leaf_of(&self, queries: &[C]) -> Result<Vec<u32>>;
    /// Returns the leaves adjacent to each node.
    fn adjacent_leaves(&self, nodes: &[u32]) -> Result<LeafRows>;
    /// Returns the sample of each node, as an index in tree order.
    fn samples(&self) -> Result<Vec<u32>>;
    /// Returns the backend that answers queries. The first call builds its data.
    fn query_backend(&self) -> Result<&dyn QueryBackend<C>>;
    /// Returns the arrays that a file stores.
    #[cfg(feature = "io")]
    fn sections(&self) -> Result<Sections<'_, C>>;
}

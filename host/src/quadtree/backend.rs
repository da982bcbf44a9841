//! Backend trait of quadtrees: the operations that each device implements. Arguments are already validated.

use crate::error::Result;
#[cfg(feature = "io")]
use crate::quadtree::stored::Sections;
use crate::quadtree::{GpuTree, HostTree, QuadtreeOptions, with_plane_or_space};
use crate::query::backend::QueryBackend;
use crate::rows::Rows;
use kauri_kernels::quadtree::node::Node;
use kauri_kernels::thread::coord::Coord;
use std::borrow::Cow;

/// A quadtree or octree on its device.
pub(crate) trait Backend<C: Coord>: Send + Sync {
    /// The options of the build.
    fn options(&self) -> &QuadtreeOptions;
    /// The frame's words.
    fn frame(&self) -> &[u64];
    /// The first node of each level, and the number of nodes.
    fn level_begins(&self) -> &[u32];
    /// Number of points.
    fn num_points(&self) -> usize;
    /// The nodes in breadth-first order.
    fn nodes(&self) -> Result<Cow<'_, [Node]>>;
    /// The ids of the points in tree order.
    fn ids(&self) -> Result<Cow<'_, [u32]>>;
    /// The coordinates in tree order.
    fn coords(&self) -> Result<Cow<'_, [C]>>;
    /// The low corner of a node's cell, in units of the frame.
    fn cell(&self, node: u32) -> Result<Vec<u32>>;
    /// Checks everything that a build promises.
    fn verify(&self) -> Result<()>;
    /// The leaf of each query.
    fn leaves_of(&self, queries: &[C]) -> Result<Vec<u32>>;
    /// The leaves adjacent to nodes.
    fn leaves_around(&self, nodes: &[u32]) -> Result<Rows<u32>>;
    /// The place, in tree order, of the sample of each node.
    fn samples(&self) -> Result<Vec<u32>>;
    /// Answers queries. The first call builds what they need.
    fn query_backend(&self) -> Result<&dyn QueryBackend<C>>;
    /// The contents of a file of the tree.
    #[cfg(feature = "io")]
    fn stored(&self) -> Result<Sections<'_, C>>;
}

impl<C: Coord> Backend<C> for HostTree<C> {
    fn options(&self) -> &QuadtreeOptions {
        &self.options
    }
    fn frame(&self) -> &[u64] {
        &self.frame
    }
    fn level_begins(&self) -> &[u32] {
        &self.level_begins
    }
    fn num_points(&self) -> usize {
        self.ids.len()
    }
    fn nodes(&self) -> Result<Cow<'_, [Node]>> {
        Ok(self.nodes().into())
    }
    fn ids(&self) -> Result<Cow<'_, [u32]>> {
        Ok(Cow::Borrowed(&self.ids))
    }
    fn coords(&self) -> Result<Cow<'_, [C]>> {
        Ok(Cow::Borrowed(&self.coords))
    }
    fn cell(&self, node: u32) -> Result<Vec<u32>> {
        Ok(self.cell(node).to_vec())
    }
    fn verify(&self) -> Result<()> {
        with_plane_or_space!(self.dims, D => self.verify::<D>())
    }
    fn leaves_of(&self, queries: &[C]) -> Result<Vec<u32>> {
        with_plane_or_space!(self.dims, D => self.leaves_of(queries.as_chunks::<D>().0))
    }
    fn leaves_around(&self, nodes: &[u32]) -> Result<Rows<u32>> {
        with_plane_or_space!(self.dims, D => self.leaves_around::<D>(nodes))
    }
    fn samples(&self) -> Result<Vec<u32>> {
        with_plane_or_space!(self.dims, D => self.samples::<D>())
    }
    fn query_backend(&self) -> Result<&dyn QueryBackend<C>> {
        Ok(self)
    }
    #[cfg(feature = "io")]
    fn stored(&self) -> Result<Sections<'_, C>> {
        Ok(self.stored())
    }
}

impl<C: Coord> Backend<C> for GpuTree<C> {
    fn options(&self) -> &QuadtreeOptions {
        &self.options
    }
    fn frame(&self) -> &[u64] {
        &self.frame
    }
    fn level_begins(&self) -> &[u32] {
        &self.level_begins
    }
    fn num_points(&self) -> usize {
        self.num_points()
    }
    fn nodes(&self) -> Result<Cow<'_, [Node]>> {
        self.nodes().map(Cow::Owned)
    }
    fn ids(&self) -> Result<Cow<'_, [u32]>> {
        self.ids().map(Cow::Owned)
    }
    fn coords(&self) -> Result<Cow<'_, [C]>> {
        self.coords().map(Cow::Owned)
    }
    fn cell(&self, node: u32) -> Result<Vec<u32>> {
        self.cell(node)
    }
    fn verify(&self) -> Result<()> {
        Backend::verify(&self.to_host()?)
    }
    fn leaves_of(&self, queries: &[C]) -> Result<Vec<u32>> {
        with_plane_or_space!(self.dims, D => self.leaves_of(queries.as_chunks::<D>().0))
    }
    fn leaves_around(&self, nodes: &[u32]) -> Result<Rows<u32>> {
        with_plane_or_space!(self.dims, D => self.leaves_around::<D>(nodes))
    }
    fn samples(&self) -> Result<Vec<u32>> {
        with_plane_or_space!(self.dims, D => self.samples::<D>())
    }
    fn query_backend(&self) -> Result<&dyn QueryBackend<C>> {
        self.query_backend()
    }
    #[cfg(feature = "io")]
    fn stored(&self) -> Result<Sections<'_, C>> {
        self.to_stored()
    }
}

//! Backend traits of left-balanced trees: the operations that each device implements. Arguments are already validated.

use crate::device::{Buffer, Stream, Workspace};
use crate::error::Result;
use crate::kdtree::options::BuildAlgorithm;
#[cfg(feature = "io")]
use crate::memory::Items;
use crate::query::backend::{DeviceQueryBackend, QueryBackend};
use kauri_kernels::thread::coord::Coord;

/// The arrays of a tree that a file stores, in level order.
#[cfg(feature = "io")]
pub(crate) struct Sections<'a, C> {
    pub(crate) coords: &'a [C],
    pub(crate) ids: &'a [u32],
    /// The split axes of the inner nodes; empty if levels split on axes in turn.
    pub(crate) axes: &'a [u8],
}

/// The nodes of a file, in level order.
#[cfg(feature = "io")]
pub(crate) struct FileNodes<C> {
    pub(crate) dims: usize,
    pub(crate) coords: Items<C>,
    pub(crate) ids: Items<u32>,
    /// The split axes of the inner nodes; empty if levels split on axes in turn.
    pub(crate) axes: Items<u8>,
}

/// A left-balanced tree on its device.
pub(crate) trait Backend<C: Coord>: Send + Sync {
    /// Returns the backend that answers queries.
    fn query_backend(&self) -> &dyn QueryBackend<C>;
    /// Returns the number of points.
    fn num_points(&self) -> usize;
    /// Checks every node against its ancestors.
    fn verify(&self) -> Result<()>;
    /// Returns the ids in level order.
    fn node_ids(&self) -> Result<Vec<u32>>;
    /// Calls `write` with the arrays that a file stores.
    #[cfg(feature = "io")]
    fn sections(&self, write: &mut dyn FnMut(Sections<'_, C>) -> Result<()>) -> Result<()>;
}

/// A left-balanced tree in device memory.
pub(crate) trait GpuBackend<C: Coord>: Backend<C> {
    /// Returns the backend that answers queries in device memory.
    fn device_query_backend(&self) -> &dyn DeviceQueryBackend<C>;
    /// Builds the tree over other points, of the same number, or for the first time.
    fn rebuild(
        &mut self,
        stream: &Stream,
        workspace: &mut Workspace,
        coords: &Buffer<C>,
        algorithm: BuildAlgorithm,
    ) -> Result<()>;
    /// Builds the tree, which has no memory for points yet, in the memory of the points and of their padding. Takes the memory if it
    /// succeeds.
    fn build_in_place(
        &mut self,
        stream: &Stream,
        workspace: &mut Workspace,
        coords: &mut Buffer<C>,
    ) -> Result<()>;
}

//! Backend traits of R-trees: the operations that each device implements. Arguments are already validated.

use crate::device::{Buffer, Stream, Workspace};
use crate::error::Result;
#[cfg(feature = "io")]
use crate::memory::Items;
use crate::query::backend::{DeviceQueryBackend, QueryBackend};
use kauri_kernels::thread::coord::Coord;

/// The arrays of a tree that a file stores, in the order of the tree.
#[cfg(feature = "io")]
pub(crate) struct Sections<'a, C> {
    pub(crate) coords: &'a [C],
    pub(crate) ids: &'a [u32],
    /// The low and the high corner of the grid; anything if there are no points.
    pub(crate) corners: &'a [C],
    /// Number of ids that have been given.
    pub(crate) num_ids: usize,
}

/// The points of a file, in the order of the tree.
#[cfg(feature = "io")]
pub(crate) struct FilePoints<C> {
    pub(crate) dims: usize,
    pub(crate) coords: Items<C>,
    pub(crate) ids: Items<u32>,
    /// The low and the high corner of the grid.
    pub(crate) corners: Items<C>,
    /// Number of ids that have been given.
    pub(crate) num_ids: usize,
    /// The ids in ascending order; empty if all ids that have been given have points.
    pub(crate) own_ids: Vec<u32>,
}

/// An R-tree on its device. A change that returns an error has changed nothing.
pub(crate) trait Backend<C: Coord>: Send + Sync {
    /// Returns the backend that answers queries.
    fn query_backend(&self) -> &dyn QueryBackend<C>;
    /// Number of points.
    fn num_points(&self) -> usize;
    /// Number of ids that have been given.
    fn num_ids(&self) -> usize;
    /// True if a point has the id.
    fn contains(&self, id: u32) -> Result<bool>;
    /// Returns the ids of all points in ascending order.
    fn ids(&self) -> Result<Vec<u32>>;
    /// Calls `write` with the arrays that a file stores.
    #[cfg(feature = "io")]
    fn sections(&self, write: &mut dyn FnMut(Sections<'_, C>) -> Result<()>) -> Result<()>;
    /// Inserts points, which get the next ids; there are ids for them.
    fn insert(&mut self, coords: &[C]) -> Result<()>;
    /// Removes the points with these ids.
    fn remove(&mut self, ids: &[u32]) -> Result<()>;
}

/// An R-tree in device memory.
pub(crate) trait GpuBackend<C: Coord>: Backend<C> {
    /// Returns the backend that answers queries in device memory.
    fn device_query_backend(&self) -> &dyn DeviceQueryBackend<C>;
    /// Builds the tree over other points, of the same number.
    fn rebuild(&mut self, stream: &Stream, workspace: &mut Workspace, coords: &Buffer<C>) -> Result<()>;
    /// As [`insert`](Backend::insert).
    fn insert_on(&mut self, stream: &Stream, workspace: &mut Workspace, coords: &Buffer<C>) -> Result<()>;
    /// As [`remove`](Backend::remove).
    fn remove_on(&mut self, stream: &Stream, workspace: &mut Workspace, ids: &Buffer<u32>) -> Result<()>;
}

//! Backend traits of a tree whose points change: the operations that each device implements. Coordinates are already validated.

use crate::device::{Buffer, Stream, Workspace};
use crate::error::Result;
use crate::query::backend::{DeviceQueryBackend, QueryBackend};
use kauri_kernels::thread::coord::Coord;

/// A tree whose points change, on its device. A call that returns an error has changed nothing.
pub(crate) trait Backend<C: Coord>: Send + Sync {
    /// Returns the backend that answers queries.
    fn query_backend(&self) -> &dyn QueryBackend<C>;
    /// Number of ids that have been given.
    fn num_ids(&self) -> usize;
    /// Number of points.
    fn num_points(&self) -> usize;
    /// True if a point has the id.
    fn contains(&self, id: u32) -> Result<bool>;
    /// Inserts points, which get the next ids; there are ids for them.
    fn insert(&mut self, coords: &[C]) -> Result<()>;
    /// Removes the points with these ids.
    fn remove(&mut self, ids: &[u32]) -> Result<()>;
}

/// A tree whose points change, in device memory.
pub(crate) trait GpuBackend<C: Coord>: Backend<C> {
    /// Returns the backend that answers queries in device memory.
    fn device_query_backend(&self) -> &dyn DeviceQueryBackend<C>;
    /// As [`insert`](Backend::insert).
    fn insert_on(&mut self, stream: &Stream, workspace: &mut Workspace, coords: &Buffer<C>) -> Result<()>;
    /// As [`remove`](Backend::remove).
    fn remove_on(&mut self, stream: &Stream, workspace: &mut Workspace, ids: &Buffer<u32>) -> Result<()>;
}

//! Backend traits of R-trees: the operations that each device implements. Arguments are already validated.

use crate::device::{Buffer, Stream, Workspace};
use crate::error::Result;
use crate::query::backend::{DeviceQueryBackend, QueryBackend};
use kauri_kernels::thread::coord::Coord;

/// An R-tree on its device.
pub(crate) trait Backend<C: Coord>: Send + Sync {
    /// Returns the backend that answers queries.
    fn query_backend(&self) -> &dyn QueryBackend<C>;
    /// Returns the number of points.
    fn num_points(&self) -> usize;
}

/// An R-tree in device memory.
pub(crate) trait GpuBackend<C: Coord>: Backend<C> {
    /// Returns the backend that answers queries in device memory.
    fn device_query_backend(&self) -> &dyn DeviceQueryBackend<C>;
    /// Builds the tree over other points, of the same number.
    fn rebuild(&mut self, stream: &Stream, workspace: &mut Workspace, coords: &Buffer<C>) -> Result<()>;
}

//! Backend traits of left-balanced trees: the operations that each device implements. Arguments are already validated.

use crate::device::{Buffer, Stream, Workspace};
use crate::error::Result;
use crate::kdtree::options::BuildAlgorithm;
#[cfg(feature = "io")]
use crate::kdtree::sections::Sections;
use crate::query::backend::{DeviceQueryBackend, QueryBackend};
use kauri_kernels::thread::coord::Coord;

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
    /// Returns the arrays that a file stores.
    #[cfg(feature = "io")]
    fn sections(&self) -> Result<Sections<'_, C>>;
}

/// A left-balanced tree in device memory.
pub(crate) trait GpuBackend<C: Coord>: Backend<C> {
    /// Returns the backend that answers queries in device memory.
    fn device_query_backend(&self) -> &dyn DeviceQueryBackend<C>;
    /// Builds the tree over other points, of the same number.
    fn rebuild(
        &mut self,
        stream: &Stream,
        workspace: &mut Workspace,
        coords: &Buffer<C>,
        algorithm: BuildAlgorithm,
    ) -> Result<()>;
}

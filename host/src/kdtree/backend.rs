//! Backend trait of left-balanced trees: the operations that each device implements. Arguments are already validated.

use crate::device::{Buffer, Stream, Workspace};
use crate::error::Result;
use crate::kdtree::Builder;
#[cfg(feature = "io")]
use crate::kdtree::stored::Sections;
use crate::query::backend::{DeviceQueryBackend, QueryBackend};
use kauri_kernels::thread::coord::Coord;

/// A left-balanced tree on its device.
pub(crate) trait Backend<C: Coord>: Send + Sync {
    /// Answers queries.
    fn query_backend(&self) -> &dyn QueryBackend<C>;
    /// Number of points.
    fn num_points(&self) -> usize;
    /// Checks every node against its ancestors.
    fn verify(&self) -> Result<()>;
    /// The ids in level order.
    fn node_ids(&self) -> Result<Vec<u32>>;
    /// What a file holds of the tree.
    #[cfg(feature = "io")]
    fn stored(&self) -> Result<Sections<'_, C>>;
}

/// A left-balanced tree in device memory.
pub(crate) trait GpuBackend<C: Coord>: Backend<C> {
    /// Answers queries in device memory.
    fn device_query_backend(&self) -> &dyn DeviceQueryBackend<C>;
    /// Builds the tree over as many points.
    fn rebuild(
        &mut self,
        stream: &Stream,
        workspace: &mut Workspace,
        coords: &Buffer<C>,
        builder: Builder,
    ) -> Result<()>;
}

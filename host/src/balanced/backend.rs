//! Backend trait of balanced trees: the operations that each device implements.

#[cfg(feature = "io")]
use crate::balanced::sections::Sections;
use crate::error::Result;
use crate::query::backend::QueryBackend;
use kauri_kernels::thread::coord::Coord;

/// A balanced tree on its device, or on several devices.
pub(crate) trait Backend<C: Coord>: Send + Sync {
    /// Returns the number of nodes.
    fn num_nodes(&self) -> usize;
    /// Checks every node against its ancestors.
    fn verify(&self) -> Result<()>;
    /// Returns the id of the node at each address, level by level, or [`NONE`](kauri_kernels::balanced::NONE).
    fn medians(&self) -> Result<Vec<u32>>;
    /// Returns for each point the id of its representative: the first point that equals it. Empty if all points are distinct.
    fn representatives(&self) -> Result<Vec<u32>>;
    /// Returns the backend that answers queries. The first call builds it.
    fn query_backend(&self) -> Result<&dyn QueryBackend<C>>;
    /// Returns the arrays that a file stores.
    #[cfg(feature = "io")]
    fn sections(&self) -> Result<Sections<'_, C>>;
}

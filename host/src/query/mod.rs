//! Queries to indexes of points: options, results, batches, and the engine that answers them.
//!
//! Every index of points builds a bucket index and answers queries with it. [`SpatialIndex`] has the calls.

pub(crate) mod backend;
pub(crate) mod batches;
pub(crate) mod cpu;
pub(crate) mod gpu;
pub(crate) mod ids;
mod index;
mod neighbors;
pub(crate) mod on_device;
pub(crate) mod options;
pub(crate) mod union;
pub(crate) mod within;

pub use batches::NearestBatch;
pub use index::SpatialIndex;
pub(crate) use index::sealed::Sealed as SealedIndex;
pub use neighbors::{Neighbor, NeighborIter, NeighborRow, Neighbors};
pub(crate) use neighbors::{item_bytes, result_rows};
pub use on_device::{DeviceQueries, DeviceWithin, PreparedQuery, num_found};
pub(crate) use options::checked_bound;
pub use options::{Norm, PointMask, Queries, QueryOptions, Traversal};

//! Queries to indexes of points: options, results, batches, and the engine that answers them.
//!
//! [`SpatialIndex`] has the calls. Queries are points, or all points of the index ([`Queries`]); [`QueryOptions`] has a norm, periods, a
//! radius and a mask.
//!
//! | to find | call | result | one query | in batches |
//! |---|---|---|---|---|
//! | the `k` nearest points | [`nearest`](SpatialIndex::nearest), [`nearest_with`](SpatialIndex::nearest_with) | [`Neighbors`] | [`nearest_one`](SpatialIndex::nearest_one), [`nearest_k`](SpatialIndex::nearest_k) | [`nearest_batches`](SpatialIndex::nearest_batches) |
//! | points within a distance | [`within`](SpatialIndex::within) | [`Rows`](crate::Rows) of [`Neighbor`] | | [`within_batches`](SpatialIndex::within_batches) |
//! | how many are within a distance | [`count_within`](SpatialIndex::count_within) | `Vec<u32>`, a number per query | | |
//! | points in boxes | [`in_boxes`](SpatialIndex::in_boxes) | [`Rows`](crate::Rows) of ids | | [`in_boxes_batches`](SpatialIndex::in_boxes_batches) |
//! | how many are in boxes | [`count_in_boxes`](SpatialIndex::count_in_boxes) | `Vec<u32>`, a number per box | | |
//!
//! Your own code takes the points around each query, one by one, with [`visit`](SpatialIndex::visit) on the CPU, and in a kernel of your own with
//! [`visit_on`](DeviceIndex::visit_on).
//!
//! Indexes in device memory also read queries from there and write results there: [`DeviceIndex`]. What a result costs depends on where
//! it goes. The 8 nearest of 10M points for 10M queries, `f32`, 3-D, uniform, on one H200
//! (`benches/results/kdtree-h200.md` and `kdtree-batches-h200.md`):
//!
//! | call | input and result | milliseconds | memory beside the result |
//! |---|---|--:|---|
//! | [`nearest`](SpatialIndex::nearest) | host memory; the whole result at once | 56 | up to 1 GiB on the device |
//! | [`nearest_batches`](SpatialIndex::nearest_batches) | host memory; batches of 64 MiB, which overlap with the kernels | 16.4 | 348 MB on the device and pinned |
//! | [`nearest_on`](DeviceIndex::nearest_on) | device memory, on the caller's stream, without a wait | 9.75 | 162 MB on the device |
//!
//! On a GPU, every index of points builds a bucket index, which answers its queries. On the CPU, queries traverse the nodes of a k-d tree or
//! the cells of a quadtree. `ARCHITECTURE.md` says what a new query touches.

pub(crate) mod backend;
pub(crate) mod batches;
pub(crate) mod cpu;
pub(crate) mod device_index;
pub(crate) mod gpu;
pub(crate) mod ids;
mod index;
mod neighbors;
pub(crate) mod on_device;
pub(crate) mod options;
pub(crate) mod union;
pub(crate) mod within;

pub use batches::NearestBatch;
pub use device_index::DeviceIndex;
pub use index::SpatialIndex;
pub(crate) use index::sealed::Sealed as SealedIndex;
pub use kauri_kernels::query::visit::{NearestPoints, Visit};
pub use neighbors::{Neighbor, NeighborIter, NeighborRow, Neighbors};
pub(crate) use neighbors::{item_bytes, result_rows};
pub use on_device::{DeviceQueries, DeviceWithin, PreparedQuery, num_found};
pub(crate) use options::checked_bound;
pub use options::{Norm, PointMask, Queries, QueryOptions, Traversal};

//! Quadtrees over points in the plane, octrees over points in space.
//!
//! A node splits into four (eight) equal cells if it has more points than a leaf may have. All children exist, also those without points. Nodes
//! at the greatest depth do not split. Nodes are in breadth-first order and the children of a node are adjacent, so there is exactly one
//! tree over a set of points, and every device builds it, to the last bit.
//!
//! [`Quadtree`] and [`Octree`] give access to the cells: [`nodes`](CellTree::nodes), [`leaf_of`](CellTree::leaf_of) a query,
//! [`adjacent_leaves`](CellTree::adjacent_leaves), a [`level_of_detail`](CellTree::level_of_detail). The trait
//! [`SpatialIndex`](crate::SpatialIndex) has the queries for neighbors and ranges, [`DeviceIndex`](crate::query::DeviceIndex) the same queries
//! on device buffers.
//!
//! A tree can be built in four places. The table shows builds over 80M uniform points `[f32; 2]` in host memory, with one H200
//! (`quadtree-host-h200` in `benches/results`):
//!
//! | place | chosen by | time | temporary memory | tree is in |
//! |---|---|---|---|---|
//! | device memory | [`OutOfCore::WhereNeeded`], the default, if everything fits | 47 ms, 34 ms of them for the copy of the points | 20 bytes per point on the device | device memory |
//! | device, out of core | [`OutOfCore::Streamed`], or if device memory is short | 270 ms with 4 GiB of device memory | the device memory that is free, at most | host memory |
//! | device, into a file | `build_to_file` (feature `io`) | 166 s for 2G points `[i32; 2]` with 4 GiB of device memory, 113 s of them to generate the points (`quadtree-to-file-h200`) | the device memory that is free, at most | the file |
//! | all cores of the CPU | [`Device::cpu()`](crate::Device::cpu) | 2.2 s | 16 bytes per point | host memory |
//!
//! # Cells
//!
//! Cells are cut in integers ([`Frame`](kauri_kernels::quadtree::frame)): the cell of the root is a square (a cube) with its low corner at
//! the least coordinates. Its side is a power of two of units, and the length of a unit is a power of two. The root's cell is therefore up
//! to four times as long as the bounding box of the points; in exchange, the comparison of a coordinate with a border involves no rounding.
//! [`RootCell::BoundingBox`] makes the bounding box the root's cell instead, so that cells have the proportions of the points. A point on a
//! border belongs to the upper cell. The points of a node are consecutive in tree order; the points of a leaf are in input order.
//!
//! # Algorithm
//!
//! A build sorts the Morton codes of the points, and cuts the nodes from the sorted codes. A GPU does so in rounds of several levels: it
//! finds the nodes that split without going level by level, and emits their children. Where cells of the last of these levels still have
//! too many points, another round takes their points. `kauri::research::quadtree` instead splits level by level (Gluck 2014).

mod backend;
mod build;
mod check;
mod cpu;
mod device_leaves;
mod dims;
mod frame;
mod gpu;
mod host;
mod node;
mod on_device;
pub(crate) mod options;
#[cfg(feature = "io")]
mod stored;
#[cfg(feature = "io")]
mod to_file;
mod tree;

#[cfg(feature = "terrain")]
pub(crate) use backend::DeviceTree;
#[cfg(feature = "terrain")]
pub(crate) use cpu::build_in as build_on_cpu;
pub use device_leaves::DeviceLeaves;
pub use dims::CartesianPoint;
#[cfg(feature = "terrain")]
pub(crate) use frame::frame_of_bounds;
#[cfg(feature = "terrain")]
pub(crate) use gpu::GpuTree;
pub use kauri_kernels::quadtree::frame::MAX_LEVELS as MAX_DEPTH;
pub use kauri_kernels::quadtree::node::Node;
pub use kauri_kernels::quadtree::queries::NO_NODE;
pub use options::{OutOfCore, QuadtreeOptions, RootCell};
pub use tree::{CellTree, Octree, Quadtree};

//! Quadtrees over points in the plane, octrees over points in space.
//!
//! A node with more points than a leaf may have splits into four (eight) equal cells. All children exist, also those without points. Nodes
//! at the greatest depth do not split. Nodes are in breadth-first order and the children of a node are adjacent, so there is exactly one
//! tree over a set of points, and every device builds it, to the last bit.
//!
//! Cells are cut in integers ([`Frame`](kauri_kernels::quadtree::frame)): the cell of the root is a square (a cube) with its low corner at
//! the least coordinates. Its side is a power of two of units, and the length of a unit is a power of two. The root's cell is therefore up
//! to four times as long as the bounding box of the points; in exchange, the comparison of a coordinate with a border involves no rounding.
//! A point on a border belongs to the upper cell. The points of a node are consecutive in tree order; the points of a leaf are in input
//! order.
//!
//! A GPU builds a tree from Morton codes. A round sorts the codes of the points over several levels, finds the nodes that split in the
//! sorted codes without going level by level, and emits their children. Where cells of the last of these levels still have too many points,
//! another round takes their points. [`BuildAlgorithm::Levels`] instead splits level by level, with a bucket sort per node (Gluck 2014).

mod backend;
mod build;
mod check;
mod cpu;
mod dims;
mod frame;
mod gpu;
mod host;
mod node;
pub(crate) mod options;
#[cfg(feature = "io")]
mod stored;
mod tree;

pub use dims::CartesianPoint;
pub use kauri_kernels::quadtree::frame::MAX_LEVELS as MAX_DEPTH;
pub use kauri_kernels::quadtree::node::Node;
pub use kauri_kernels::quadtree::queries::NO_NODE;
pub use options::{OutOfCore, QuadtreeOptions};
pub use tree::{CellTree, Octree, Quadtree};

#![doc = include_str!("../README.md")]

/// Writes a method for each named field of an options type, which sets the field to its argument, or to the value after `=`.
macro_rules! setters {
    (@ $field:ident) => { $field };
    (@ $field:ident $value:expr) => { $value };
    ($($(#[$attribute:meta])* $field:ident: $Type:ty $(= $value:expr)?;)*) => { $(
        $(#[$attribute])*
        pub fn $field(mut self, $field: $Type) -> Self {
            self.$field = setters!(@ $field $($value)?);
            self
        }
    )* };
}

#[cfg(feature = "arrow")]
pub mod arrow;
pub mod balanced;
mod batches;
pub mod bvh;
pub mod device;
mod error;
mod host_coords;
#[cfg(feature = "io")]
pub mod io;
pub mod join;
pub mod kdtree;
pub mod lidar;
mod memory;
pub mod mesh;
mod noise;
mod once;
mod parallel;
mod point;
pub mod primitives;
mod progress;
pub mod quadtree;
pub mod query;
mod random;
pub mod rays;
pub mod render;
#[cfg(feature = "research")]
pub mod research;
pub mod rows;
pub mod rtree;
pub mod sah;
mod stats;
#[cfg(feature = "io")]
mod stored;
#[cfg(feature = "terrain")]
pub mod terrain;
mod threads;
#[cfg(any(feature = "arrow", feature = "parquet"))]
mod wkb;

pub use balanced::{BalancedKdTree, BalancedOptions};
pub use batches::{Batches, Delivered};
pub use bvh::Bvh;
pub use device::Device;
pub use error::{Error, FileLocation, Result};
pub use join::{BoxJoin, DistanceJoin, KnnJoin, TopKBoxJoin, TopKDistanceJoin};
pub use kdtree::{KdTree, KdTreeOptions};
pub use memory::MemoryPlan;
pub use point::{
    Cartesian, Coordinate, EARTH_RADIUS_M, Lattice, LonLat, MAX_DIMS, MAX_POINTS, Point, PointChunk,
    PointSource, Scalar, VisitPoints,
};
pub use progress::{Progress, Step};
pub use quadtree::{Octree, Quadtree, QuadtreeOptions};
pub use query::{DeviceIndex, Neighbor, Neighbors, QueryOptions, SpatialIndex};
pub use rows::{Rows, RowsBatch};
pub use rtree::RTree;
pub use sah::{SahOptions, SahTree};
pub use stats::{Phase, Stats};

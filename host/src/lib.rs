#![doc = include_str!("../README.md")]

mod batches;
#[cfg(feature = "cli")]
#[doc(hidden)]
pub mod cli;
pub mod device;
mod error;
#[cfg(feature = "io")]
pub mod io;
pub mod join;
pub mod kdtree;
pub mod lidar;
mod memory;
pub mod mesh;
mod noise;
mod once;
mod point;
pub mod primitives;
mod progress;
pub mod quadtree;
mod random;
pub mod render;
pub mod sah;
mod stats;

pub use batches::{Batches, Delivered};
pub use device::Device;
pub use error::{Error, Result, TablePlace};
pub use join::{DistanceJoin, TopKDistanceJoin};
pub use kdtree::{KdTree, KdTreeOptions, Neighbors, SpatialIndex};
pub use point::{Cartesian, EARTH_RADIUS_M, LonLat, MAX_DIMS, Point, Scalar};
pub use progress::{Progress, Step};
pub use quadtree::{Octree, Quadtree, QuadtreeOptions};
pub use sah::{SahOptions, SahTree};
pub use stats::{Phase, Stats};

//! Elevation models on a GPU.
//!
//! - `order`: sorts the points, and builds the tree that searches go through.
//! - `rasters`: the heights of cells, and triangles.

mod order;
mod rasters;

pub(super) use order::{GpuPoints, bounds_on};

/// The label of memory for points.
const POINTS: &str = "points of a terrain";

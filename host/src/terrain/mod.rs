//! Elevation models from point clouds. Needs the feature `terrain`.

mod grid;
mod method;
mod raster;

pub use grid::RasterGrid;
pub use method::{Method, Spline, Statistic};
pub use raster::Raster;

//! Elevation models from point clouds. Needs the feature `terrain`.

mod backend;
mod cpu;
mod delaunay;
mod frame;
mod gpu;
mod grid;
mod ground;
mod hillshade;
mod method;
mod model;
mod options;
mod raster;
mod spline;
#[cfg(all(test, feature = "sim"))]
mod tests;
mod tiled;

pub use delaunay::{delaunay_2d, delaunay_2d_on};
pub use grid::RasterGrid;
pub use ground::GroundFilter;
pub use hillshade::HillshadeOptions;
pub use method::{Method, Spline, Statistic};
pub use model::Terrain;
pub use options::TerrainOptions;
pub use raster::Raster;

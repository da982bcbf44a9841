//! Elevation models from point clouds, and Delaunay triangulations. Needs the feature `terrain`.
//!
//! [`Terrain`] holds points with heights on a device and computes a [`Raster`] of them by a [`Method`]: statistics, nearest points, inverse
//! distance, linear interpolation in the Delaunay triangulation, natural neighbors, splines. [`GroundFilter`] finds the ground in clouds
//! without classes. [`Raster::minus`] gives heights above ground, [`Raster::hillshade`] a relief, and
//! [`write_geotiff`](crate::io::write_geotiff) a file.
//!
//! Positions are integers on a [`Lattice`](crate::Lattice), as in LAS files. Results are the same on every device to the last bit, and the
//! same whether a cloud is in memory as a whole or passes through it in windows.
//!
//! Milliseconds on an H200 for the ground points of a generated scan of 200M points, 117M, to 25M cells of 1 m, from unsorted points in
//! device memory on (benches/results/pages/terrain.md):
//!
//! | statistic in a radius | nearest | inverse distance, 12 nearest | TIN | natural neighbor | triangulation |
//! |--:|--:|--:|--:|--:|--:|
//! | 31 | 42 | 182 | 351 | 4195 | 981 |

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

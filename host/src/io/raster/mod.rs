//! Files of rasters. Needs the feature `terrain`.

mod ascii;
mod geotiff;
mod png;
mod tile;

pub use ascii::write_ascii_grid;
pub use geotiff::{GeoTiffOptions, write_geotiff, write_geotiff_rows};
pub use png::write_hillshade_png;

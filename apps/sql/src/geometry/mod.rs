//! Geometries in Arrow arrays: points, boxes and their reference systems.
//!
//! | geometry | Arrow type | extension name |
//! |---|---|---|
//! | points, as functions return them | `Struct(x: Float64, y: Float64)` | `geoarrow.point` |
//! | points | `FixedSizeList(Float64, 2)` | `geoarrow.point` |
//! | points | `Binary`, `LargeBinary`, `BinaryView` with well-known binary | `geoarrow.wkb` |
//! | boxes | `Struct(xmin, ymin, xmax, ymax)` of `Float64` | `geoarrow.box` |
//!
//! Extension names are optional.

mod boxes;
mod crs;
mod points;

pub use boxes::{CORNERS, box_type, decode_boxes, is_box_type};
pub use crs::{CRS_KEY, CRS84, Measure, crs_of, crs_of_geoparquet, extension_metadata, measure_of};
pub use points::{Geometries, check_lon_lat, check_points, decode_points, is_point_type, point_type};

/// The least number of rows that a thread takes.
pub(crate) const TASK_ROWS: usize = 1 << 14;

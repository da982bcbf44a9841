//! Files: tables of points, meshes, pairs of rows, and saved indexes. Needs the feature `io`.
//!
//! | task | call | memory |
//! |---|---|---|
//! | read longitudes and latitudes | [`read_lonlat`] | as [`Table`], and 16 bytes for each place |
//! | read points of the plane, in any units | [`Table::points`] | as [`Table`], and 16 bytes for each point |
//! | read boxes: columns of corners, or the bounding boxes of geometries | [`Table::boxes`] | as [`Table`], and 32 bytes for each box |
//! | read any column as numbers or text | [`Table`] | CSV: 8 bytes for each row; Parquet: a column at a time |
//! | write the pairs of a join as CSV or Parquet | [`PairTable`] | the rows of a batch of pairs, and tables of up to 64 MiB |
//! | read point clouds: LAS, LAZ and COPC files (feature `las`) | [`CloudFiles::read`] | 12 bytes for each point, and its attributes |
//! | read point clouds larger than memory | [`CloudFiles::for_each_chunk`] | some chunks for each thread |
//! | build a quadtree of a cloud larger than memory | [`CellTree::build_to_file`](crate::quadtree::CellTree::build_to_file) | the nodes of the tree |
//! | read the points of a PLY file (feature `mesh`) | [`read_ply_points`] | the file, and 24 bytes for each point |
//! | read a triangle mesh (feature `mesh`) | [`read_mesh`] | the file and the mesh |
//! | write a raster of heights (feature `terrain`) | [`write_geotiff`], [`write_ascii_grid`] | 16 MiB and more on many threads |
//! | write a raster larger than memory (feature `terrain`) | [`write_geotiff_rows`] | some rows of the raster |
//! | write a picture of a hillshade (feature `terrain`) | [`write_hillshade_png`] | 64 KiB |
//! | save an index | [`KdTree::save`](crate::KdTree::save), `write_to` | none on the CPU; twice the index for one on a GPU |
//! | load an index | [`KdTree::load`](crate::KdTree::load), `read_from` | the file, up to three times its size for a stream |
//! | share an index between processes | [`KdTree::map`](crate::KdTree::map) (unsafe) | the pages of the file, shared |
//! | read only the header of an index file | [`index_info`] | less than 1 KiB |
//! | replace a file completely or not at all | [`write_atomically`] | 64 KiB |
//!
//! No file makes a reader panic, abort or allocate much more than its data need: an invalid file is a typed
//! [`Error`](crate::Error) with the path and the line, row or byte.
//!
//! # Index files
//! All indexes have the same little-endian file format: a header of 128 bytes, a section table, and the sections, each at
//! the next multiple of 64 bytes.
//!
//! | byte | field |
//! |---|---|
//! | 0 | magic, 8 bytes: `89 4B 41 55 52 49 0D 0A` |
//! | 8 | version of the format, `u32`: 1 |
//! | 12 | number of sections, `u32` |
//! | 16 | kind of index, 16 bytes of ASCII with trailing zeros: `kdtree`, `balanced`, `quadtree` |
//! | 32 | name of the type of points ([`Point::NAME`](crate::Point::NAME)), 16 bytes |
//! | 48 | type of the coordinates inside the index, 8 bytes: `f32`, `f64` or `i32` |
//! | 56 | number of coordinates of a point, `u32`; then 4 zeros |
//! | 64 | number of points, `u64` |
//! | 72 | number of nodes, `u64` |
//! | 80 | bytes of the file, `u64`; then 32 zeros |
//! | 120 | XXH3-64 checksum of header and table without these 8 bytes |
//! | 128 | per section 32 bytes: tag, 8 bytes of ASCII; offset, bytes and checksum, each `u64` |
//!
//! ```
//! use kauri::{Device, KdTree, KdTreeOptions, SpatialIndex};
//! let points = [[0.0f32, 0.0], [3.0, 4.0], [1.0, 0.0]];
//! let tree = KdTree::build(&Device::cpu(), &points, &KdTreeOptions::default())?;
//! let mut bytes = Vec::new();
//! tree.write_to(&mut bytes)?;
//! let loaded = KdTree::<[f32; 2]>::read_from(&Device::cpu(), &bytes[..])?;
//! assert_eq!(loaded.nearest(&[[2.0, 0.0]], 1)?.ids(), tree.nearest(&[[2.0, 0.0]], 1)?.ids());
//! // Every byte has a checksum, and every file has the type of its points.
//! assert!(KdTree::<[f64; 3]>::read_from(&Device::cpu(), &bytes[..]).is_err());
//! bytes[300] ^= 1;
//! assert!(KdTree::<[f32; 2]>::read_from(&Device::cpu(), &bytes[..]).is_err());
//! # Ok::<(), kauri::Error>(())
//! ```
//!
//! The [documentation of the format](https://github.com/kauri-rs/kauri/blob/main/docs/file-format.md) describes the
//! sections, their checksums, and what a reader checks.

#[cfg(feature = "las")]
mod cloud;
#[cfg(any(feature = "las", feature = "parquet"))]
mod decode_error;
#[cfg(any(feature = "las", feature = "parquet"))]
mod guarded;
mod lonlat;
#[cfg(feature = "mesh")]
mod mesh;
mod pairs;
#[cfg(feature = "terrain")]
mod raster;
#[cfg(any(feature = "las", feature = "terrain"))]
mod system;
mod table;

pub use crate::stored::{
    IndexInfo, index_info, remove_temporary_files, write_atomically, write_atomically_or,
};
#[cfg(feature = "las")]
pub use cloud::{
    AttributeValues, Attributes, CloudChunk, CloudFile, CloudFiles, CloudFilter, CloudPoints, PointCloud,
    Returns,
};
pub use lonlat::{LonLatTable, read_lonlat};
#[cfg(feature = "mesh")]
pub use mesh::{read_mesh, read_ply_points};
pub use pairs::{Geometries, PairTable, Pairs, TakePairs};
#[cfg(feature = "terrain")]
pub use raster::{GeoTiffOptions, write_ascii_grid, write_geotiff, write_geotiff_rows, write_hillshade_png};
#[cfg(any(feature = "las", feature = "terrain"))]
pub use system::ReferenceSystem;
pub use table::{BoxColumns, NO_ROW, Numbers, PointColumns, Present, Table};

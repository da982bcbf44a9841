//! LAS and LAZ files as tables. Needs the feature `las`.
//!
//! A name in quotes that ends in `.las` or `.laz` is a table, as is a folder of such files in `CREATE EXTERNAL TABLE … STORED AS LAZ LOCATION
//! 'tiles/'`. All CPU threads decompress; a few chunks of each thread are in memory at a time. A query reads only the columns that it uses,
//! and the number of rows comes from the headers. Files are local.
//!
//! | column | type | |
//! |---|---|---|
//! | `x`, `y`, `z` | `Float64` | the position in the units of the reference system |
//! | `intensity` | `UInt16` | the strength of the return |
//! | `return_number`, `number_of_returns` | `UInt8` | the return of the pulse, from 1, and their number |
//! | `classification` | `UInt8` | 2 is ground, 6 buildings, 9 water |
//! | `withheld` | `Boolean` | true for points that should not be processed |
//! | `scan_angle` | `Float32` | the angle of the pulse to the vertical, in degrees |
//! | `user_data` | `UInt8` | a byte for the user |
//! | `point_source_id` | `UInt16` | the flight line or scan |
//! | `gps_time` | `Float64` | seconds; point formats 0 and 2 have none |
//! | `red`, `green`, `blue` | `UInt16` | point formats 2, 3, 5, 7, 8 and 10 |
//! | `nir` | `UInt16` | near infrared; point formats 8 and 10 |
//!
//! A table has the columns that one of its files has; rows of other files have nulls there. The table functions take `x` and `y` in the
//! reference system of the files, which the metadata of these columns name ([`CRS_KEY`](crate::geometry::CRS_KEY)).

mod columns;
mod format;
mod source;

pub use format::{LasFormat, LasFormatFactory, register};
pub use source::LasSource;

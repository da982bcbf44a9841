//! Files: points in, results out. Needs the feature `io`.

mod atomic;
mod lonlat_csv;

pub use atomic::write_atomically;
pub use lonlat_csv::{LonLatTable, read_lonlat_csv};

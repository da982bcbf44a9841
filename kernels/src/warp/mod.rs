//! Functions that the lanes of one warp execute together. They use no shared memory that they were not given.

pub mod bitonic;
pub mod coalescing_buffer;
pub mod look_back;
pub mod rank;
pub mod scan;
pub mod search;
pub mod shuffle;

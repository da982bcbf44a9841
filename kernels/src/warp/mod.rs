//! What the lanes of one warp do together: no shared memory that was not handed in.

pub mod bitonic;
pub mod coalescing_buffer;
pub mod look_back;
pub mod rank;
pub mod scan;
pub mod search;
pub mod shuffle;

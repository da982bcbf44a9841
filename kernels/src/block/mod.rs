//! What the threads of one block do together: no layout of global memory.

pub mod bitonic;
pub mod compact;
pub mod look_back;
pub mod merge;
pub mod nth;
pub mod places;
pub mod radix_rank;
pub mod scan;
pub mod tile;
pub mod warp_striped;

//! Functions that the threads of one block execute together. They know no layout of global memory.

pub mod bitonic;
pub mod compact;
pub mod counting_rank;
pub mod look_back;
pub mod merge;
pub mod nth;
pub mod radix_rank;
pub mod scan;
pub mod segments;
pub mod tile;
pub mod warp_striped;

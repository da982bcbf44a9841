//! Left-balanced k-d trees: builds and checks.

pub mod axes;
pub mod selection;
pub mod swaps;
pub mod tags;
pub mod verify;

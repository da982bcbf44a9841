//! Left-balanced k-d trees.

pub mod left_balanced;
pub mod nearest;
pub mod selection;
pub mod tags;
pub mod verify;

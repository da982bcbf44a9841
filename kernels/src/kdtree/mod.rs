//! Left-balanced k-d trees.

pub mod axes;
pub mod buckets;
pub mod by_nodes;
pub mod left_balanced;
pub mod nearest;
pub mod queries;
pub mod selection;
pub mod swaps;
pub mod tags;
pub mod verify;
pub mod walk;
pub mod within;

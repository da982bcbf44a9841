//! K-d trees: left-balanced ones, and [`balanced`] ones over distinct points.

pub mod axes;
pub mod balanced;
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

//! Left-balanced k-d trees.

pub mod buckets;
pub mod left_balanced;
pub mod nearest;
pub mod queries;
pub mod selection;
pub mod stack_free;
pub mod tags;
pub mod verify;
pub mod walk;
pub mod within;

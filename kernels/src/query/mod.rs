//! The bucket index that every index of points builds, and its queries.

pub mod axes;
pub mod buckets;
pub mod by_nodes;
pub mod left_balanced;
pub mod nearest;
pub mod queries;
pub mod traversal;
pub mod within;

//! The bucket index of every index of points, and its queries.

pub mod axes;
pub mod buckets;
pub mod by_nodes;
pub mod left_balanced;
pub mod nearest;
pub mod queries;
pub mod walk;
pub mod within;

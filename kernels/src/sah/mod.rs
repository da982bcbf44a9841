//! SAH k-d trees over triangles: construction, refit and ray traversal.

pub mod aabb;
pub mod chunks;
pub mod clip;
pub mod corners;
pub mod extent;
pub mod large;
pub mod levels;
pub mod model;
pub mod node;
pub mod order;
pub mod ray;
pub mod refit;
pub mod small;
pub mod subtrees;
pub mod trace;
pub mod tree;
pub mod triangle;
pub mod walk;
pub mod warps;

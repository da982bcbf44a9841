//! SAH k-d trees over triangles: construction, refit and ray traversal.

pub mod aabb;
pub mod all_hits;
pub mod candidates;
pub mod chunks;
pub mod clip;
pub mod corners;
pub mod cost;
pub mod extent;
pub mod large_levels;
pub mod large_nodes;
pub mod large_variants;
pub mod node;
pub mod partition;
pub mod preorder;
pub mod ray;
pub mod ray_order;
pub mod refit;
pub mod small_levels;
pub mod small_roots;
pub mod small_warps;
pub mod top_nodes;
pub mod trace;
pub mod traversal;
pub mod triangle;

//! SAH k-d trees over triangles: construction, refit and ray traversal.

pub mod candidates;
pub mod cheapest_planes;
pub mod chunks;
pub mod clip;
pub mod cost;
pub mod large_levels;
pub mod large_nodes;
pub mod large_variants;
pub mod node;
pub mod partition;
pub mod plane_ray;
pub mod plans;
pub mod preorder;
pub mod refit;
pub mod root;
pub mod small_levels;
pub mod small_roots;
pub mod small_warps;
pub mod top_nodes;
pub mod trace;
pub mod traversal;

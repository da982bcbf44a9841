//! Quadtrees and octrees: nodes cut from sorted codes, or level by level.

pub mod batches;
pub mod codes;
pub mod frame;
pub mod levels;
pub mod node;
pub mod order;
pub mod queries;
pub mod splits;

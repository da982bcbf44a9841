//! Quadtrees and octrees: nodes cut from sorted codes.

pub mod codes;
pub mod frame;
pub mod node;
pub mod order;
pub mod splits;

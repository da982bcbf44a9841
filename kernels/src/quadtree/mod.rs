//! Quadtrees and octrees: build from sorted Morton codes, build level by level, and queries.

pub mod codes;
pub mod frame;
pub mod levels;
pub mod node;
pub mod queries;
pub mod streamed;
pub mod verify;

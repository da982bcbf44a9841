//! Rays and triangles: what all indexes of triangles share.

pub mod aabb;
pub mod all_hits;
pub mod corners;
pub mod extent;
pub mod hits;
pub mod mesh;
pub mod order;
pub mod ray;
pub mod stack;
pub mod tracing;
pub mod triangle;

//! Pictures of meshes.

pub mod frame;
pub mod look;

//! Frames of meshes.

pub mod frame;
pub mod shading;

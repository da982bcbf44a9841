//! Frames of meshes.

pub mod frame;
pub mod occlusion;
pub mod shading;

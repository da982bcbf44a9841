//! SAH k-d trees over triangles, and rays through them.
//!
//! Each node of the tree has a box. An inner node has an axis-aligned split plane and a child on each side of it. A leaf has
//! references to all triangles that reach into its box, so that a triangle can be in several leaves. Planes are chosen by
//! the surface area heuristic: a leaf costs an intersection test per reference; an inner node costs a traversal step, plus
//! the cost of its children, each weighted by the probability that a ray reaches it (MacDonald, Booth 1990).
//!
//! A GPU builds in two stages (Zhou et al. 2008: Real-time KD-tree construction on graphics hardware; Chang, Seo, Ihm).
//! Large nodes lose the empty space at their sides, and split in the middle. Small nodes, with at most 64 references, split
//! at the cheapest plane. The CPU builds the same tree, to the last bit, and also [the best tree](Quality::Exact).
//!
//! Intersections are watertight: rays find no gap between triangles that share an edge (Woop, Benthin, Wald 2013). What a
//! ray hits depends on ray and triangle alone, not on the tree, its builder or the device.

mod cpu;
mod device_mesh;
mod gpu;
mod hits;
mod host_tree;
mod mesh_input;
mod options;
mod trace;
mod tree;
#[cfg(feature = "research")]
pub(crate) mod variants;
mod verify;

pub use device_mesh::DeviceMesh;
pub use hits::{DeviceHits, Hit, HitIter, HitRow, Hits};
pub use kauri_kernels::sah::aabb::Aabb;
pub use kauri_kernels::sah::node::Node;
pub use kauri_kernels::sah::ray::Ray;
pub use options::{Quality, RayOptions, SahOptions};
pub use tree::SahTree;

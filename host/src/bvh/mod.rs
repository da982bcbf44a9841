//! Bounding volume hierarchies over triangles, for rays.
//!
//! Each node has up to four children with a box each. A child is another node, or one to three triangles. Each triangle is in one leaf.
//!
//! A build sorts the triangles along a space-filling curve, merges neighbors to a binary tree bottom-up, each two of which the common box has the
//! least surface (Benthin, Drabinski, Tessari, Dittebrandt 2024: H-PLOC), and joins each node with the parts of it that give it up to four
//! children. The CPU builds the same hierarchy as a GPU, to the last bit.
//!
//! [`Bvh`] has an example. [`RayIndex`](crate::rays::RayIndex) has the ray queries.

mod cpu;
mod gpu;
mod host_tree;
mod tree;

pub use tree::Bvh;

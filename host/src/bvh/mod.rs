//! Bounding volume hierarchies over triangles or boxes.
//!
//! Each node has up to four children with a box each. A child is another node, or one to three items. Each item is in one leaf.
//!
//! A build sorts the items along a space-filling curve, merges neighbors to a binary tree bottom-up, each two of which the common box has the
//! least surface (Benthin, Drabinski, Tessari, Dittebrandt 2024: H-PLOC), and joins each node with the parts of it that give it up to four
//! children. The CPU builds the same hierarchy as a GPU, to the last bit.
//!
//! | to find | call |
//! |---|---|
//! | the triangles that rays hit | the methods of [`RayIndex`](crate::rays::RayIndex) |
//! | the nearest triangles or boxes of points | [`Bvh::nearest`], [`Bvh::nearest_within`] |
//! | the nearest points of a mesh | [`Bvh::closest_points`] |
//! | the points inside a mesh | [`Bvh::inside`] |
//! | the boxes that intersect a box | [`Bvh::intersecting`], [`Bvh::count_intersecting`] |
//! | the boxes that contain a point | [`Bvh::containing`] |

mod cpu;
mod gpu;
mod host_tree;
mod input;
mod queries;
mod tree;

pub use input::{BvhInput, DeviceBvhInput};
pub use kauri_kernels::bvh::leaf::{Leaf, LeafBox, LeafTriangle};
pub use kauri_kernels::bvh::nearest::ClosestPoint;
pub use tree::Bvh;

//! Bounding volume hierarchies (BVH) over triangles or boxes: construction, ray traversal, and searches.
//!
//! A build makes a binary tree by [`clusters`], and a tree of nodes with up to four children out of it ([`nodes`]). Rays go through it by
//! [`traversal`], other queries by [`search`].

pub mod clusters;
pub mod codes;
pub mod distance;
pub mod inside;
pub mod leaf;
pub mod leaf_boxes;
pub mod leaf_triangles;
pub mod nearest;
pub mod node;
pub mod nodes;
pub mod overlap;
pub mod refit;
pub mod scene;
pub mod search;
pub mod slabs;
pub mod stack;
pub mod subtree;
pub mod trace;
pub mod traversal;

//! Bounding volume hierarchies (BVH) over triangles: construction and ray traversal.
//!
//! A build makes a binary tree by [`clusters`], and a tree of nodes with up to four children out of it ([`nodes`]).

pub mod clusters;
pub mod codes;
pub mod leaf;
pub mod node;
pub mod nodes;
pub mod refit;
pub mod slabs;
pub mod subtree;
pub mod trace;
pub mod traversal;

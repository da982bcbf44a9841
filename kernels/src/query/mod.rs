//! The bucket index that every index of points builds, and its queries.
//!
//! | module | has |
//! |---|---|
//! | [`left_balanced`], [`axes`] | the index rules of complete binary trees, and their split axes |
//! | [`buckets`] | the bucket index, and the kernels that compute its boxes |
//! | [`grid`], [`hilbert`] | the order of points along a Hilbert curve |
//! | [`queries`] | the queries of a launch and their options |
//! | [`rows`], [`sums`] | rows of queries for all points, if ids have gaps; bits with their sums |
//! | [`traversal`] | the traversal of the boxes, by a lane or by a warp per query |
//! | [`nearest`] | the kernels for the k nearest points |
//! | [`within`] | the kernels for points within a distance and in boxes |
//! | [`visit`] | visits: what kernels of your own do with the points around queries |
//! | [`by_nodes`] | the k nearest points node by node, as published works have it (family `research-query`) |

pub mod axes;
pub mod buckets;
pub mod by_nodes;
pub mod grid;
pub mod hilbert;
pub mod left_balanced;
pub mod nearest;
pub mod queries;
pub mod rows;
pub mod sums;
pub mod traversal;
pub mod visit;
pub mod within;

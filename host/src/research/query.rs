//! Variants of `query`: the nearest neighbors of left-balanced k-d trees, node by node.
//!
//! The library's own traversal descends by bounding boxes to buckets of up to 16 points. The traversals here have no boxes and no buckets:
//! each thread answers one query and visits one node after the other, by split planes. They differ in how they come back from a child:
//!
//! | variant | comes back to | reproduces |
//! |---|---|---|
//! | [`Traversal::StackFree`] | the parent; no stack | Wald 2022, *A Stack-Free Traversal Algorithm for Left-Balanced k-d Trees* |
//! | [`Traversal::Stack`] | the last pending child whose split plane is near enough | the traversal with a stack of Wald's library cudaKDTree |
//! | [`Traversal::ClosestCorner`] | the last pending child whose cell is near enough | the closest-corner traversal of the same library |
//!
//! [`QueryOptions::traversal`](crate::QueryOptions::traversal) chooses one:
//!
//! ```
//! use kauri::query::{QueryOptions, Traversal};
//! use kauri::{Device, KdTree, KdTreeOptions, SpatialIndex};
//!
//! let points = [[0.0f32, 0.0], [3.0, 4.0], [1.0, 0.0]];
//! let tree = KdTree::build(&Device::best()?, &points, &KdTreeOptions::default())?;
//! let stack_free = QueryOptions::default().traversal(Traversal::StackFree);
//! let near = tree.nearest_with(&[[0.9, 0.1]], 2, &stack_free)?;
//! assert_eq!(near, tree.nearest(&[[0.9, 0.1]], 2)?);
//! # Ok::<(), kauri::Error>(())
//! ```
//!
//! They run on GPUs, for a [`KdTree`](crate::KdTree) whose coordinates are floats, and for the nearest of all points under the Euclidean norm. Every other query (a
//! radius, a mask, periods, another norm, excluded points, another index) uses the library's own traversal, and the CPU always does.
//!
//! Milliseconds for 10M queries to 10M points, `f32`, 3-D, uniform, on one H200 (`benches/results/kdtree-h200.md`, suite `kdtree`,
//! rows `nearest k=…, stack-free` and so on):
//!
//! | traversal | k = 1 | k = 8 | scratch memory |
//! |---|--:|--:|--:|
//! | library's own | 3.54 | 9.76 | 162 MB, to sort the queries |
//! | [`Traversal::StackFree`] | 12.8 | 43.6 | none |
//! | [`Traversal::Stack`] | 8.31 | 35.7 | none |
//! | [`Traversal::ClosestCorner`] | 16.4 | 52.1 | none |

#[cfg(doc)]
use crate::query::Traversal;

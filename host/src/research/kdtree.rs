//! Builds of left-balanced k-d trees by tags, as their paper has them.
//!
//! The tag of a point is the root of the subtree that contains it. Each level sorts all points by (tag, coordinate, id) and sends each
//! point to a child. The trees are those of [`KdTree`](crate::KdTree), to the last bit.
//! [`KdTreeOptions::algorithm`](crate::KdTreeOptions::algorithm) chooses. [`Tags`](crate::kdtree::BuildAlgorithm::Tags) is also the CPU port
//! that the paper describes: parallel sorts of points with tags by comparison, and parallel updates; a level skips the nodes that are finished.
//! It takes 8 bytes more than the coordinates per point. The CPU ignores the other choices.
//!
//! On a GPU:
//!
//! | variant | reproduces | passes over the points | temporary bytes per point | 10M `f32` x 3 |
//! |---|---|---|---|---|
//! | [`Tags`](crate::kdtree::BuildAlgorithm::Tags) | Wald 2022, *GPU-friendly, Parallel, and (Almost-)In-Place Construction of Left-Balanced k-d Trees*, section 4 | a radix sort of 5 to 8 passes per level; the axes are ranked once, so that a level sorts 64-bit keys | 4 D + 24, plus about 0.3 | 20.3 ms |
//! | [`TagsOfUnfinished`](crate::kdtree::BuildAlgorithm::TagsOfUnfinished) | the same section: finished nodes are at the front, and sorts skip them | those of `Tags`, over fewer points on the lowest levels | those of `Tags` | 21.1 ms (`float4`) |
//! | [`TagsAboveCoordinates`](crate::kdtree::BuildAlgorithm::TagsAboveCoordinates) | the same section: the tag above the coordinate in one key of 64 bits | those of `Tags`, and one that brings the points into the order of their ids before the sort, which breaks ties; no ranks | those of `Tags` | 31.6 ms (`float4`) |
//! | [`TagsInPlace`](crate::kdtree::BuildAlgorithm::TagsInPlace) | the same section, "almost in place", by the bitonic sort of Batcher 1968 | a sort of O(log^2 n) passes per level | 4 | 230 ms |
//! | [`Selection`](crate::kdtree::BuildAlgorithm::Selection), the default | | one per level down to subtrees that fit in shared memory | 4 w + 4, plus about 2.3 | 5.7 ms |
//!
//! `D` is the number of dimensions and `w` the number of 4-byte words of a point's coordinates. Temporary bytes do not include the points
//! and the tree. The times are those of the suite `kdtree` on an H200 (benches/results/kdtree-h200.md); those marked `float4` are builds of
//! 10M points of four `f32`, where `Tags` takes 21.1 ms (benches/results/kdtree-wald-h200.md). Sorts that skip finished nodes gain nothing
//! there, because these nodes are few on all levels but the last two. A tag above the coordinate takes more time than a tag above the rank,
//! because each level brings the points into the order of their ids. The suite `kdtree-wald` repeats the experiment of the paper. Both
//! suites compare with an implementation of the paper in CUDA C++ (`benches/rivals/wald.cuh`).
//!
//! ```
//! use kauri::kdtree::BuildAlgorithm;
//! use kauri::{Device, KdTree, KdTreeOptions};
//! let points = [[3.0f32, 1.0], [1.0, 2.0], [2.0, 0.0]];
//! let by = |algorithm| KdTree::build(&Device::cpu(), &points, &KdTreeOptions::default().algorithm(algorithm));
//! assert_eq!(by(BuildAlgorithm::Tags)?.node_ids()?, by(BuildAlgorithm::Selection)?.node_ids()?);
//! # Ok::<(), kauri::Error>(())
//! ```

//! Variants of balanced k-d trees: the build algorithms of Robinson and Brown.
//!
//! | variant | reproduces | choose it by |
//! |---|---|---|
//! | [`BuildAlgorithm::Robinson`] | Robinson's *KdTreeGPU*, after Brown 2015, *Building a Balanced k-d Tree in O(kn log n) Time*, section 2: merge sorts by super key, then partitions of all arrays level by level | [`BalancedOptions::algorithm`] |
//! | its number of warps | *KdTreeGPU*'s choice of blocks and threads | [`BalancedOptions::warps`] |
//! | stores without coalescing buffers | Robinson's comparison, a gain of about 5 % by the buffers | [`BalancedOptions::direct_stores`] |
//! | one compaction after the other | Robinson's alternative to compacting both sides of the median at once: two passes over the points | [`BalancedOptions::sequential_compactions`] |
//! | Brown's builder on the CPU | Brown 2015: sorted arrays, partitions by the median, both subtrees in parallel | a CPU device; the rayon pool has the number of threads |
//! | renumbered points | kauri's own algorithm as it builds trees over many points | [`BalancedOptions::renumber`] |
//!
//! All of them build the same tree, to the last bit. The CPU has one algorithm, Brown's, and ignores these options. It differs from
//! Brown's program in the sort, which is rayon's quicksort and not a merge sort:
//!
//! ```
//! use kauri::Device;
//! use kauri::balanced::{BalancedKdTree, BalancedOptions};
//! use kauri::research::balanced::BuildAlgorithm;
//!
//! let points = [[2.0f32, 3.0], [5.0, 4.0], [9.0, 6.0]];
//! let options = BalancedOptions::default().algorithm(BuildAlgorithm::Robinson).warps(4096);
//! let tree = BalancedKdTree::build(&Device::cpu(), &points, &options)?;
//! assert_eq!(tree.medians()?, [1, 0, 2]);
//!
//! // Brown's builder on two threads.
//! let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().expect("two threads");
//! let same = pool.install(|| BalancedKdTree::build(&Device::cpu(), &points, &options))?;
//! assert_eq!(same.medians()?, [1, 0, 2]);
//! # Ok::<(), kauri::Error>(())
//! ```
//!
//! Costs: milliseconds for 2^24 points of 4 `f32` on an H200 (`benches/results/kdtree-robinson-h200.md`, rows `balanced`,
//! `Robinson` and `Brown`; the phase that removes equal points is called `dedupe` there), on its CPU from one run:
//!
//! | algorithm | sort | remove equal points | partition | sum | temporary memory |
//! |---|--:|--:|--:|--:|--:|
//! | [`Paths`](BuildAlgorithm::Paths), the default | 3.6 | 0.05 | 7.4 | 11.1 | 792 MB |
//! | [`Robinson`](BuildAlgorithm::Robinson) with 4096 warps | 13.9 | 1.8 | 35.1 | 50.8 | 671 MB |
//! | … without coalescing buffers | 13.9 | 1.8 | 35.3 | 51.0 | 671 MB |
//! | … one compaction after the other | 13.9 | 1.8 | 59.7 | 75.4 | 671 MB |
//! | … with 2048 warps | 13.9 | 2.4 | 42.0 | 58.3 | 671 MB |
//! | Brown's builder, 1 CPU thread | 13,439 | 1138 | 18,708 | 33,285 | 403 MB |
//! | Brown's builder, 8 CPU threads | 2204 | 152 | 3311 | 5667 | 403 MB |
//!
//! `benches/results/pages/kdtree-robinson.md` has more warps and threads, the published times, and an implementation in CUDA C++.
//!
//! A tree of [`Robinson`](BuildAlgorithm::Robinson) also stores the children of the nodes: 8 bytes per point.
//!
//! [`BalancedOptions::algorithm`]: crate::balanced::BalancedOptions::algorithm
//! [`BalancedOptions::direct_stores`]: crate::balanced::BalancedOptions::direct_stores
//! [`BalancedOptions::sequential_compactions`]: crate::balanced::BalancedOptions::sequential_compactions
//! [`BalancedOptions::warps`]: crate::balanced::BalancedOptions::warps
//! [`BalancedOptions::renumber`]: crate::balanced::BalancedOptions::renumber

pub use crate::balanced::options::BuildAlgorithm;

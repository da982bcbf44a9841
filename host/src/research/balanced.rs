//! Variants of balanced k-d trees: Robinson's build algorithm.
//!
//! | variant | reproduces | choose it by |
//! |---|---|---|
//! | [`BuildAlgorithm::Robinson`] | Robinson's *KdTreeGPU*, after Brown 2015, *Building a Balanced k-d Tree in O(kn log n) Time*, section 2: merge sorts by super key, then partitions of all arrays level by level | [`BalancedOptions::algorithm`] |
//! | its number of warps | *KdTreeGPU*'s choice of blocks and threads | [`BalancedOptions::warps`] |
//! | renumbered points | kauri's own algorithm as it builds trees over many points | [`BalancedOptions::renumber`] |
//!
//! The CPU has one algorithm, and ignores these options:
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
//! # Ok::<(), kauri::Error>(())
//! ```
//!
//! Costs: milliseconds for 2^24 points of 4 `f32` on an H200 (`benches/results/kdtree-robinson-h200.md`, rows `balanced` and
//! `Robinson`; the phase that removes equal points is called `dedupe` there):
//!
//! | algorithm | sort | remove equal points | partition | sum | temporary memory |
//! |---|--:|--:|--:|--:|--:|
//! | [`Paths`](BuildAlgorithm::Paths), the default | 3.8 | 0.02 | 7.4 | 11.2 | 792 MB |
//! | [`Robinson`](BuildAlgorithm::Robinson) | 13.9 | 1.6 | 32.7 | 48.2 | 671 MB |
//!
//! A tree of [`Robinson`](BuildAlgorithm::Robinson) also stores the children of the nodes: 8 bytes per point.
//!
//! [`BalancedOptions::algorithm`]: crate::balanced::BalancedOptions::algorithm
//! [`BalancedOptions::warps`]: crate::balanced::BalancedOptions::warps
//! [`BalancedOptions::renumber`]: crate::balanced::BalancedOptions::renumber

pub use crate::balanced::options::BuildAlgorithm;

//! Variants of the device-wide primitives.
//!
//! | variant | reproduces | choose it by |
//! |---|---|---|
//! | selection in two passes | Billeter, Olsson, Assarsson 2009, *Efficient Stream Compaction on Wide SIMD Many-Core Architectures*; Robinson's *KdTreeGPU* removes equal points with it | [`flagged_two_pass`] instead of [`select::flagged`] |
//! | merge sort of points by super key | Brown 2015, *Building a Balanced k-d Tree in O(kn log n) Time*; Robinson's *KdTreeGPU* sorts with it | [`sort_points`]; on the CPU [`cpu::sort_points`] |
//! | tile shapes of the radix sort | Adinets, Merrill 2022, *Onesweep* | [`RadixSortOptions::policy`] |
//! | 64-bit counts in the radix sort | sorts of more than 2^30 items | [`RadixSortOptions::wide`] |
//!
//! ```
//! use kauri::primitives::radix_sort::RadixSortOptions;
//! use kauri::research::primitives::{RadixSortPolicy, cpu};
//!
//! let options = RadixSortOptions::default().policy(RadixSortPolicy { warps: 8, items: 4 });
//! # let _ = options;
//!
//! let points = [[2.0f32, 1.0], [1.0, 5.0], [1.0, 4.0]];
//! let (coords, ids) = cpu::sort_points(&points, 0);
//! assert_eq!((coords, ids), (vec![1.0, 1.0, 2.0], vec![2, 1, 0]));
//! ```
//!
//! Costs: milliseconds on an H200 (`benches/results/primitives-h200.md`). Points are sorted by their super key in the
//! default build as well, but by radix sorts of their coordinates.
//!
//! | operation | 1M | 10M | 100M | temporary memory |
//! |---|--:|--:|--:|---|
//! | [`select::flagged`], half of `u32` | 0.014 | 0.041 | 0.224 | 8 bytes per 32 KiB of input |
//! | [`flagged_two_pass`], half of `u32` | 0.021 | 0.084 | 0.637 | one copy of the items |
//! | [`sort_points`], 4 `f32` | 0.238 | 1.99 | 26.7 | one copy of a coordinate and an id per point |
//!
//! The radix sort has kernels for these shapes, of warps x items per thread. Folded keys are those of all orders but
//! ascending unsigned numbers.
//!
//! | key, value bytes | shapes | with 64-bit counts |
//! |---|---|---|
//! | 4, 0 or 4 | 12 x 28 (from 2^22 items on), 12 x 16, 8 x 4 (up to 2^17 items) | 12 x 20 |
//! | 8, 0 or 4 | 12 x 18, 8 x 4 (up to 2^17 items) | 12 x 14 |
//! | 4, 8 | 12 x 12 | 12 x 10 |
//! | 8, 8 | 12 x 12 | 12 x 12 |
//! | 4 or 8, 16 | 8 x 8 | 8 x 8 |
//!
//! All of them are what the sort chooses for some number of items, so none is compiled for this feature alone.
//!
//! [`select::flagged`]: crate::primitives::select::flagged
//! [`RadixSortOptions::policy`]: crate::primitives::radix_sort::RadixSortOptions::policy
//! [`RadixSortOptions::wide`]: crate::primitives::radix_sort::RadixSortOptions::wide

pub use crate::primitives::select_two_pass::{flagged_two_pass, plan_two_pass};
pub use crate::primitives::sort_points::{plan_points, sort_points};
pub use kauri_kernels::policy::RadixSortPolicy;

/// The CPU versions, with equal results.
pub mod cpu {
    pub use crate::primitives::cpu::sort_points::sort_points;
}

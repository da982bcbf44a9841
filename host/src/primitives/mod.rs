//! Device-wide primitives on device buffers: sorts, scans, selections and searches, for use in your own GPU algorithms.
//!
//! Every call takes a stream and a [`Workspace`](crate::device::Workspace), enqueues its work and returns. It does not
//! wait for the device, and it allocates nothing once the workspace has been used for that size. The `plan` function of
//! a module returns the temporary memory of a call. Buffers, workspace and stream must belong to the same device; a
//! workspace last used with another stream waits for that stream. [`cpu`] has the same functions for slices, with
//! results that are equal to the bit.
//!
//! ```
//! use kauri::Device;
//! use kauri::device::{Buffer, Gpu, Stream, Workspace};
//! use kauri::primitives::radix_sort::{RadixSortOptions, sort_keys};
//!
//! fn sorted(gpu: &Gpu, keys: &[f32]) -> kauri::Result<Vec<f32>> {
//!     let (stream, mut workspace) = (Stream::new(gpu)?, Workspace::new(gpu));
//!     let keys = Buffer::from_slice(&stream, keys, "keys")?;
//!     let mut sorted = Buffer::uninitialized(gpu, keys.len(), "sorted keys")?;
//!     sort_keys(&stream, &mut workspace, &keys, &mut sorted, &RadixSortOptions::default())?;
//!     sorted.to_vec(&stream)
//! }
//!
//! // Without a GPU, the best device is the CPU.
//! if let Some(gpu) = Device::best()?.gpu() {
//!     assert_eq!(sorted(gpu, &[2.0, -1.0, 0.5])?, [-1.0, 0.5, 2.0]);
//! }
//! # Ok::<(), kauri::Error>(())
//! ```
//!
//! | module | purpose | reads and writes | temporary memory |
//! |---|---|---|---|
//! | [`radix_sort`] | stable sort of keys, alone or with values | the keys, and 2 n per 8 bits | n, and a tenth of a key per item |
//! | [`segmented_sort`] | stable sort of every segment | at most as radix sort | n |
//! | [`reduce`] | combination of all items | n | 2048 items |
//! | [`scan`] | prefix sums | 2 n | 8 bytes per 32 KiB of input and word of an item |
//! | [`select`] | items that satisfy a flag or a predicate; stable partition | at most 2 n | 8 bytes per 32 KiB of input |
//! | [`unique`] | first item of every run | at most 2 n | as select |
//! | [`partition`] | items of every segment ordered by class, in one array | 2 n and 3 bytes per item | 0.75 bytes per item |
//! | [`segmented`] | scan and reduce of every segment | as scan and reduce, and the offsets | as scan |
//! | [`merge`] | merge of two sorted runs, by an order that is a type | 2 n | 8 bytes per 24 KiB of keys |
//! | [`merge_sort`] | stable sort of any items | 2 n, and 2 n per doubling from 6000 items on | n |
//! | [`top_k`](mod@top_k) | the k best items and their indices | n and a few k | a few k, or 16 bytes per item |
//! | [`search`] | positions of queries in a sorted array | a few sectors per query | none |
//! | [`expand`] | counts to offsets and (segment, index) of every output: load-balancing search | 8 bytes per output | as scan |
//! | [`permute`] | gather, scatter | 2 n and the indices | none |
//! | [`generate`] | constant, arithmetic sequence, noise | n | none |
//! | [`bounds`] | bounding box of points | n | 512 bytes |
//! | [`histogram`] | counts of bins and of byte values | n | none |
//!
//! Milliseconds on an H200, of segmented sorts on an H100, followed by CUB or Thrust in the same run. `benches/results/primitives-h200.md`,
//! `primitives-h100.md` and, for segmented scans and reductions, `scan-h200.md` have all rows, also for 1G items, and explain the rows that are slower:
//!
//! | module | operation | 1M | 10M | 100M |
//! |---|---|--:|--:|--:|
//! | [`radix_sort`] | keys, `u32` | 0.063 / 0.084 | 0.254 / 0.292 | 1.99 / 2.07 |
//! | [`radix_sort`] | `u32` with `u32` | 0.076 / 0.096 | 0.349 / 0.406 | 2.77 / 3.20 |
//! | [`radix_sort`] | `u64` with `u32` | 0.167 / 0.189 | 0.869 / 0.912 | 7.46 / 7.58 |
//! | [`segmented_sort`] | `u32` with `u32`, segments of 200 | 0.077 / 0.481 | 0.568 / 4.65 | 5.47 / 46.1 |
//! | [`reduce`] | sum of `u32` | 0.012 / 0.014 | 0.015 / 0.017 | 0.098 / 0.101 |
//! | [`scan`] | sum of `u32` | 0.014 / 0.017 | 0.037 / 0.045 | 0.262 / 0.322 |
//! | [`segmented`] | scan, sum of `u32`, segments of 1000 | 0.019 / 0.016 | 0.058 / 0.057 | 0.456 / 0.405 |
//! | [`segmented`] | reduce, sum of `u32`, segments of 8 | 0.018 / 0.110 | 0.055 / 1.42 | 0.245 / 14.1 |
//! | [`segmented`] | reduce, sum of `u32`, segments of 1000 | 0.015 / 0.008 | 0.038 / 0.022 | 0.135 / 0.206 |
//! | [`select`] | below, half of `u32` | 0.012 / 0.015 | 0.039 / 0.036 | 0.204 / 0.231 |
//! | [`select`] | partition, half of `u32` | 0.014 / 0.016 | 0.044 / 0.043 | 0.272 / 0.316 |
//! | [`partition`] | three classes of `u32`, segments of 1000 | 0.030 | 0.159 | 1.45 |
//! | [`unique`] | `u32`, runs of 2 | 0.012 / 0.015 | 0.038 / 0.036 | 0.213 / 0.229 |
//! | [`merge`] | `u32` | 0.015 / 0.015 | 0.045 / 0.046 | 0.267 / 0.251 |
//! | [`merge_sort`] | `u32` with `u32` | 0.116 / 0.121 | 0.744 / 0.938 | 7.63 / 9.30 |
//! | [`top_k`](mod@top_k) | 1024 of `f32` | 0.034 | 0.052 | 0.155 |
//! | [`search`] | lower bound, as many random queries | 0.066 / 0.071 | 0.865 / 0.947 | 20.1 / 20.5 |
//! | [`expand`] | segments of 8 | 0.012 / 0.030 | 0.052 / 0.229 | 0.443 / 2.45 |
//! | [`permute`] | gather, 12 bytes, in order | 0.011 / 0.017 | 0.079 / 0.087 | 0.695 / 0.743 |
//! | [`permute`] | gather, 4 bytes, shuffled | 0.015 / 0.022 | 0.131 / 0.130 | 2.73 / 2.55 |
//! | [`permute`] | scatter, 4 bytes, shuffled | 0.021 / 0.027 | 0.196 / 0.192 | 6.16 / 6.42 |
//! | [`generate`] | fill, `u32` | 0.008 / 0.013 | 0.015 / 0.025 | 0.095 / 0.130 |
//! | [`bounds`] | 3 x `f32` | 0.019 | 0.050 | 0.334 |
//! | [`histogram`] | `f32`, 256 bins | 0.013 / 0.024 | 0.027 / 0.064 | 0.175 / 0.449 |
//!
//! [`operator`] has the operators and their identities, [`predicate`] predicates and comparisons.

pub mod bounds;
pub mod cpu;
pub mod expand;
pub mod generate;
pub mod histogram;
pub mod item;
pub mod merge;
pub mod merge_sort;
pub(crate) mod notify;
pub(crate) mod pairs;
pub mod partition;
pub mod permute;
pub(crate) mod planned;
pub mod radix_sort;
pub mod reduce;
pub mod scan;
pub mod search;
pub mod segmented;
pub mod segmented_sort;
pub mod select;
#[cfg(feature = "research")]
pub(crate) mod select_two_pass;
#[cfg(feature = "research")]
pub(crate) mod sort_points;
pub mod top_k;
pub mod unique;

pub use kauri_kernels::thread::{operator, order, predicate};

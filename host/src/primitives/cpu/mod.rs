//! The primitives on slices, by rayon, on the threads of the current pool. Results have the same bits as on a GPU.
//!
//! Operators that are not associative to the bit (sums of floats) are applied with the same association as in the
//! kernels.
//!
//! ```
//! use kauri::primitives::cpu;
//! use kauri::primitives::operator::Sum;
//! use kauri::primitives::predicate::Below;
//! use kauri::primitives::top_k::Best;
//!
//! let items = [5u32, 1, 4, 2];
//! assert_eq!(cpu::reduce::reduce::<_, Sum>(&items), 12);
//!
//! let mut sums = [0; 4];
//! cpu::scan::inclusive::<_, Sum>(&items, &mut sums);
//! assert_eq!(sums, [5, 6, 10, 12]);
//!
//! assert_eq!(cpu::select::matching::<_, Below>(&items, 3), [1, 2]);
//!
//! let (keys, ids) = cpu::top_k::top_k(&items, 2, Best::Largest);
//! assert_eq!((keys, ids), (vec![5, 4], vec![0, 2]));
//! ```

pub mod bounds;
pub mod expand;
pub mod histogram;
mod lanes;
pub mod merge;
pub mod merge_sort;
pub mod partition;
pub mod permute;
pub mod radix_sort;
pub mod reduce;
pub mod scan;
pub mod search;
pub mod segmented;
pub mod segmented_sort;
pub mod select;
#[cfg(feature = "research")]
pub(crate) mod sort_points;
pub mod top_k;
pub mod unique;

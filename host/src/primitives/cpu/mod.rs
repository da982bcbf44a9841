//! The primitives on slices, by rayon, on the threads of the current pool: the same results as on a GPU, to the bit.
//!
//! Where an operator is not associative to the bit (sums of floats), the brackets are where the kernels have them.

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
pub mod top_k;
pub mod unique;

//! Changes of a left-balanced tree with [gaps](crate::query::buckets::GAPS): a bucket has free slots for points to come.
//!
//! | module | kernels |
//! |---|---|
//! | [`slots`] | find a free slot for each new point in the bucket of its position, and give the point its id there |
//! | [`removal`] | check the ids of points to remove, and free their slots |
//! | [`moves`] | move the points of a tree to buckets with gaps, or to one array |

pub mod moves;
pub mod removal;
pub mod slots;

//! Device-wide primitives: the workshop's tools, usable by themselves on device buffers.
//!
//! Every call takes a stream and a [`Workspace`](crate::device::Workspace), puts its work on the stream and returns: no
//! wait for the device, and no allocation once the workspace has been used for that size. What a call needs of it, the
//! `plan` of its module says. Buffers, workspace and stream must be of one device; a workspace that comes from another
//! stream waits for it. [`cpu`] has the same functions on slices; results are the same to the bit.
//!
//! | module | what | reads and writes | temporary memory |
//! |---|---|---|---|
//! | [`radix_sort`] | keys in order, alone or with values; stable | the keys, and 2 n for each 8 bits | n, and a tenth of a key an item |
//! | [`segmented_sort`] | the same of every segment | as radix sort at most | n |
//! | [`reduce`] | what all items add up to | n | 2048 items |
//! | [`scan`] | what the items up to each add up to | 2 n | 8 bytes for each 32 KiB of input, and word of an item |
//! | [`select`] | the items that a flag or a predicate takes; the others too: a stable partition | 2 n at most | 8 bytes for each 32 KiB of input |
//! | [`select::flagged_two_pass`] | the same by Robinson's two passes | 4 n at most | n |
//! | [`unique`] | the first item of every run | 2 n at most | as select |
//! | [`partition`] | the items of every segment by class, in one array | 2 n and 3 bytes an item | 0.75 bytes an item |
//! | [`segmented`] | scan and reduce of every segment | as scan and reduce, and 2 bytes an item | 1 byte an item |
//! | [`merge`] | one sorted run of two, by an order that is a type | 2 n | 8 bytes for each 24 KiB of keys |
//! | [`merge_sort`] | the same for any items, and points by super key | 2 n, and as much for each doubling from 6000 items on | n |
//! | [`top_k`](mod@top_k) | the k best items and their positions | n and a few k | a few k, or 16 bytes an item |
//! | [`search`] | where queries lie in a sorted array | a few sectors a query | none |
//! | [`expand`] | of counts, offsets and (segment, index) of every output: load-balancing search | 8 bytes an output | as scan |
//! | [`permute`] | gather, scatter | 2 n and the indices | none |
//! | [`generate`] | one value, numbers in order, noise | n | none |
//! | [`bounds`] | the box of points | n | 512 bytes |
//! | [`histogram`] | counts of bins and of bytes | n | none |
//!
//! Operators and their identities are in [`operator`], predicates and comparisons in [`predicate`].

pub mod bounds;
pub mod cpu;
pub mod expand;
pub mod generate;
pub mod histogram;
pub mod item;
pub mod merge;
pub mod merge_sort;
pub(crate) mod pairs;
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

pub use kauri_kernels::thread::{operator, order, predicate};

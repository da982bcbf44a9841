//! Functions of a single thread: no barriers, no shared memory.

pub mod best_k;
pub mod carried;
pub mod coord;
pub mod divisor;
pub mod items;
pub mod measure;
pub mod merge_path;
pub mod network;
pub mod operator;
pub mod order;
pub mod point;
pub mod predicate;
pub mod radix_key;
pub mod ranked;
pub mod ranks;
pub mod region;
pub mod search;
pub mod segments;
pub mod words;

//! Joins whose sides are cut into parts of space, so that many machines join one part each.
//!
//! 1. A sample of the right side cuts space into cells. The left rows of each cell have a bounding box.
//! 2. From these boxes and the sample follows how far the partners of a cell's left rows can be away: at most the radius of the join, or,
//!    for a kNN join, the distance of the `k`-th point of the sample, which that of the `k`-th right row cannot exceed.
//! 3. Consecutive cells make a part. A left row goes to the part of its cell, and a right row to all parts with left rows
//!    in whose reach it is. Each part is joined by itself, and its result is final; only the best pairs of a top-k join are merged.
//!
//! Right rows near a border are in several parts. In the usual method of two rounds, left rows visit their own part, then those closer
//! than the distance found there, and their results are merged. Here the first round asks the sample, so that there are a shuffle of the
//! rows and one of the results less, and rows need no ids.
//!
//! | step | file |
//! |---|---|
//! | places and boxes of rows | `region` |
//! | cells, and parts made of them | `cut`, `partitioner` |
//! | functions that send rows to parts | `functions` |
//! | the plan of all this, for sides whose rows do not change from run to run | `plan`, `repeatable` |
//!
//! Sources: J. M. Patel and D. J. DeWitt, 1996 (joins by partitions of space); W. Lu, Y. Shen, S. Chen and B. C. Ooi, 2012 (kNN joins whose
//! parts have bounds).

mod cut;
mod functions;
mod partitioner;
mod plan;
mod region;
mod repeatable;

pub use functions::functions;
pub use plan::partitioned;

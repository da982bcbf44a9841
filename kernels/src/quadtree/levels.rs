//! Level-by-level build of quadtrees (Gluck 2014): the points of each node that splits go through a bucket sort, with one bucket per child.
//!
//! Blocks or threads sort. A block sorts in four steps: count the points of each child, scan the counts, rank the points, move them.
//! A thread takes consecutive points, so that the sort is stable.
//!
//! - [`blocks`]: a block splits a whole node, as in the paper.
//! - [`tiles`]: a block sorts one tile of a node. This serves nodes that are too large for one block; the scan covers the tiles of all
//!   nodes, so the few nodes of the upper levels keep the whole device busy.
//! - [`threads`]: a thread splits a whole node. This serves levels on which all nodes are small.
//!
//! The sorts move ids together with the [codes](super::frame::Frame::code) of the next levels; one digit of a code is the child of one
//! level. The paper moves the points themselves, and compares them with the center of their node on each level.
//!
//! Nodes without points are created only beside siblings with points, and never split. A build without pruning also has null nodes (Gluck): all
//! children of a level are on the list of the next, and those that do not split get children without points. [`children::quadtree_prune()`]
//! removes them at the end.

pub mod blocks;
pub mod children;
mod chunk;
mod counts;
pub mod points;
pub mod threads;
pub mod tiles;

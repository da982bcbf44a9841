//! R-trees of points whose points change: batches of points are merged into the order of the tree, or taken out of it.
//!
//! The order of the points and of the ids is that of the tree before the change, so a change is one pass over the points. A bit for each
//! slot says whether the slot is new, or stays; sums of the bits give the place of each point.

pub mod insert;
pub mod remove;

//! Balanced trees on several GPUs, or in halves on one (Robinson, after Tanasic et al.).
//!
//! Each GPU holds a *part* of the points. The build has these steps:
//!
//! 1. Each part sorts its points on the first axis and removes equal ones.
//! 2. The parts exchange points so that each holds a range of the whole order. Equal points then meet in one part, which removes all but
//!    the first.
//! 3. A group of parts holds the points of one subtree. Their median becomes a node. The points before it go to the first half of the
//!    parts, those after it to the second half. This repeats until each part holds a subtree of its own.
//! 4. Each part builds its subtree with a build algorithm for one GPU. The columns of its coordinates are rotated: the first column is the
//!    split axis of the subtree's level.
//!
//! A step runs one thread per part and ends when all have finished. An error in one part therefore waits for the others, and their devices
//! remain usable.

mod build;
mod cut;
mod exchange;
mod part;
mod points;
mod ranks;
mod tree;

pub(crate) use build::memory_plan;
pub(crate) use tree::MultiGpuTree;

//! Balanced trees on several GPUs, or in halves on one (Robinson, after Tanasic et al.).
//!
//! Each GPU holds a *part* of the points. A group of parts holds the points of one subtree. Their median becomes a node; the points before
//! it go to the first half of the parts, those after it to the second half. This repeats until each part holds a subtree of its own, which
//! it builds with a build algorithm for one GPU. The columns of its coordinates are rotated: the first column is the split axis of the
//! subtree's level.
//!
//! Medians are found in one of two ways:
//!
//! - By selection: the parts count digits of coordinates, and partition their points. That takes distinct points.
//! - By sorting, if some points are equal, and in Robinson's algorithm: each part sorts its points on the first axis and removes equal ones.
//!   The parts exchange points so that each holds a range of the whole order; equal points then meet in one part, which removes all but the
//!   first. From then on each group sorts its points for its median.
//!
//! A step runs one thread per part and ends when all have finished. An error in one part therefore waits for the others, and their devices
//! remain usable.

mod build;
mod cut;
mod exchange;
mod part;
mod points;
mod ranks;
mod representatives;
mod tree;

pub(crate) use build::memory_plan;
pub(crate) use tree::MultiGpuTree;

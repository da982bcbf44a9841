//! Joins of two sets of axis-aligned boxes: pairs that intersect, that are within a distance, or of which one contains the other.
//!
//! | module | kernels |
//! |---|---|
//! | [`cells`] | sort the boxes by level and cell: keys |
//! | [`pairs`] | all pairs by cells: counts, then rows or pairs |
//! | [`nested`] | all pairs by a nested loop |
//! | [`best`] | the best pairs of small sets, and of the best-scored boxes |
//! | [`threshold`] | the best pairs by a running threshold |
//! | [`filter`] | scores of all pairs |
//! | [`nested_plain`] | all pairs by a nested loop without shared memory |
//! | [`multi_layer`] | all pairs by a grid with a layer for each partition of the left boxes |
//! | [`sort_based`] | all pairs by sorted ends of boxes |
//!
//! [`flat_grid`], [`geometry`], [`levels`], [`search`] and [`output`] are device functions of these kernels.

pub mod best;
pub mod cells;
pub mod filter;
pub mod flat_grid;
pub mod geometry;
pub mod levels;
pub mod multi_layer;
pub mod nested;
pub mod nested_plain;
pub mod output;
pub mod pairs;
pub mod search;
pub mod sort_based;
pub mod threshold;

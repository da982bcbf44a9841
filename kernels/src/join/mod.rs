//! Joins of two sets of points by the cells of an implicit grid (Løvik 2020, *Top-k spatial distance join on the GPU*).
//!
//! | module | kernels |
//! |---|---|
//! | [`cells`] | sort the points by cell: codes, directory, ranks of scores |
//! | [`cell_list`] | a list of the cells that are not empty (research) |
//! | [`pairs`] | all pairs within a distance: counts, then ids |
//! | [`nearest`] | the k nearest points of each point |
//! | [`threshold`] | the best pairs by a running threshold |
//! | [`nested`] | the best pairs of small sets, and of the best-scored points |
//! | [`filter`] | all pairs with their scores |
//! | [`append`] | all pairs with their scores, by an atomic counter (research) |
//! | [`heaps`] | the best pairs of each point in a heap (research) |
//! | [`best`] | selection of the best candidates between launches |
//!
//! Module [`boxes`] joins boxes.
//!
//! [`grid`], [`curve`], [`neighbor_cells`] and [`score`] are device functions of these kernels.

pub mod append;
pub mod best;
pub mod boxes;
pub mod cell_list;
pub mod cells;
pub mod curve;
pub mod filter;
pub mod grid;
pub mod heaps;
pub mod nearest;
pub mod neighbor_cells;
pub mod nested;
pub mod pairs;
pub mod score;
pub mod threshold;

//! Joins of two sets of points by the cells of an implicit grid (Løvik 2020, *Top-k spatial distance join on the GPU*).

pub mod best;
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

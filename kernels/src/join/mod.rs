//! Joins of two sets of points by the cells of a grid that is nowhere stored (Løvik 2020, *Top-k spatial distance join on the GPU*).

pub mod around;
pub mod best;
pub mod cells;
pub mod curve;
pub mod filter;
pub mod grid;
pub mod heaps;
pub mod nearest;
pub mod nested;
pub mod pairs;
pub mod rising;
pub mod score;

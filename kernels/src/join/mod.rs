//! Joins of two sets of points by the cells of a grid that is nowhere stored (Løvik 2020, *Top-k spatial distance join on the GPU*).

pub mod curve;
pub mod grid;
pub mod score;

//! Elevation models from points with heights.
//!
//! Positions are integers on a lattice of half the steps of the points' lattice, so that the centers of cells are on it too. Their magnitude
//! is at most [`MAX_COORDINATE`](cells::MAX_COORDINATE), which keeps the products of the exact predicates within 128 bits.

pub mod apex;
pub mod cells;
pub mod disk;
pub mod ground;
pub mod known;
pub mod natural;
pub mod nearest_k;
pub mod order;
pub mod rasters;
pub mod spline;
pub mod star;
pub mod tree;
pub mod triangles;

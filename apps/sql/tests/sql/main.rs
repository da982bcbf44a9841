//! Tests of spatial joins in SQL: each result is compared with the result of the engine's own operators.

mod boxes;
#[cfg(all(feature = "ballista", feature = "distributed"))]
mod cluster;
mod command_line;
mod data;
mod distance;
mod errors;
mod files;
mod functions;
mod knn;
#[cfg(feature = "las")]
mod las;
mod parts;
mod resources;
mod top_k;

//! The harness of kauri's benchmarks: timing by device events or by the wall clock, inputs from seeds, reports that name
//! the machine. A suite is an entry of a `SUITES` constant in [`suites`]; the program `kauri-bench` runs them.
//!
//! `benches/results/README.md` says how to run a suite with its rival and how to read a row; `ARCHITECTURE.md` says how to add a row.

pub mod figures;
pub mod hardware;
pub mod interface;
pub mod library;
pub mod measure;
pub mod plots;
pub mod points;
pub mod report;
pub mod suites;

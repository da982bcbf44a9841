//! The harness of kauri's benchmarks: timing by device events or by the wall clock, inputs from seeds, reports that name
//! the machine. A suite is a file in [`suites`]; the program `kauri-bench` runs them.

pub mod figures;
pub mod hardware;
pub mod measure;
pub mod plots;
pub mod points;
pub mod report;
pub mod suites;

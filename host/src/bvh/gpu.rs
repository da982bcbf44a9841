//! Building, refitting and tracing on a GPU.

mod build;
mod clusters;
mod codes;
mod leaf;
mod nodes;
mod refit;
mod trace;
mod tree;

pub(super) use build::GpuBuilder;
pub(super) use tree::GpuTree;

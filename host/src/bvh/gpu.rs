//! Building, refitting, tracing and searching on a GPU.

mod build;
mod clusters;
mod codes;
pub(super) mod input;
mod inside;
mod leaf_boxes;
mod leaf_triangles;
mod nearest;
mod nodes;
mod overlap;
mod refit;
mod search;
mod trace;
mod tree;

pub(super) use build::GpuBuilder;
pub(super) use tree::GpuTree;

//! Building, refitting and tracing on a GPU.

mod all_hits;
mod build;
mod build_input;
mod chunk_boxes;
mod corners;
mod growable_buffer;
mod large_levels;
mod large_nodes;
mod partition;
mod preorder;
mod ray_order;
mod refit;
mod small_levels;
mod small_roots;
mod small_warps;
mod trace;
mod tree;

pub(super) use build::GpuBuilder;
pub(super) use tree::GpuTree;

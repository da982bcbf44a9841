//! Building, refitting and tracing on a GPU.

mod build;
mod build_input;
mod cheapest_planes;
mod large_levels;
mod large_nodes;
#[cfg(feature = "research")]
mod large_variants;
mod partition;
mod planes_layout;
mod preorder;
mod refit;
mod root;
#[cfg(feature = "research")]
mod small_levels;
mod small_roots;
mod small_warps;
mod subtrees;
mod trace;
mod tree;
#[cfg(feature = "research")]
mod variant_layout;

pub(super) use build::GpuBuilder;
pub(super) use tree::GpuTree;
